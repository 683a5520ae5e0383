//! Recording, draining and reading back: the ledgers of all programs agree.

use crate::common::{
    count, directory, events, json, keepup, mcap_messages, recorded, recorder, segments, start, until,
    verified,
};

const SONAR: &str = r#"
name = "sonar"
title = "sonar"
[event]
size = "2000 B"
[source]
rate = "50 kHz"
streams = 508
connections = 4
transport = "tcp"
buffer = "64 MiB"
[run]
duration = "1 h"
[[reference]]
what = "all"
value = "made up"
from = "this test"
verified = false
"#;

#[test]
#[ignore = "system"]
fn three_ledgers_agree_to_the_event() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    std::fs::create_dir(here.join("tape")).unwrap();
    let sink = [
        "sink",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "tape",
        "--name",
        "copy",
        "--segment",
        "64 MiB",
        "--json",
    ];
    let mut sink = start(here, &sink);
    let tape = format!("tcp://{}", sink.address());
    let drain = start(here, &["drain", "disk/run", "--follow", "--rate", "60 MB/s", "--to", &tape, "--json"]);
    let source =
        keepup(here, &["source", "csl", "--to", &to, "--time", "3s", "--buffer", "512 MiB", "--json"]);
    assert_eq!(source.code(), 0, "{source:#?}");
    let sent = count(&json(&source)["sent"]);
    assert!(sent.0 > 800, "about 915 events are due in 3 s, {} were sent", sent.0);
    let (record, drain, sink) = (record.wait(), drain.wait(), sink.wait());
    for run in [&record, &drain, &sink] {
        assert_eq!(run.code(), 0, "{run:#?}");
    }
    assert_eq!(count(&json(&record)["received"]), sent);
    assert_eq!(count(&json(&record)["durable"]), sent);
    let seconds = json(&record)["elapsed_seconds"].as_f64().unwrap();
    assert!(seconds > 1.0, "3 s of events did not take {seconds} s");
    assert_eq!(count(&json(&drain)["durable"]), sent);
    assert_eq!(count(&json(&sink)["durable"]), sent);
    assert_eq!(verified(here, "disk/run"), sent);
    assert_eq!(verified(here, "tape/copy"), sent);
    let read =
        segments(&here.join("disk/run")).into_iter().map(|s| mcap_messages(&std::fs::read(s).unwrap()));
    assert_eq!(read.fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1)), sent, "another reader reads the same");
}

#[test]
fn many_streams_on_several_volumes_with_both_placements() {
    for placement in ["free", "pinned"] {
        let directory = directory();
        let here = directory.path();
        let mut record = recorder(here, &["a", "b", "c"], &["--placement", placement]);
        let to = record.address().to_string();
        let source = ["source", "csl", "--to", &to, "--streams", "8", "--connections", "3"];
        let source = keepup(here, &[&source[..], &["--events", "1600", "--rate", "max", "--json"]].concat());
        assert_eq!(source.code(), 0, "{source:#?}");
        assert_eq!(record.wait().code(), 0);
        let sent = count(&json(&source)["sent"]);
        assert_eq!(verified(here, "a/run"), sent, "{placement}");
        for volume in ["a", "b", "c"] {
            assert!(!segments(&here.join(volume).join("run")).is_empty(), "{placement}: {volume} was used");
        }
    }
}

#[test]
fn five_hundred_streams_of_small_events_are_recorded() {
    let directory = directory();
    let here = directory.path();
    std::fs::write(here.join("sonar.toml"), SONAR).unwrap();
    let mut record = recorder(here, &["disk"], &["--pool", "256 MiB"]);
    let to = record.address().to_string();
    let source = keepup(here, &["source", "./sonar.toml", "--to", &to, "--time", "2s", "--json"]);
    assert_eq!(source.code(), 0, "{source:#?}");
    let record = record.wait();
    let report = json(&record);
    assert!(report["pool_bytes_used_max"].as_u64() <= report["pool_bytes"].as_u64());
    assert_eq!(verified(here, "disk/run"), count(&json(&source)["sent"]));
}

#[test]
#[ignore = "system"]
fn a_copy_keeps_the_metadata_of_the_original() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &["--run", "17", "--meta", "sample=quartz"]);
    let to = record.address().to_string();
    assert_eq!(keepup(here, &["source", "csl-old", "--to", &to, "--events", "20"]).code(), 0);
    assert_eq!(record.wait().code(), 0);
    let info = |recording: &str| json(&keepup(here, &["info", recording, "--json"]));
    let original = info("disk/run");
    for volume in ["tape", "second", "third"] {
        std::fs::create_dir(here.join(volume)).unwrap();
    }
    let only = |volume: &str| {
        let mut entries = std::fs::read_dir(here.join(volume)).unwrap();
        entries.next().unwrap().unwrap().path().display().to_string()
    };
    let sink = ["sink", "--listen", "127.0.0.1:0", "--pool", "64 MiB", "--segment", "32 MiB", "--to"];
    let mut sink = start(here, &[&sink[..], &["tape"]].concat());
    let to = format!("tcp://{}", sink.address());
    assert_eq!(keepup(here, &["drain", "disk/run", "--to", &to]).code(), 0);
    assert_eq!(sink.wait().code(), 0);
    // A copy in a directory, and a copy of that copy.
    assert_eq!(keepup(here, &["drain", "disk/run", "--to", "second"]).code(), 0);
    assert_eq!(keepup(here, &["drain", &only("tape"), "--to", "third"]).code(), 0);
    for volume in ["tape", "second", "third"] {
        let copy = info(&only(volume));
        for key in ["run", "metadata"] {
            assert_eq!(copy[key], original[key], "{key} of {copy:#}");
        }
        let origin = &copy["origin"];
        for key in ["name", "recording", "created_unix_ns"] {
            assert_eq!(origin[key], original[key], "{key} of {origin:#}");
        }
        assert_ne!(copy["recording"], original["recording"]);
        assert_eq!(verified(here, &only(volume)).0, 20);
    }
    // A recording is not a copy, regardless of its source.
    let mut other = recorder(here, &["other"], &["--run", "3"]);
    let to = format!("tcp://{}", other.address());
    assert_eq!(keepup(here, &["drain", "disk/run", "--to", &to]).code(), 0);
    assert_eq!(other.wait().code(), 0);
    let other = info("other/run");
    assert_eq!(
        (other["run"].as_u64(), other["origin"].as_str(), other["metadata"].to_string()),
        (Some(3), None, "{}".into())
    );
}

#[test]
fn an_orderly_stop_loses_no_received_event() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--time", "60s", "--json"]);
    until("the first segment is full", || segments(&here.join("disk/run")).len() > 2);
    record.signal("TERM");
    let record = record.wait();
    let report = json(&record);
    assert_eq!(report["received"], report["durable"], "{record:#?}");
    assert_eq!(verified(here, "disk/run"), count(&report["durable"]));
    let source = source.wait();
    assert_eq!(source.code(), 1, "the source reports it: {source:#?}");
    assert!(source.stderr.contains("stopped"), "{source:#?}");
}

#[test]
fn a_kill_loses_no_acknowledged_event() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--time", "60s", "--json"]);
    // 32 MiB each: when the third segment or its successor exists, more than one was acknowledged.
    until("four segments are there", || segments(&here.join("disk/run")).len() > 3);
    record.signal("KILL");
    drop(record.wait());
    let source = source.wait();
    let acknowledged = events(&json(&source)["durable"]);
    assert!(acknowledged > 100, "{source:#?}");
    let verify = keepup(here, &["verify", "disk/run", "--json"]);
    assert_eq!(verify.code(), 1, "it did not end cleanly");
    let report = json(&verify);
    assert_eq!(report["fault_count"], 0, "{verify:#?}");
    // The journal's watermark may lag behind the last acknowledgement; the blocks must not.
    let on_disk: u64 =
        segments(&here.join("disk/run")).iter().map(|s| mcap_messages(&std::fs::read(s).unwrap()).0).sum();
    assert!(on_disk >= acknowledged, "{on_disk} of {acknowledged} acknowledged events are on disk");
    assert!(recorded(&report).0 <= on_disk);
}

#[test]
fn a_truncated_recording_is_read_up_to_the_end() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "60", "--rate", "max", "--json"];
    assert_eq!(keepup(here, &source).code(), 0);
    assert_eq!(record.wait().code(), 0);
    let bytes = std::fs::read(&segments(&here.join("disk/run"))[0]).unwrap();
    let (whole, _) = mcap_messages(&bytes);
    assert_eq!(whole, 60);
    let mut seen = 0;
    for step in 0..=50 {
        let cut = bytes.len() * step / 50;
        let (messages, payload) = mcap_messages(&bytes[..cut]);
        assert!(messages >= seen, "a longer part never contains fewer messages");
        // A block holds at most four of these events, and ends with a sector that is filled up. All blocks
        // before the truncation but the last must be read.
        assert!(
            payload + 4 * (262_144 + 8192) + (messages / 4 + 1) * 4096 + 8192 >= cut as u64,
            "{messages} messages up to byte {cut}"
        );
        seen = messages;
    }
}

#[test]
fn the_reported_cpu_time_is_that_of_the_kernel() {
    let place = directory();
    let mut recorder = recorder(place.path(), &["a"], &[]);
    let address = recorder.address().to_string();
    let sent = ["source", "csl", "--to", &address, "--rate", "max", "--events", "4096", "--json"];
    assert_eq!(keepup(place.path(), &sent).code(), 0);
    let run = recorder.wait();
    let printed_s = json(&run)["cpu_seconds"].as_f64().unwrap();
    let counted_s = run.cpu_ns as f64 / 1e9;
    // The printed time cannot include that of releasing its memory.
    let left_s = counted_s - printed_s;
    assert!(
        left_s >= 0.0 && left_s < 0.05 * counted_s + 0.05,
        "{printed_s} s printed, {counted_s} s by wait4"
    );
}

#[test]
fn the_null_target_counts_everything_and_stores_nothing() {
    let directory = directory();
    let here = directory.path();
    let mut record = start(here, &["record", "--listen", "127.0.0.1:0", "--to-null", "--json"]);
    let to = record.address().to_string();
    let source = keepup(here, &["source", "csl", "--to", &to, "--events", "500", "--rate", "max", "--json"]);
    let record = record.wait();
    assert_eq!(count(&json(&record)["durable"]), count(&json(&source)["sent"]));
    assert_eq!(std::fs::read_dir(here).unwrap().count(), 0);
}

#[test]
fn events_lost_at_the_source_are_counted_once_with_their_cause() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let sink = ["sink", "--listen", "127.0.0.1:0", "--to-null", "--rate", "20 MB/s", "--json"];
    let mut sink = start(here, &sink);
    let to = sink.address().to_string();
    let source = ["source", "csl", "--to", &to, "--time", "2s", "--buffer", "1 MiB", "--json"];
    let source = keepup(here, &source);
    assert_eq!(source.code(), 1, "events were lost");
    let (account, report) = (json(&source), json(&sink.wait()));
    let lost = count(&account["lost_at_source"]).0;
    assert!(lost > 0);
    assert_eq!(count(&account["due"]).0, count(&account["sent"]).0 + lost);
    assert_eq!(count(&report["received"]), count(&account["sent"]));
    assert_eq!(report["missing_events"]["source"], lost);
}
