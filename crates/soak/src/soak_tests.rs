//! Complete soaks on real files that are damaged between writing and reading.
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use keepup_measure::clock::Clock;
use keepup_recording::id::Id;
use keepup_results::{SoakFile, SoakKind, SoakPlace};
use keepup_workload::run;

use super::*;
use crate::plan::{DigestKind, Mode, SoakPlan};
use crate::state::SoakStart;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 3 * MIB;

/// Clock that advances by 1 s per reading, so that a sample follows each piece.
struct SteppingClock(AtomicU64);

impl Clock for SteppingClock {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(1_000_000_000, Ordering::Relaxed)
    }

    fn unix_ns(&self) -> u64 {
        7
    }

    fn sleep_until_ns(&self, _: u64) {}
}

/// Bytes written and read so far.
type Moment = (u64, u64);

fn plan(mode: Mode, volume: &Path) -> SoakPlan {
    let (sizes, stamped_bytes) = match mode {
        Mode::Copy => (vec![SIZE], 0),
        Mode::Stamp => (vec![], SIZE),
        Mode::BurnIn => (vec![64 << 10, 5000], 2 * MIB),
    };
    let references = sizes.into_iter().map(|bytes| ReferencePlan::Made { bytes }).collect();
    SoakPlan { mode, digest: DigestKind::Blake3, volumes: vec![volume.to_owned()], references, stamped_bytes }
}

/// Runs a soak for some rounds; `meddle` is called before each piece with the directory of the
/// soak's files.
fn soak(
    mode: Mode,
    rounds: u64,
    mut meddle: impl FnMut(Moment, &Path) + Send + 'static,
) -> (tempfile::TempDir, Account) {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let id: Id = "0123456789abcdef0123456789abcdef".parse().unwrap();
    let start = SoakStart::new(id, 0, plan(mode, directory.path()), Vec::new());
    let files = directory.path().join(start.name());
    let sample = Box::new(move |_, readings: BTreeMap<String, f64>| {
        meddle((readings["written_bytes"] as u64, readings["read_bytes"] as u64), &files);
    });
    let stop = Arc::new(AtomicBool::new(false));
    let mut context =
        Context { clock: Arc::new(SteppingClock(AtomicU64::new(0))), stop, sample, note: Box::new(|_| {}) };
    let mut soak = Soak::new(SoakState::without_state(start), Limits { rounds: Some(rounds), time: None });
    let account = run(&mut soak, &mut context).unwrap().account;
    (directory, account)
}

fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
}

fn read_at(path: &Path, offset: u64, bytes: usize) -> Vec<u8> {
    let mut file = std::fs::File::open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    let mut read = vec![0; bytes];
    file.read_exact(&mut read).unwrap();
    read
}

fn names(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn without_faults_everything_adds_up() {
    let sizes = [(Mode::Copy, SIZE, 1), (Mode::Stamp, SIZE, 1)];
    for (mode, bytes, files) in sizes {
        let (directory, account) = soak(mode, 4, |_, _| {});
        let totals = account.totals;
        assert_eq!((totals.turns, totals.files), (4, 4 * files));
        for part in [totals.source, totals.write, totals.read, totals.compare] {
            assert_eq!(part.bytes, 4 * bytes, "{totals:?}");
        }
        assert_eq!((account.damage.mismatches, account.mismatches.len()), (0, 0));
        let rate = account.rate().unwrap();
        assert_eq!((rate.bytes, rate.wrong_bytes_per_byte), (4 * bytes, 0.0));
        let bound = -(0.05_f64.ln()) / (4 * bytes * 8) as f64;
        assert!((rate.mismatches_per_bit.upper / bound - 1.0).abs() < 1e-12, "{rate:?}");
        assert!(names(directory.path()).is_empty(), "its files are gone");
    }
}

#[test]
fn a_burn_in_goes_through_all_ways_without_fault() {
    // Includes sizes that are not a multiple of a page.
    let (directory, account) = soak(Mode::BurnIn, 48, |_, _| {});
    let (copies, stamped) = (24 * ((64 << 10) + 5000), 24 * 2 * MIB);
    assert_eq!((account.totals.turns, account.totals.files), (48, 24 * 2 + 24));
    assert_eq!((account.totals.write.bytes, account.totals.read.bytes), (copies + stamped, copies + stamped));
    assert_eq!(account.damage.mismatches, 0, "{:?}", account.mismatches);
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_damaged_copy_is_located_and_kept() {
    let offset = 2 * MIB + 77;
    let mut is_done = false;
    let (directory, account) = soak(Mode::Copy, 3, move |(written, read), files| {
        // The second copy is written but not yet read.
        if !is_done && (written, read) == (2 * SIZE, SIZE) {
            is_done = true;
            let copy = files.join("copy");
            let wrong = read_at(&copy, offset, 1)[0] ^ 0b101;
            write_at(&copy, offset, &[wrong]);
        }
    });
    assert_eq!((account.totals.turns, account.damage.mismatches, account.damage.bits), (3, 1, 2));
    let mismatch = &account.mismatches[0];
    assert_eq!((mismatch.turn, mismatch.what, mismatch.place), (2, SoakFile::Copy, Some(SoakPlace::Medium)));
    assert_eq!((mismatch.ranges.len(), mismatch.ranges[0].offset), (1, offset));
    assert_eq!((mismatch.ranges[0].xor.as_str(), mismatch.ranges[0].kind), ("05", SoakKind::Flipped));
    let kept = PathBuf::from(mismatch.kept.clone().unwrap());
    assert_eq!(names(directory.path()), std::slice::from_ref(&kept), "nothing else is left");
    assert_eq!(format!("{:02x}", read_at(&kept, offset, 1)[0]), mismatch.ranges[0].found);
    let rate = account.rate().unwrap();
    let seen = rate.mismatches_per_byte;
    assert!(seen.lower < seen.value && seen.value < seen.upper && seen.lower > 0.0, "{rate:?}");
}

#[test]
fn a_copy_of_another_length_is_a_mismatch() {
    let mut is_done = false;
    let (_directory, account) = soak(Mode::Copy, 1, move |(written, read), files| {
        if !is_done && (written, read) == (SIZE, 0) {
            is_done = true;
            let file = std::fs::OpenOptions::new().append(true).open(files.join("copy")).unwrap();
            file.set_len(SIZE - 10).unwrap();
        }
    });
    let mismatch = &account.mismatches[0];
    assert!(mismatch.bytes >= 10 && account.damage.mismatches == 1, "{mismatch:?}");
}

#[test]
fn a_reference_that_is_read_wrongly_is_told_apart() {
    let (_directory, account) = soak(Mode::Copy, 2, |moment, files| {
        if moment == (0, 0) {
            write_at(&files.join("reference-0"), 5, &[0; 3]);
        }
    });
    // Once per turn; the copies are written from correct bytes.
    assert_eq!((account.damage.references, account.damage.mismatches), (2, 0), "{:?}", account.mismatches);
    assert_eq!(account.mismatches[0].what, SoakFile::Reference);
    assert_eq!(account.mismatches[0].kept, None, "it is needed");
}

/// Findings of a stamping soak of three generations for the second one, with `damage` applied to
/// the file between writing and reading. `damage` also receives the previous content.
fn stamped(damage: impl Fn(&Path, &[u8]) + Send + 'static) -> Vec<(SoakKind, u64, Option<u64>)> {
    let (mut before, mut is_done) = (Vec::new(), false);
    let (directory, account) = soak(Mode::Stamp, 3, move |moment, files| {
        let file = files.join("stamped");
        if moment == (SIZE, 0) {
            before = std::fs::read(&file).unwrap();
        }
        if !is_done && moment == (2 * SIZE, SIZE) {
            is_done = true;
            damage(&file, &before);
        }
    });
    assert_eq!((account.totals.turns, account.damage.mismatches), (3, 1), "{:?}", account.mismatches);
    let mismatch = &account.mismatches[0];
    assert_eq!((mismatch.turn, mismatch.place), (2, Some(SoakPlace::Medium)), "{mismatch:?}");
    assert_eq!(names(directory.path()), [PathBuf::from(mismatch.kept.clone().unwrap())]);
    let mut ranges: Vec<_> = mismatch
        .ranges
        .iter()
        .map(|r| (r.kind, r.offset / 4096, r.origin.map(|o| o.offset / 4096)))
        .collect();
    ranges.sort_unstable_by_key(|range| range.1);
    ranges
}

#[test]
fn a_lost_write_is_stale() {
    let found = stamped(|file, before| write_at(file, 8 * 4096, &before[8 * 4096..12 * 4096]));
    assert_eq!(found, [(SoakKind::Stale, 8, Some(8))]);
}

#[test]
fn a_misplaced_write_leaves_a_stale_page() {
    let found = stamped(|file, before| {
        let written = read_at(file, 300 * 4096, 4096);
        write_at(file, 300 * 4096, &before[300 * 4096..301 * 4096]);
        write_at(file, 20 * 4096, &written);
    });
    assert_eq!(found, [(SoakKind::Misplaced, 20, Some(300)), (SoakKind::Stale, 300, Some(300))]);
}

#[test]
fn a_write_that_stopped_half_way_is_torn() {
    let at = 500 * 4096 + 3 * 512;
    let found = stamped(move |file, before| write_at(file, at, &before[at as usize..501 * 4096]));
    assert_eq!(found, [(SoakKind::Torn, 500, Some(500))]);
}

#[test]
fn flipped_and_blank_pages_are_reported() {
    let found = stamped(|file, _| {
        let wrong = read_at(file, 4096 + 600, 1)[0] ^ 0x80;
        write_at(file, 4096 + 600, &[wrong]);
        write_at(file, 700 * 4096, &[0; 8192]);
    });
    assert_eq!(found, [(SoakKind::Flipped, 1, None), (SoakKind::Blank, 700, None)]);
}

#[test]
fn what_a_killed_soak_left_is_removed_and_foreign_files_are_not() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let id: Id = "0123456789abcdef0123456789abcdef".parse().unwrap();
    let start = SoakStart::new(id, 0, plan(Mode::Copy, directory.path()), Vec::new());
    let files = directory.path().join(start.name());
    let sit = || {
        let clock = Arc::new(SteppingClock(AtomicU64::new(0)));
        let stop = Arc::new(AtomicBool::new(false));
        let mut context = Context { clock, stop, sample: Box::new(|_, _| {}), note: Box::new(|_| {}) };
        let state = SoakState::without_state(start.clone());
        run(&mut Soak::new(state, Limits { rounds: Some(1), time: None }), &mut context)
    };
    std::fs::create_dir(&files).unwrap();
    assert!(sit().is_err(), "a directory without the marker is not ours");
    for name in ["keepup-scratch", "copy", "reference-0", "mine"] {
        std::fs::write(files.join(name), "x").unwrap();
    }
    assert!(sit().is_err(), "there is a foreign file");
    assert_eq!(names(&files), [files.join("mine")]);
    std::fs::remove_file(files.join("mine")).unwrap();
    for name in ["keepup-scratch", "copy", "reference-0"] {
        std::fs::write(files.join(name), "x").unwrap();
    }
    assert_eq!(sit().unwrap().account.totals.turns, 1);
    assert!(names(directory.path()).is_empty());
}
