//! `record --keep-until archived`: a segment is removed only once an archive has it.
use std::path::{Path, PathBuf};

use keepup_testkit::Program;

use super::copies::{drained, restored};
use super::server::Server;
use crate::common::{directory, json, keepup, number, recorded, recorder, segments, start, until};

const MIB: u64 = 1 << 20;
const TO: [&str; 4] = ["drain", "a/run", "--to", "s3://bucket/pre"];

/// A recorder that keeps segments of 4 MiB until they are archived, beyond this limit.
fn ring(here: &Path, keep: &str) -> Program {
    let flags = ["--keep-until", "archived", "--segment", "4 MiB", "--block", "256 KiB", "--stay"];
    recorder(here, &["a"], &[&["--keep", keep], flags.as_slice()].concat())
}

/// Sends for this long; returns the number of events.
fn send(here: &Path, record: &mut Program, time: &str) -> u64 {
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--rate", "20 MB/s", "--time", time, "--json"];
    let source = start(here, &source).wait();
    assert_eq!(source.code(), 0, "{source:#?}");
    number(&json(&source)["sent"], "events")
}

fn bytes_left(here: &Path) -> u64 {
    let all = segments(&here.join("a/run"));
    all.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|of| of.len()).sum()
}

/// Number of the oldest segment.
fn oldest(here: &Path) -> u32 {
    let all = segments(&here.join("a/run"));
    let number = |path: &PathBuf| path.file_stem()?.to_str()?.strip_prefix("segment-")?.parse().ok();
    all.iter().filter_map(number).min().unwrap()
}

fn state_file(here: &Path) -> PathBuf {
    let entries = std::fs::read_dir(here.join("a/run")).unwrap().map(|entry| entry.unwrap().path());
    let is_state = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("archive-");
    entries.into_iter().find(is_state).unwrap()
}

#[test]
fn a_ring_keeps_segments_until_they_are_archived() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    let mut record = ring(here, "32 MiB");
    let sent = send(here, &mut record, "4 s");
    assert_eq!(oldest(here), 0, "nothing is archived yet");
    assert!(bytes_left(here) > 2 * 32 * MIB);
    let info = json(&keepup(here, &["info", "a/run", "--json"]));
    assert_eq!((&info["volumes"][0]["archived"], &info["archives"]), (&0.into(), &serde_json::json!([])));
    let drain = server.start_keepup(here, &[&TO[..], &["--follow", "--json"]].concat());
    until("segments are removed", || bytes_left(here) <= 32 * MIB);
    let info = || json(&keepup(here, &["info", "a/run", "--json", "--segments"]));
    until("the remaining segments are archived", || number(&info()["volumes"][0], "archived") >= 3);
    let info = info();
    let archive = &info["archives"][0];
    assert_eq!(archive["to"], "s3://bucket/pre/run", "{info:#}");
    assert!(number(archive, "segments") > number(&info["volumes"][0], "archived"), "{info:#}");
    assert_eq!(info["volumes"][0]["segments"][0]["archived"], true, "{info:#}");
    record.signal("INT");
    let (record, drain) = (record.wait(), drain.wait());
    assert_eq!((record.code(), drain.code()), (0, 0), "{record:#?} {drain:#?}");
    let report = json(&drain);
    assert!(number(&report, "archived_segments") > number(&report, "sealed_segments"), "{report:#}");
    let text = keepup(here, &["info", "a/run", "--segments"]).stdout;
    assert!(text.contains("removed after they are archived") && text.contains("sealed, archived"), "{text}");
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    assert_eq!(restored(&server, here).0, sent, "the archive has what was removed");
}

#[test]
fn a_killed_copy_and_a_lost_state_file_lose_nothing() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    let mut record = ring(here, "32 MiB");
    let mut sent = send(here, &mut record, "3 s");
    let drain = server.start_keepup(here, &[&TO[..], &["--follow"]].concat());
    until("segments are removed", || oldest(here) > 1);
    drain.signal("KILL");
    drain.wait();
    std::fs::remove_file(state_file(here)).unwrap();
    let before = oldest(here);
    // The recorder looks for segments to remove every second.
    sent += send(here, &mut record, "4 s");
    assert!(oldest(here) <= before + 1, "without the state file, nothing is proven");
    assert!(bytes_left(here) > 2 * 32 * MIB);
    let drain = server.start_keepup(here, &[&TO[..], &["--follow", "--json"]].concat());
    until("segments are removed again", || bytes_left(here) <= 32 * MIB);
    record.signal("INT");
    let (record, drain) = (record.wait(), drain.wait());
    assert_eq!((record.code(), drain.code()), (0, 0), "{record:#?} {drain:#?}");
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    assert_eq!(restored(&server, here).0, sent);
}

#[test]
fn a_recorder_that_is_killed_before_the_removal_loses_nothing() {
    let place = directory();
    let here = place.path();
    let server = Server::start(&here.join("s3"));
    // Nothing is due for removal yet.
    let mut record = ring(here, "1 h");
    send(here, &mut record, "2 s");
    let drain = server.start_keepup(here, &[&TO[..], &["--follow"]].concat());
    let archived = || {
        let info = json(&keepup(here, &["info", "a/run", "--json"]));
        info["volumes"][0]["archived"].as_u64().unwrap_or(0)
    };
    until("segments are confirmed", || archived() >= 3);
    record.signal("KILL");
    record.wait();
    let drain = drain.wait();
    assert!(drain.code() == 1 && drain.stderr.contains("was cut off"), "{drain:#?}");
    assert_eq!(oldest(here), 0);
    keepup(here, &["recover", "a/run"]);
    let all = recorded(&json(&keepup(here, &["verify", "a/run", "--json"])));
    let drain = drained(&server, here, &[]);
    assert_eq!(drain.code(), 0, "{drain:#?}");
    std::fs::rename(here.join("a"), here.join("away")).unwrap();
    let run = server.keepup(here, &["restore", "s3://bucket/pre/run", "back", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(recorded(&json(&keepup(here, &["verify", "back", "--json"]))), all);
}
