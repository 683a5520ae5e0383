//! All I/O modes transfer every byte to its place.
use std::collections::BTreeSet;

use keepup_measure::clock::SystemClock;
use keepup_sys::engine::EngineChoice;
use keepup_sys::file::{Access, Durability};

use super::*;
use crate::file_io::mode::PAGE_BYTES;
use crate::testing::context;

const FILE: u64 = 6 << 20;
const POINT: Point = Point { bytes: 64 << 10, depth: 4 };

fn modes() -> impl Iterator<Item = Mode> {
    let engines = [EngineChoice::Auto, EngineChoice::Plain, EngineChoice::Mapped];
    let spaces = [Space::New, Space::Preallocated, Space::Overwritten];
    engines.into_iter().flat_map(move |engine| {
        spaces.map(|space| Mode {
            access: Access::Buffered,
            durability: match space == Space::New && engine != EngineChoice::Mapped {
                true => Durability::EachWrite,
                false => Durability::Flushed,
            },
            engine,
            space,
            ..Mode::default()
        })
    })
}

/// Transfers `requests` requests; returns the number of completions.
fn move_all(mover: &mut Mover, kind: IoDirection, requests: usize) -> usize {
    let (clock, mut begun, mut ended) = (SystemClock, 0, 0);
    while ended < requests {
        while begun < requests && mover.start(kind, POINT.bytes, 5, clock.now_ns()).unwrap() {
            begun += 1;
        }
        let mut each = |done: Ended| {
            assert!(done.due_ns == 5 && done.begun_ns <= done.ended_ns && done.bytes == POINT.bytes);
            ended += 1;
        };
        mover.wait(Duration::from_secs(1), &clock, &mut each).unwrap();
    }
    ended
}

#[test]
fn a_filled_file_has_no_holes_and_no_two_pages_alike() {
    for mode in modes() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::create(&directory.path().join("file"), FILE, &mode).unwrap();
        let target = Mover::fill(target, &mode, &context()).unwrap();
        let bytes = std::fs::read(&target.path).unwrap();
        let pages: BTreeSet<&[u8]> = bytes.chunks(PAGE_BYTES).collect();
        assert_eq!((bytes.len() as u64, pages.len()), (FILE, FILE as usize / PAGE_BYTES), "{mode:?}");
    }
}

#[test]
fn writes_and_reads_go_round_and_round() {
    let rounds = 2 * FILE as usize / POINT.bytes + 3;
    for mode in modes() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::create(&directory.path().join("file"), FILE, &mode).unwrap();
        let mut mover = Mover::new(target, &mode, &[POINT], 1).unwrap();
        assert_eq!(move_all(&mut mover, IoDirection::Write, rounds), rounds, "{mode:?}");
        mover.flush().unwrap();
        let length = std::fs::metadata(&mover.target.path).unwrap().len();
        // A growing file is empty at the start of each pass; others keep their size.
        let grown = mode.space == Space::New && mode.engine != EngineChoice::Mapped;
        assert_eq!(length, if grown { 3 * POINT.bytes as u64 } else { FILE }, "{mode:?}");
        let filled = Mover::fill(mover.target.clone(), &mode, &context()).unwrap();
        let mut mover = Mover::new(filled, &mode, &[POINT], 1).unwrap();
        assert_eq!(move_all(&mut mover, IoDirection::Read, rounds), rounds, "{mode:?}");
    }
}

#[test]
fn movers_with_different_seeds_write_different_data() {
    let directory = tempfile::tempdir().unwrap();
    let mode = Mode { access: Access::Buffered, ..Mode::default() };
    let mut pages = BTreeSet::new();
    for seed in 0..2 {
        let path = directory.path().join(seed.to_string());
        let mut mover =
            Mover::new(Target::create(&path, FILE, &mode).unwrap(), &mode, &[POINT], seed).unwrap();
        move_all(&mut mover, IoDirection::Write, FILE as usize / POINT.bytes);
        drop(mover);
        let bytes = std::fs::read(&path).unwrap();
        bytes.chunks(PAGE_BYTES).for_each(|page| assert!(pages.insert(page.to_vec())));
    }
}
