//! Appending and reading back, whole and torn.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{EventLog, EventReader};
use crate::error::ResultsError;
use crate::event::Event;
use crate::event::tests::one_of_each;

fn new_log() -> (tempfile::TempDir, PathBuf, EventLog) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    let log = EventLog::create(&path).unwrap();
    (directory, path, log)
}

fn sample() -> Event {
    one_of_each().into_iter().find(|event| matches!(event, Event::Sample { .. })).unwrap()
}

/// All events before the end or the first error, and that error.
fn read(path: &Path) -> (Vec<Event>, Result<(), ResultsError>) {
    let reader = EventReader::open(path).unwrap();
    let mut events = Vec::new();
    for item in reader {
        match item {
            Ok(event) => events.push(event),
            Err(error) => return (events, Err(error)),
        }
    }
    (events, Ok(()))
}

#[test]
fn what_is_appended_is_read_back_in_order() {
    let (_directory, path, mut log) = new_log();
    for event in one_of_each() {
        log.append(&event).unwrap();
    }
    log.finish().unwrap();
    let (events, end) = read(&path);
    assert_eq!(events, one_of_each());
    end.unwrap();
}

#[test]
fn samples_wait_until_something_that_matters_comes() {
    let (_directory, path, mut log) = new_log();
    log.append(&sample()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    log.append(&Event::Phase { t_unix_ns: 9, name: "soak".into() }).unwrap();
    assert_eq!(read(&path).0.len(), 2, "both are with the kernel while the log is still open");
}

#[test]
fn an_existing_log_is_not_touched() {
    let (_directory, path, mut log) = new_log();
    log.append(&Event::Note { t_unix_ns: 1, text: "first".into() }).unwrap();
    let error = EventLog::create(&path).unwrap_err().to_string();
    assert!(error.starts_with("cannot create the event log "), "{error}");
    assert_eq!(read(&path).0.len(), 1);
}

#[test]
fn a_write_that_fails_is_reported_and_ends_the_log() {
    // Every write to this device fails with "no space left".
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut log = EventLog { path: "/dev/full".into(), file: std::io::BufWriter::new(full), broken: false };
    log.append(&sample()).unwrap();
    let error = log.append(&Event::Phase { t_unix_ns: 9, name: "soak".into() }).unwrap_err();
    assert!(
        matches!(&error, ResultsError::Io { source, .. } if source.raw_os_error() == Some(28)),
        "{error}"
    );
    assert!(matches!(log.append(&sample()), Err(ResultsError::LogBroken { .. })));
    assert!(matches!(log.finish(), Err(ResultsError::LogBroken { .. })));
}

#[test]
fn damage_before_the_last_line_is_an_error_with_its_line() {
    let (_directory, path, mut log) = new_log();
    for event in one_of_each() {
        log.append(&event).unwrap();
    }
    log.finish().unwrap();
    let damaged = fs::read_to_string(&path).unwrap().replace(r#""event":"sample""#, r#""event":"simple""#);
    fs::write(&path, damaged).unwrap();
    let (events, end) = read(&path);
    assert_eq!(events.len(), 2);
    let error = end.unwrap_err().to_string();
    assert!(error.starts_with("cannot read line 3 of "), "{error}");
    assert!(error.contains("events.jsonl: unknown variant `simple`"), "{error}");
}

proptest! {
    /// A crash leaves a prefix of the file: all whole lines are read, the rest is left out and never an
    /// error.
    #[test]
    fn a_log_cut_anywhere_gives_its_whole_lines(cut in 0usize..2000) {
        let (_directory, path, mut log) = new_log();
        for event in one_of_each() {
            log.append(&event).unwrap();
        }
        drop(log);
        let whole = fs::read(&path).unwrap();
        let cut = cut.min(whole.len());
        fs::write(&path, &whole[..cut]).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        // A line that lacks nothing but its line feed counts as read.
        let complete = cut < whole.len() && whole[cut] == b'\n';
        let (events, end) = read(&path);
        prop_assert_eq!(&events[..], &one_of_each()[..lines + usize::from(complete)]);
        prop_assert!(end.is_ok(), "{end:?}");
    }

    /// What goes on after a crash reads as what was whole before, and what came after.
    #[test]
    fn a_log_cut_anywhere_can_be_continued(cut in 0usize..2000) {
        let (_directory, path, mut log) = new_log();
        for event in one_of_each() {
            log.append(&event).unwrap();
        }
        drop(log);
        let whole = fs::read(&path).unwrap();
        let kept = &whole[..cut.min(whole.len())];
        fs::write(&path, kept).unwrap();
        let mut log = EventLog::reopen(&path).unwrap();
        let last = Event::Phase { t_unix_ns: 9, name: "again".into() };
        log.append(&last).unwrap();
        log.finish().unwrap();
        let lines = kept.iter().filter(|byte| **byte == b'\n').count();
        let (events, end) = read(&path);
        prop_assert_eq!(&events[..lines], &one_of_each()[..lines]);
        prop_assert_eq!(&events[lines..], &[last]);
        prop_assert!(end.is_ok(), "{end:?}");
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        fs::write(&path, bytes).unwrap();
        let (events, _) = read(&path);
        prop_assert!(events.is_empty());
    }
}
