//! `record --after-seal`: a program for each sealed segment, which cannot disturb the recording.
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use keepup_testkit::Run;

use crate::common::{directory, json, keepup, number, recorder, segments, start, verified};

/// Writes a script that logs its segment and then does `what`.
fn script(here: &Path, what: &str) {
    let log = here.join("log");
    let text = format!(
        "#!/bin/sh\necho \"$KEEPUP_VOLUME $KEEPUP_SEGMENT_NUMBER $KEEPUP_SEGMENT_BYTES $2\" >>{}\n{what}\n",
        log.display()
    );
    std::fs::write(here.join("hook"), text).unwrap();
    std::fs::set_permissions(here.join("hook"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Records 80 events of 256 KiB with a hook; returns the recorder's run, whose recording is complete.
fn record(here: &Path, more: &[&str]) -> Run {
    let flags = ["--segment", "4 MiB", "--block", "256 KiB", "--after-seal", "./hook x"];
    let mut record = recorder(here, &["a", "b"], &[&flags[..], more].concat());
    let to = record.address().to_string();
    let source = start(here, &["source", "csl", "--to", &to, "--events", "80", "--rate", "max"]).wait();
    let record = record.wait();
    assert_eq!((source.code(), record.code()), (0, 0), "{source:#?} {record:#?}");
    assert_eq!(json(&record)["whole"], true, "{record:#?}");
    assert_eq!(verified(here, "a/run").0, 80);
    record
}

#[test]
fn every_sealed_segment_is_passed_once() {
    let place = directory();
    let here = place.path();
    script(here, "test -r \"$2\" && test ! -w \"$2\" || test \"$(id -u)\" = 0");
    let report = json(&record(here, &[]));
    let log = std::fs::read_to_string(here.join("log")).unwrap();
    let mut passed: Vec<&str> = log.lines().collect();
    passed.sort_unstable();
    let mut wanted = Vec::new();
    for (volume, dir) in ["a/run", "b/run"].iter().enumerate() {
        for (index, path) in segments(&here.join(dir)).iter().enumerate() {
            let path = path.canonicalize().unwrap();
            let bytes = std::fs::metadata(&path).unwrap().len();
            wanted.push(format!("{volume} {index} {bytes} {}", path.display()));
        }
    }
    wanted.sort_unstable();
    assert_eq!(passed, wanted);
    let runs = &report["after_seal"];
    assert_eq!((number(runs, "succeeded"), number(runs, "failed")), (wanted.len() as u64, 0), "{report:#}");
    assert_eq!(number(&report["incidents"], "total"), 0);
}

#[test]
fn a_failing_hook_is_an_incident() {
    let place = directory();
    let here = place.path();
    script(here, "echo no space >&2; exit 7");
    let report = json(&record(here, &[]));
    assert!(number(&report["after_seal"], "failed") > 2, "{report:#}");
    let first = report["incidents"]["listed"][0].as_str().unwrap();
    assert!(first.contains("exit status: 7; stderr: no space"), "{first}");
}

#[test]
fn a_hanging_hook_does_not_hold_up_the_recording() {
    let place = directory();
    let here = place.path();
    script(here, "sleep 1000");
    let report = json(&record(here, &["--after-seal-timeout", "1 s", "--after-seal-jobs", "1"]));
    let runs = &report["after_seal"];
    assert!(number(runs, "failed") > 0 && number(runs, "succeeded") == 0, "{report:#}");
    let listed = report["incidents"]["listed"].to_string();
    assert!(listed.contains("it took longer than 1 s"), "{listed}");
}

#[test]
fn a_hook_that_does_not_exist_is_refused() {
    let place = directory();
    std::fs::create_dir(place.path().join("a")).unwrap();
    let run = keepup(place.path(), &["record", "--volume", "a", "--after-seal", "./hook"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("no executable program \"./hook\" found"), "{run:#?}");
    assert!(segments(&place.path().join("a")).is_empty());
}
