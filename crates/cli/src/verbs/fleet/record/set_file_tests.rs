//! A set file that cannot be written at first.
use std::time::{Duration, Instant};

use keepup_recording::id::Id;
use keepup_recording::set::{SetEnd, SetRecording};

use super::*;

fn set(run: u64) -> RecordingSet {
    let recording = SetRecording {
        host: "a".to_owned(),
        id: None,
        directories: Vec::new(),
        end: SetEnd::Absent,
        why: None,
    };
    RecordingSet {
        name: "run-1".to_owned(),
        run: Some(run),
        id: Id([1; 16]),
        created_unix_ns: 1,
        fleet: "hall".to_owned(),
        recordings: vec![recording],
        moves: Vec::new(),
    }
}

/// Turns until `wanted`; returns the warnings.
fn turn_until(file: &mut SetFile, now_ns: u64, wanted: impl Fn(&SetFile) -> bool) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(20);
    let mut warnings = Vec::new();
    while !wanted(file) {
        assert!(Instant::now() < until, "nothing happens");
        warnings.extend(file.turn(now_ns));
        std::thread::sleep(Duration::from_millis(1));
    }
    warnings
}

#[test]
fn a_write_that_fails_is_repeated_and_reported_once() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("later");
    let mut file = SetFile::new(directory.join("keepup-set.json"));
    file.queue(set(1));
    let warnings = turn_until(&mut file, 0, |file| file.not_before_ns > 0);
    assert!(warnings.len() == 1 && warnings[0].contains("later"), "{warnings:?}");
    std::fs::create_dir(&directory).unwrap();
    // A newer set replaces the one that failed.
    file.queue(set(2));
    assert!(turn_until(&mut file, RETRY_NS, |file| file.path().exists()).is_empty());
    assert_eq!(RecordingSet::read(file.path()).unwrap().run, Some(2));
    let path = file.path().to_path_buf();
    file.finish(&set(3)).unwrap();
    assert_eq!(RecordingSet::read(&path).unwrap().run, Some(3));
}
