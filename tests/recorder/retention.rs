//! Retention: a ring of segments that removes only drained or disposable data.
use std::path::Path;
use std::time::Duration;

use keepup_testkit::Program;
use serde_json::Value;

use crate::common::{count, directory, json, keepup, recorded, recorder, segments, start, until, verified};

const MIB: u64 = 1 << 20;

/// Sends for four seconds, with a buffer for stalls of the machine: this is not a test of the disk.
fn source(here: &Path, record: &mut Program, rate: &str) -> Program {
    let to = record.address().to_string();
    start(
        here,
        &["source", "csl", "--to", &to, "--rate", rate, "--time", "4 s", "--buffer", "1 GB", "--json"],
    )
}

/// Total size of the segments. One may be removed meanwhile.
fn bytes_of(recording: &Path) -> u64 {
    segments(recording).iter().filter_map(|path| std::fs::metadata(path).ok()).map(|of| of.len()).sum()
}

fn removed(report: &Value) -> u64 {
    report["streams"].as_object().unwrap().values().map(|s| count(&s["removed"]).0).sum()
}

#[test]
fn a_ring_stays_below_its_limit_with_consistent_counts() {
    let place = directory();
    let here = place.path();
    let keep = ["--keep", "64 MiB", "--disposable", "--segment", "8 MiB", "--block", "256 KiB"];
    let mut record = recorder(here, &["a", "b"], &keep);
    let (source, record) = (source(here, &mut record, "50 MB/s").wait(), record.wait());
    assert_eq!((source.code(), record.code()), (0, 0), "{source:#?} {record:#?}");
    let sent = count(&json(&source)["sent"]);
    assert!(sent.1 > 3 * 64 * MIB / 2, "{sent:?}");
    let left: u64 = ["a/run", "b/run"].iter().map(|part| bytes_of(&here.join(part))).sum();
    assert!(left <= 64 * MIB, "{left} bytes are there");
    let run = keepup(here, &["verify", "a/run", "--json"]);
    assert_eq!(run.code(), 0, "removed segments are no loss: {run:#?}");
    let report = json(&run);
    assert_eq!(recorded(&report).0 + removed(&report), sent.0, "{report:#}");
    assert!(removed(&report) > sent.0 / 4, "{report:#}");
    assert!(keepup(here, &["info", "a/run"]).stdout.contains("by --keep"));
    let recovered = json(&keepup(here, &["recover", "a/run", "--json"]));
    assert_eq!(recovered["changed"], false, "{recovered:#}");
    let last = (sent.0 - 1).to_string();
    let cat = keepup(here, &["cat", "a/run", "--stream", "0", "--from", &last, "--out", "last"]);
    assert_eq!(cat.code(), 0, "{cat:#?}");
    assert!(std::fs::metadata(here.join("last")).unwrap().len() > 0, "the remaining segments are readable");
    let account = here.join("b/run/removed.jsonl");
    let mut bytes = std::fs::read(&account).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&account, &bytes).unwrap();
    let before = segments(&here.join("b/run"));
    for verb in ["verify", "info", "recover"] {
        let run = keepup(here, &[verb, "a/run"]);
        assert_eq!(run.code(), 1, "{run:#?}");
        assert!(run.stderr.contains("removed.jsonl"), "{run:#?}");
    }
    assert_eq!(segments(&here.join("b/run")), before, "a damaged progress file causes no removal");
}

#[test]
#[ignore = "system"]
fn segments_are_removed_only_after_they_are_drained() {
    let place = directory();
    let here = place.path();
    let keep = ["--keep", "32 MiB", "--segment", "8 MiB", "--block", "256 KiB", "--stay"];
    let mut record = recorder(here, &["a"], &keep);
    let sent = count(&json(&source(here, &mut record, "25 MB/s").wait())["sent"]);
    assert!(bytes_of(&here.join("a/run")) > 2 * 32 * MIB, "nothing was removed");
    assert_eq!(json(&keepup(here, &["info", "a/run", "--json"]))["streams"]["0"]["events"], sent.0);
    let mut sink =
        start(here, &["record", "--listen", "127.0.0.1:0", "--name", "copy", "--volume", "a", "--stay"]);
    let to = format!("tcp://{}", sink.address());
    let drain = keepup(here, &["drain", "a/run", "--to", &to, "--json"]);
    assert_eq!(drain.code(), 0, "{drain:#?}");
    assert_eq!(count(&json(&drain)["durable"]), sent);
    let again = keepup(here, &["drain", "a/run", "--to", &to]);
    assert_ne!(again.code(), 0, "the other sink has other data: {again:#?}");
    assert!(again.stderr.contains("already"), "{again:#?}");
    sink.signal("INT");
    assert_eq!(sink.wait().code(), 0);
    assert_eq!(verified(here, "a/copy"), sent, "the other sink has everything");
    until("the drained segments go", || bytes_of(&here.join("a/run")) <= 32 * MIB);
    record.signal("INT");
    assert_eq!(record.wait().code(), 0);
    let run = keepup(here, &["verify", "a/run", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let report = json(&run);
    assert_eq!(recorded(&report).0 + removed(&report), sent.0, "{report:#}");
}

#[test]
fn a_recovered_ring_counts_removed_segments() {
    let place = directory();
    let here = place.path();
    let keep = ["--keep", "64 MiB", "--disposable", "--segment", "8 MiB", "--block", "256 KiB"];
    let mut record = recorder(here, &["a", "b"], &keep);
    let source = source(here, &mut record, "50 MB/s");
    until("segments go", || {
        here.join("a/run/removed.jsonl").exists() && here.join("b/run/removed.jsonl").exists()
    });
    std::thread::sleep(Duration::from_millis(500));
    record.signal("KILL");
    record.wait();
    source.wait();
    let recovered = keepup(here, &["recover", "a/run", "--json"]);
    assert_eq!(recovered.code(), 0, "{recovered:#?}");
    let report = json(&recovered);
    let stream = &report["streams"]["0"];
    assert!(count(&stream["removed"]).0 > 0, "{report:#}");
    let verify = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!(verify["fault_count"], 0, "{verify:#}");
    assert_eq!(count(&verify["streams"]["0"]["removed"]), count(&stream["removed"]));
}

#[test]
fn an_impossible_retention_limit_is_refused() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("a")).unwrap();
    let refused = |more: &[&str]| {
        let run = keepup(here, &[&["record", "--listen", "127.0.0.1:0", "--volume", "a"], more].concat());
        assert!([2, 3, 4].contains(&run.code()), "{run:#?}");
        assert_eq!(std::fs::read_dir(here.join("a")).unwrap().count(), 0, "nothing was written");
        run.stderr
    };
    assert!(refused(&["--keep", "1 GiB"]).contains("hint: a smaller --segment"));
    assert!(refused(&["--keep", "900000 TB"]).contains("free"), "not enough free space");
    assert!(refused(&["--keep", "soon"]).contains("3 h"));
    assert!(refused(&["--disposable"]).contains("--keep"));
}
