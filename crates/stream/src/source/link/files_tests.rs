//! Files of the simulated source, as another program finds them.
use std::sync::atomic::AtomicBool;

use super::super::super::plan::{EventSize, Protocol, Rate};
use super::super::super::{Destination, SourceCounters, run};
use super::*;

fn plan(bytes: u64, events: u64) -> SourcePlan {
    let plan = SourcePlan::new(EventSize::Fixed(bytes), Rate::Max).in_protocol(Protocol::Files);
    SourcePlan { events: Some(events), ..plan }
}

/// Names and sizes of all files, hidden ones too.
fn files(path: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    let mut found: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .collect();
    found.sort();
    found
}

fn header(stream: u32, sequence: u64, bytes: u64) -> Vec<u8> {
    [&stream.to_be_bytes()[..], &sequence.to_be_bytes(), &bytes.to_be_bytes()].concat()
}

fn send(link: &mut Files, parts: &[&[u8]]) {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let sent = link.send(&mut &mut slices[..], &mut || ControlFlow::Continue(())).unwrap();
    assert!(matches!(sent, Sent::All));
}

#[test]
fn a_file_is_hidden_until_it_is_complete() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path(), "run", 1 << 20).unwrap();
    let mut link = Files::open(&plan(6, 1), 0, &folder);
    send(&mut link, &[&header(3, 7, 6), b"abcd"]);
    assert_eq!(files(place.path()), [(".run-3-000007.raw.part".to_owned(), 4)]);
    send(&mut link, &[b"ef", &[], &header(3, 8, 0), &[]]);
    let names = ["run-3-000007.raw", "run-3-000008.raw"];
    assert_eq!(files(place.path()), [(names[0].to_owned(), 6), (names[1].to_owned(), 0)]);
    assert_eq!(fs::read(place.path().join(names[0])).unwrap(), b"abcdef");
    send(&mut link, &[&header(3, 9, 6), b"abcd"]);
    drop(link);
    assert_eq!(files(place.path()).len(), 2, "an unfinished file is removed");
}

#[test]
fn the_oldest_files_are_removed_but_not_the_last_two() {
    // A file of 1000 bytes takes 4096.
    for (keep_bytes, kept) in [(5 * 4096, 5), (1, 2), (1 << 20, 12)] {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), "run", keep_bytes).unwrap();
        let to = Destination::Directory(folder);
        let report = run(&plan(1000, 12), to, &AtomicBool::new(false), &SourceCounters::default()).unwrap();
        assert_eq!(report.total(|stream| stream.sent).events, 12);
        assert!(!report.is_acknowledged);
        let names: Vec<String> = files(place.path()).into_iter().map(|(name, _)| name).collect();
        let expected: Vec<String> = (12 - kept..12).map(|n| format!("run-0-{n:06}.raw")).collect();
        assert_eq!(names, expected, "{keep_bytes}");
    }
}

#[test]
fn events_larger_than_the_pool_and_several_streams_become_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path(), "run", 1 << 30).unwrap();
    let plan = SourcePlan { streams: 3, connections: 2, ..plan(1_234_567, 6) };
    run(&plan, Destination::Directory(folder), &AtomicBool::new(false), &SourceCounters::default()).unwrap();
    let found = files(place.path());
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found.iter().all(|(name, bytes)| name.starts_with("run-") && *bytes == 1_234_567), "{found:?}");
}

#[test]
fn files_of_an_earlier_run_are_not_replaced() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("run-0-000000.raw"), b"earlier").unwrap();
    let refused = Folder::open(place.path(), "run", 1).unwrap_err();
    assert!(refused.to_string().contains("run-0-000000.raw of an earlier run"), "{refused}");
    fs::rename(place.path().join("run-0-000000.raw"), place.path().join(".run-0-000000.raw.part")).unwrap();
    let refused = Folder::open(place.path(), "run", 1).unwrap_err();
    assert!(refused.to_string().contains(".run-0-000000.raw.part of an earlier run"), "{refused}");
    Folder::open(place.path(), "other", 1).unwrap();
    assert!(Folder::open(place.path(), "other", 1).is_ok());
    assert!(Folder::open(&place.path().join("missing"), "run", 1).is_err());
}

#[test]
fn a_directory_that_was_removed_ends_the_source_with_its_name() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path(), "run", 1).unwrap();
    fs::remove_dir(place.path()).unwrap();
    let to = Destination::Directory(folder);
    let failed = run(&plan(10, 5), to, &AtomicBool::new(false), &SourceCounters::default()).unwrap_err();
    let text = failed.to_string();
    assert!(text.contains("cannot write a file to") && text.contains("No such file"), "{text}");
}
