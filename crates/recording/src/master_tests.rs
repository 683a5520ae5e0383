//! Ranges, relative paths, and masters in parts.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::{
    Entry, MASTER_FILE, Master, Part, Source, Survey, check_master, joined, part_names, part_path, relative,
    unseen, write_master, write_master_to,
};
use crate::error::RecordingError;
use crate::manifest::Placement;
use crate::ranges::Seen;
use crate::reader::Recording;
use crate::testing::TestRecording;
use crate::verify::{VerifyOptions, verify};

#[test]
fn adjacent_ranges_are_joined() {
    assert_eq!(joined([0..3, 3..5, 7..8, 8..9].into_iter()), [0..5, 7..9]);
    assert!(joined(std::iter::empty()).is_empty());
}

#[test]
fn relative_paths_lead_from_one_directory_to_another() {
    let root = tempfile::tempdir().unwrap();
    let make = |path: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let (a, b) = (make("a/run"), make("b/deep/run"));
    assert_eq!(relative(&a, &b).unwrap(), Path::new("../../b/deep/run"));
    assert_eq!(relative(&b, &a).unwrap(), Path::new("../../../a/run"));
    assert_eq!(relative(&a, &a).unwrap(), Path::new(""));
    // A volume that is a link: the path leads through its target.
    std::os::unix::fs::symlink(root.path().join("b/deep"), root.path().join("disk")).unwrap();
    assert_eq!(relative(&a, &root.path().join("disk/run")).unwrap(), Path::new("../../b/deep/run"));
}

#[test]
fn rows_of_an_earlier_segment_are_left_out() {
    let mut seen = Seen::default();
    assert_eq!(unseen(&[0..10, 20..30], &mut seen), (vec![0..10, 20..30], vec![0, 10]));
    // The second segment has rows 5..25 and 40..50; its dataset has 30 rows.
    assert_eq!(unseen(&[5..25, 40..50], &mut seen), (vec![10..20, 40..50], vec![5, 20]));
    assert_eq!(unseen(&[0..50, 60..70], &mut seen), (vec![30..40, 60..70], vec![30, 50]));
    assert_eq!(unseen(&[0..50, 60..70], &mut seen), (Vec::new(), Vec::new()));
}

/// 520 streams in 35 segments of each of two volumes, and so three parts.
fn many() -> TestRecording {
    let ids: Vec<u32> = (0..1040).step_by(2).collect();
    let mut made = TestRecording::new(2, Placement::Free, &ids);
    for sequence in 0..70 {
        let volume = sequence as usize % 2;
        for &id in &ids[..if sequence == 0 { 520 } else { 3 }] {
            made.block(volume, id, sequence, 0, &[(sequence, vec![sequence as u8; 64])]);
        }
        if sequence < 68 {
            made.volumes[volume].rotate();
        }
    }
    made.end();
    made.release();
    made
}

fn names_of(home: &Path) -> Vec<String> {
    let mut names = part_names(home).unwrap();
    names.sort();
    names
}

#[test]
fn many_segments_are_shown_by_parts_that_belong_to_the_master() {
    let made = many();
    let home = &made.dirs()[0];
    let stale = [part_path(&home.join(MASTER_FILE), 1, 3), home.join("recording-1-000000.nxs.new")];
    stale.iter().for_each(|path| fs::write(path, "of an earlier master").unwrap());
    let recording = Recording::open(&made.dirs()).unwrap();
    let master = write_master(&recording).unwrap();
    let parts = ["recording-1-000000.nxs", "recording-1-000001.nxs", "recording-1-000002.nxs"];
    assert_eq!(names_of(home), parts);
    let faults = || {
        let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
        assert!(report.unchecked.is_empty(), "{:?}", report.unchecked);
        let files: Vec<PathBuf> = report.faults.into_iter().map(|fault| fault.file).collect();
        assert!(files.len() < 2, "{files:?}");
        files.into_iter().next()
    };
    assert_eq!(faults(), None);
    // Each file is checked, and each part is the one that the master was written for.
    let path = home.join(parts[1]);
    let good = fs::read(&path).unwrap();
    let put = |path: &Path, bytes: &[u8]| {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    };
    for at in [0, 100, good.len() / 2, good.len() - 9, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        put(&path, &bytes);
        assert_eq!(faults().as_ref(), Some(&path), "{at}");
    }
    put(&path, &fs::read(home.join(parts[0])).unwrap());
    assert_eq!(faults().as_ref(), Some(&path));
    fs::remove_file(&path).unwrap();
    assert_eq!(faults().as_ref(), Some(&path));
    fs::write(&path, &good).unwrap();
    let whole = fs::read(&master).unwrap();
    // The list of parts, and what follows it.
    for at in whole.len() - 48..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        put(&master, &bytes);
        assert_eq!(faults().as_ref(), Some(&master), "{at}");
    }
    put(&master, &whole);
    assert_eq!(faults(), None);
    crate::remove::take_back(home, recording.manifest().recording, true).unwrap();
    assert!(!home.exists());
}

#[test]
fn an_export_overwrites_no_file_with_the_name_of_a_part() {
    let made = many();
    let path = made.root.path().join("scan.nxs");
    let taken = made.root.path().join("scan-1-000001.nxs");
    fs::write(&taken, "of the user").unwrap();
    let recording = Recording::open(&made.dirs()).unwrap();
    let refused = write_master_to(&(&recording).into(), &path).unwrap_err();
    assert!(matches!(refused, RecordingError::Taken { path } if path == taken));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "of the user");
    fs::remove_file(&taken).unwrap();
    assert!(!made.root.path().join("scan-1-000000.nxs").exists(), "nothing of a failed export is left");
    let counts = write_master_to(&(&recording).into(), &path).unwrap();
    assert_eq!((counts.streams, counts.events, counts.left_out), (520, 520 + 3 * 69, 0));
}

#[test]
fn a_master_that_names_impossible_parts_is_damaged_and_checked_in_time() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(MASTER_FILE);
    let put = |path: &Path, parts: &[Entry]| super::write_file(path, parts, |place| place.put(&[0])).unwrap();
    // Each level names the next one many times.
    let mut below = Vec::new();
    for level in 1..200 {
        let crc = put(&part_path(&path, level, 0), &below);
        below = vec![Entry { level, number: 0, crc }; 4096];
    }
    put(&path, &below);
    assert_eq!(check_master(&path), Ok(Some(())));
    let part = part_path(&path, 3, 0);
    let crc = put(&part, &below[..1]);
    put(&path, &[Entry { level: 3, number: 0, crc }]);
    assert_eq!(check_master(&path), Err((part, "it names a part of level 199".to_owned())));
    put(&path, &[below[0]; 4097]);
    assert_eq!(check_master(&path), Err((path, "cannot read it: it cannot have 4097 parts".to_owned())));
}

/// Segments of eight hours: 1 GB/s, 1 GiB each.
const SEGMENTS: u64 = 28_800;
/// Events of a stream in one of them.
const ROWS: u64 = 512;

/// A master of eight hours, 508 streams and four volumes, of which the first and the last segment exist.
/// It is kept if `KEEPUP_MASTER` is set.
#[test]
#[ignore = "a measurement, not a test"]
fn eight_hours_of_508_streams() {
    let ids: Vec<u32> = (0..1016).step_by(2).collect();
    let mut made = TestRecording::new(4, Placement::Free, &ids);
    let last = SEGMENTS * ROWS - 1;
    for (volume, sequence) in [(0, 0), (3, last)] {
        for &id in &ids {
            made.block(volume, id, sequence, 0, &[(sequence, vec![7; 64])]);
        }
    }
    made.end();
    made.release();
    let recording = Recording::open(&made.dirs()).unwrap();
    let (shown, path) = ((&recording).into(), recording.master_path());
    let mut master = Master::new(&shown, &path);
    let begun = Instant::now();
    let mut parts = Survey::default();
    let names: BTreeMap<u32, String> = ids.iter().map(|id| (*id, format!("module {id}"))).collect();
    let names = Arc::new(names);
    for number in 0..(SEGMENTS / 32) as u32 {
        let mut survey = Survey::default();
        for segment in u64::from(number) * 32..(u64::from(number) + 1) * 32 {
            let (volume, index, turn) = (segment % 4, segment / 4, segment / 4 * 4 * ROWS);
            let index = if segment == SEGMENTS - 1 { 0 } else { index };
            let source = survey.sources.len();
            survey.sources.push(Source {
                path: format!("../../disk{volume}/run 7/segment-{index:06}.mcap"),
                link: (format!("volume-{volume}-segment-{index:06}"), "/"),
                base: "",
                names: Arc::clone(&names),
            });
            for &id in &ids {
                let blocks = (0..4).map(|block| turn + (block * 4 + volume) * ROWS / 4);
                // The two segments that exist have one event.
                let only = [(0, 0), (SEGMENTS - 1, last)].into_iter().find(|(at, _)| *at == segment);
                let rows: Vec<_> = match only {
                    Some((_, row)) => std::iter::once(row..row + 1).collect(),
                    None => blocks.map(|start| start..start + ROWS / 4).collect(),
                };
                let firsts = (0..rows.len() as u64).map(|block| block * ROWS / 4).collect();
                let events = rows.iter().map(|rows| rows.end - rows.start).sum();
                let part = Part {
                    source,
                    rows,
                    firsts,
                    events,
                    signal: Some("data"),
                    last_timestamp_ns: 0,
                    map: None,
                };
                survey.parts.entry(id).or_default().push(part);
            }
        }
        master.write_part((1, number), survey, &mut parts).unwrap();
        if number % 100 == 99 {
            println!("{} parts: {:?}", number + 1, begun.elapsed());
        }
    }
    let before = begun.elapsed();
    master.finish(parts).unwrap();
    println!("all: {:?}, of it levels and master: {:?}", begun.elapsed(), begun.elapsed() - before);
    let sizes = fs::read_dir(&made.dirs()[0]).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    println!("{} bytes, master {} bytes", sizes.sum::<u64>(), fs::metadata(&path).unwrap().len());
    if std::env::var_os("KEEPUP_MASTER").is_some() {
        println!("kept in {}", made.root.keep().display());
    }
}
