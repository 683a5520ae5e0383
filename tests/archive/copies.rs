//! Copies to an archive and back, without faults of the server.
use std::path::Path;

use keepup_testkit::Run;

use super::server::Server;
use crate::common::{directory, json, keepup, number, recorded, recorder, segments, start, until, verified};

/// Events of a recording of these tests: several segments of several parts.
const EVENTS: &str = "400";

/// Records `events` events of 256 KiB on `volumes`; returns events and bytes.
pub(super) fn record(here: &Path, volumes: &[&str], events: &str, more: &[&str]) -> (u64, u64) {
    let mut record = recorder(here, volumes, &[&["--meta", "sample=x", "--run", "7"], more].concat());
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", events, "--rate", "max", "--json"];
    let source = start(here, &source).wait();
    let record = record.wait();
    assert_eq!((source.code(), record.code()), (0, 0), "{source:#?} {record:#?}");
    verified(here, &format!("{}/run", volumes[0]))
}

/// Restores `bucket/pre/run` and verifies it, with the originals out of the way. Returns events and bytes.
pub(super) fn restored(server: &Server, here: &Path) -> (u64, u64) {
    let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    verified(here, "back")
}

/// Drains the recording `a/run` to `bucket/pre`.
pub(super) fn drained(server: &Server, here: &Path, more: &[&str]) -> Run {
    server.keepup(here, &[&["drain", "a/run", "--to", "s3://bucket/pre", "--json"], more].concat())
}

#[test]
fn a_recording_comes_back_whole_from_s3() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    let made = record(here, &["a", "b"], EVENTS, &[]);
    let run = drained(&server, here, &["--read-back"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(json(&run)["archived"], true, "{run:#?}");
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    std::fs::rename(here.join("b"), here.join("away-b")).unwrap();
    assert_eq!(restored(&server, here), made);
    for (one, other) in [("away/run", "back"), ("away-b/run", "back/volume-1")] {
        let (one, other) = (segments(&here.join(one)), segments(&here.join(other)));
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(&other) {
            assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap(), "{}", one.display());
            let time = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
            assert_eq!(time(one), time(other));
        }
    }
    let info = keepup(here, &["info", "back"]).stdout;
    assert!(info.contains("sample") && info.contains('7'), "{info}");
    assert!(here.join("back/recording.nxs").exists());
    let again = server.keepup(here, &["restore", "s3://bucket/pre/run", "back"]);
    assert_eq!(again.code(), 3, "a recording is not overwritten: {again:#?}");
}

#[test]
fn what_is_in_the_archive_is_not_sent_again() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    record(here, &["a"], EVENTS, &[]);
    assert_eq!(drained(&server, here, &[]).code(), 0);
    server.requests("");
    let again = drained(&server, here, &[]);
    let report = json(&again);
    assert_eq!((again.code(), number(&report, "known_bytes")), (0, number(&report, "bytes")), "{again:#?}");
    let sent = server.requests("PUT");
    assert!(sent.iter().all(|request| request.contains("keepup-archive.json")), "{sent:#?}");
}

#[test]
fn a_killed_copy_continues_with_the_next_part() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    let made = record(here, &["a"], EVENTS, &[]);
    let arguments = ["drain", "a/run", "--to", "s3://bucket/pre", "--rate", "20 MB/s", "--connections", "1"];
    let drain = server.start_keepup(here, &arguments);
    // Parts of the second segment, while the store may still put the first one together.
    until("parts arrive", || server.count("partNumber=2") >= 2);
    drain.signal("KILL");
    drain.wait();
    let before = server.requests("partNumber");
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(number(&json(&run), "known_bytes") >= 32 << 20, "{run:#?}");
    let after = server.requests("partNumber");
    // The last request may not have been answered.
    let done = &before[..before.len() - 1];
    assert!(done.iter().all(|request| !after.contains(request)), "{done:#?} {after:#?}");
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    assert_eq!(restored(&server, here), made);
}

#[test]
fn sealed_segments_are_sent_while_recording() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    let keep = ["--keep", "32 MiB", "--segment", "4 MiB", "--block", "256 KiB"];
    let mut record = recorder(here, &["a"], &keep);
    let to = record.address().to_string();
    let drain =
        server.start_keepup(here, &["drain", "a/run", "--follow", "--to", "s3://bucket/pre", "--json"]);
    let source = ["source", "csl", "--to", &to, "--rate", "20 MB/s", "--time", "5 s", "--json"];
    let source = start(here, &source).wait();
    let (record, drain) = (record.wait(), drain.wait());
    assert_eq!((source.code(), record.code(), drain.code()), (0, 0, 0), "{record:#?} {drain:#?}");
    // A copy to an archive is no reason to remove what `--keep` protects.
    assert!(here.join("a/run/segment-000000.mcap").exists(), "nothing was drained");
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    let all = json(&source)["sent"].clone();
    assert_eq!(restored(&server, here).0, number(&all, "events"));
}

/// The second one loses nothing, and must not be advised to remove the state of the first one.
#[test]
fn a_second_copy_to_the_same_archive_is_refused_while_the_first_one_runs() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("store")).unwrap();
    let mut record = recorder(here, &["a"], &["--stay"]);
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--events", "4", "--rate", "max"]).wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    let url = format!("file://{}", here.join("store").display());
    let drain = ["drain", "a/run", "--to", &url, "--follow"];
    let first = start(here, &drain);
    let state = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("archive-");
    until("the first copy has begun", || std::fs::read_dir(here.join("a/run")).unwrap().flatten().any(state));
    let refused = |run: &Run| run.stderr.contains("another drain");
    let second = std::cell::RefCell::new(None);
    until("the first copy holds its lock", || {
        let run = keepup(here, &drain[..4]);
        let is_refused = refused(&run);
        second.replace(Some(run));
        is_refused
    });
    let second = second.into_inner().unwrap();
    assert!(second.code() == 4 && !second.stderr.contains("remove"), "{second:#?}");
    // A lock of the kernel: a drain that was killed holds nothing.
    first.signal("KILL");
    first.wait();
    record.signal("TERM");
    assert_eq!(record.wait().code(), 0);
    let last = keepup(here, &drain[..4]);
    assert_eq!(last.code(), 0, "{last:#?}");
}

#[test]
fn a_directory_is_an_archive_too() {
    let place = directory();
    let here = place.path();
    let made = record(here, &["a"], EVENTS, &[]);
    std::fs::create_dir(here.join("tape")).unwrap();
    let tape = format!("file://{}", here.join("tape").display());
    let run = keepup(here, &["drain", "a/run", "--to", &tape]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stdout.contains("archived: complete"), "{run:#?}");
    assert_eq!(verified(here, "tape/run"), made, "an archive in a directory is a recording");
    let run = keepup(here, &["restore", &format!("{tape}/run"), "back"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(verified(here, "back"), made);
    let none = keepup(here, &["restore", &tape, "other"]);
    assert_eq!(none.code(), 2, "{none:#?}");
    assert!(none.stderr.contains("it has no inventory") && none.stderr.contains("hint: "), "{none:#?}");
    let run = keepup(here, &["drain", "a/run", "--to", "file:///does/not/exist"]);
    assert!(run.code() == 2 && run.stderr.contains("the directory does not exist"), "{run:#?}");
}

#[test]
fn a_recording_in_progress_or_cut_off_is_not_archived() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    let mut record = recorder(here, &["a"], &["--stay", "--segment", "4 MiB", "--block", "256 KiB"]);
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "80", "--rate", "max"];
    assert_eq!(start(here, &source).wait().code(), 0);
    let run = drained(&server, here, &[]);
    assert_eq!((run.code(), &json(&run)["archived"]), (1, &false.into()), "{run:#?}");
    record.signal("KILL");
    record.wait();
    let run = drained(&server, here, &[]);
    assert_eq!(run.code(), 1, "{run:#?}");
    assert!(run.stderr.contains("was cut off") && run.stderr.contains("hint: keepup recover"), "{run:#?}");
    keepup(here, &["recover", "a/run"]);
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!(drained(&server, here, &[]).code(), 0);
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let again = json(&keepup(here, &["verify", "back", "--json"]));
    assert_eq!(recorded(&again), recorded(&report));
}

#[test]
fn what_is_not_whole_is_not_copied() {
    let place = directory();
    let here = place.path();
    record(here, &["a"], EVENTS, &[]);
    let own = format!("file://{}", here.join("a").display());
    let run = keepup(here, &["drain", "a/run", "--to", &own]);
    assert!(run.code() != 0 && run.stderr.contains("it is the recording itself"), "onto itself: {run:#?}");
    let segment = &segments(&here.join("a/run"))[0];
    let file = std::fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.set_len(file.metadata().unwrap().len() - 4096).unwrap();
    std::fs::create_dir(here.join("tape")).unwrap();
    let tape = format!("file://{}", here.join("tape").display());
    let run = keepup(here, &["drain", "a/run", "--to", &tape]);
    assert!(run.code() != 0 && run.stderr.contains("length"), "{run:#?}");
    assert!(!here.join("tape/run/keepup-archive.json").exists());
}
