//! A run on two recorders as one recording set: info, verify, export and recover.
use std::path::Path;

use keepup_testkit::{Program, Run};
use serde_json::{Value, json};

use crate::common::{directory, json as output, keepup, mcap_messages, number, recorder, squeezed, until};

const EVENT_BYTES: u64 = 4096;

/// Sends `events` events of one stream; the same seed gives the same events.
fn send(here: &Path, recorder: &mut Program, stream: u32, events: u64, seed: u64) {
    let to = recorder.address().to_string();
    let (stream, events, seed) = (stream.to_string(), events.to_string(), seed.to_string());
    let one = ["source", "csl", "--to", &to, "--streams", "1", "--connections", "1", "--event", "4 KiB"];
    let which = ["--first-stream", &stream, "--events", &events, "--seed", &seed, "--rate", "max"];
    let run = keepup(here, &[&one[..], &which].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
}

fn entry(here: &Path, host: &str, directories: &[&str]) -> Value {
    let info = output(&keepup(here, &["info", directories[0], "--json"]));
    json!({"host": host, "id": info["recording"], "directories": directories, "end": "finished", "why": null})
}

fn write_set(here: &Path, recordings: Vec<Value>) {
    let set = json!({
        "format": "keepup-set", "version": 1, "name": "run-17", "run": null, "id": "ab".repeat(16),
        "created_unix_ns": 1_700_000_000_000_000_000_u64, "fleet": "hall-3", "recordings": recordings,
        "moves": [{"from": "daq1", "to": "daq2", "epoch": 2, "at_unix_ns": 1_700_000_000_500_000_000_u64}],
    });
    std::fs::write(here.join("keepup-set.json"), set.to_string()).unwrap();
}

/// Streams 0 and 2 at `daq1` on two volumes, streams 2 and 3 at `daq2`. The first 60 events of stream 2 are
/// at both.
fn record(here: &Path, seed_of_second: u64) {
    let mut daq1 = recorder(here, &["daq1/a", "daq1/b"], &["--stay"]);
    let mut daq2 = recorder(here, &["daq2/a"], &["--stay"]);
    send(here, &mut daq1, 0, 50, 1);
    send(here, &mut daq1, 2, 60, 5);
    send(here, &mut daq2, 2, 100, seed_of_second);
    send(here, &mut daq2, 3, 20, 1);
    for recorder in [daq1, daq2] {
        recorder.signal("TERM");
        let run = recorder.wait();
        assert_eq!(run.code(), 0, "{run:#?}");
    }
    let daq1 = entry(here, "daq1", &["daq1/a/run", "daq1/b/run"]);
    write_set(here, vec![daq1, entry(here, "daq2", &["daq2/a/run"])]);
}

fn ran(here: &Path, code: i32, arguments: &[&str]) -> Run {
    let run = keepup(here, arguments);
    assert_eq!(run.code(), code, "{arguments:?}: {run:#?}");
    run
}

#[test]
fn two_recordings_are_described_verified_and_exported_as_one() {
    let place = directory();
    let here = place.path();
    record(here, 5);
    let info = ran(here, 0, &["info", "."]);
    let text = squeezed(&info.stdout);
    assert!(text.contains("recording set run-17") && text.contains("here 2 of 2 recordings"), "{text}");
    assert!(text.contains("streams of daq1 to daq2, epoch 2"), "{text}");
    assert!(text.contains("total 170 events, each counted once"), "{text}");
    assert!(text.contains("duplicates 60 events in more than one recording"), "{text}");
    let report = output(&ran(here, 0, &["verify", "keepup-set.json", "--json"]));
    let shared = &report["account"]["streams"]["2"];
    assert_eq!((number(shared, "events"), number(shared, "duplicates")), (100, 60), "{report:#}");
    assert_eq!((&shared["different"], &report["whole"]), (&json!(0), &json!(true)));
    assert_eq!(number(shared, "payload_bytes"), 100 * EVENT_BYTES);
    // The same bytes as those of the recording that has all of the stream.
    ran(here, 0, &["cat", "daq2/a/run", "--stream", "2", "--out", "stream2"]);
    let raw = ran(here, 0, &["export", ".", "--to", "raw", "--out", "raw"]);
    assert!(raw.stdout.contains("3 streams, 170 events, 696,320 bytes"), "{raw:#?}");
    let name = |stream: &str| report["account"]["streams"][stream]["name"].as_str().unwrap().to_owned();
    let exported = std::fs::read(here.join("raw").join(format!("{}.raw", name("2")))).unwrap();
    assert_eq!(exported, std::fs::read(here.join("stream2")).unwrap());
    ran(here, 0, &["export", ".", "--to", "mcap", "--out", "all.mcap"]);
    let mcap = std::fs::read(here.join("all.mcap")).unwrap();
    assert_eq!(mcap_messages(&mcap), (170, 170 * EVENT_BYTES));
    ran(here, 0, &["export", ".", "--to", "nexus", "--out", "run-17.nxs"]);
    let master = std::fs::read(here.join("run-17.nxs")).unwrap();
    let has = |text: &str| master.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("daq1-volume-1-segment-000000") && has("daq2/a/run/segment-000000.mcap"));
    assert!(has("run-17"));
}

#[test]
fn a_recording_elsewhere_is_stated_until_its_place_is_given() {
    let place = directory();
    let here = place.path();
    record(here, 5);
    std::fs::rename(here.join("daq2"), here.join("mounted")).unwrap();
    let info = ran(here, 1, &["info", "."]);
    let text = squeezed(&info.stdout);
    assert!(text.contains("NOT HERE daq2: no recording in") && text.contains("1 of 2 recordings"), "{text}");
    let verify = squeezed(&ran(here, 1, &["verify", "."]).stdout);
    assert!(verify.contains("NOT HERE all or a part of the recording of daq2"), "{verify}");
    assert!(verify.contains("no faults, but NOT COMPLETE"), "{verify}");
    let export = ran(here, 1, &["export", ".", "--to", "raw", "--out", "part"]);
    assert!(export.stderr.contains("the recording of host daq2 is not here"), "{export:#?}");
    assert!(export.stdout.contains("2 streams, 110 events"), "{export:#?}");
    ran(here, 1, &["recover", "."]);
    for verb in ["info", "verify", "recover"] {
        ran(here, 0, &[verb, ".", "--at", "daq2=mounted/a/run"]);
    }
    // Directories of another recording are not those of daq2.
    let other = ran(here, 1, &["info", ".", "--at", "daq2=daq1/a/run"]);
    assert!(squeezed(&other.stdout).contains("daq1/a/run has another recording"), "{other:#?}");
    for (arguments, why) in [
        (&["info", ".", "--at", "daq9=mounted"][..], "hint: its hosts: daq1, daq2"),
        (&["info", ".", "--at", "daq2"], "HOST=DIR"),
        (&["info", ".", "--at", "daq1=a", "--at", "daq1=b"], "twice"),
        (&["info", "daq1/a/run", "--at", "daq1=a"], "not a recording set"),
        (&["info", ".", "daq1/a/run"], "with other recordings"),
        (&["verify", ".", "--sample", "5 %"], "with a recording set"),
        (&["export", ".", "--to", "bagit", "--out", "bag"], "a bag has the files of one recording"),
        (&["export", ".", "--to", "raw", "--out", "x", "--stream", "9"], "no such stream"),
    ] {
        let run = ran(here, 2, arguments);
        assert!(run.stderr.contains(why), "{run:#?}");
    }
    std::fs::write(here.join("keepup-set.json"), "{}").unwrap();
    let run = ran(here, 1, &["info", "."]);
    assert!(run.stderr.contains("it is not a recording set"), "{run:#?}");
}

#[test]
fn different_events_with_the_same_number_are_a_fault() {
    let place = directory();
    let here = place.path();
    record(here, 6);
    let run = ran(here, 1, &["verify", "."]);
    let text = squeezed(&run.stdout);
    assert!(text.contains("stream 2: 60 duplicates have another payload, the first is event 0"), "{text}");
    assert!(text.ends_with(" 1 FAULT"), "{text}");
}

#[test]
#[ignore = "system"]
fn a_killed_recorder_is_recovered_in_its_set() {
    let place = directory();
    let here = place.path();
    let mut daq1 = recorder(here, &["daq1/a"], &["--stay"]);
    let mut daq2 = recorder(here, &["daq2/a"], &["--stay"]);
    send(here, &mut daq1, 2, 60, 5);
    send(here, &mut daq2, 2, 100, 5);
    daq1.signal("KILL");
    daq1.wait();
    daq2.signal("TERM");
    assert_eq!(daq2.wait().code(), 0);
    write_set(here, vec![entry(here, "daq1", &["daq1/a/run"]), entry(here, "daq2", &["daq2/a/run"])]);
    let info = ran(here, 0, &["info", "."]);
    assert!(squeezed(&info.stdout).contains("daq1 CUT OFF"), "{info:#?}");
    // The kernel may keep the lock of a killed recorder until its writes have ended.
    until("the recovery is complete", || keepup(here, &["recover", "."]).code() == 0);
    let again = ran(here, 0, &["recover", "."]);
    assert_eq!(again.stdout.matches("nothing to do").count(), 2, "{again:#?}");
    // All events are at daq2, which ended cleanly: the lost recorder is no loss.
    let report = output(&ran(here, 0, &["verify", ".", "--json"]));
    assert_eq!(report["recordings"][0]["report"]["ending"]["state"], "unclean");
    assert_eq!(number(&report["account"]["streams"]["2"], "duplicates"), 60);
}
