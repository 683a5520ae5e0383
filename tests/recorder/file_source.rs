//! Simulated detectors that write files: `keepup source --as files`, and trials with it.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use keepup_testkit::program::Program;

use crate::common::{busy_directory, count, directory, json, keepup, squeezed, start, verified};

/// A recorder of the files in `in`.
fn record(here: &Path) -> Program {
    ["in", "a"].iter().for_each(|name| fs::create_dir(here.join(name)).unwrap());
    let settings = ["--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    let arguments = ["record", "--from", "dir:in", "--name", "run", "--json"];
    let mut program = start(here, &[&arguments[..], &settings].concat());
    program.line("writing with ");
    program
}

/// Files of a directory with their content.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn every_file_of_the_simulated_detector_is_restored() {
    let directory = directory();
    let here = directory.path();
    let program = record(here);
    let source = ["source", "csl", "--as", "files", "--to", "dir:in", "--streams", "2", "--events", "120"];
    let run = keepup(here, &[&source[..], &["--event", "150kB", "--rate", "9 MB/s", "--json"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let sent = json(&run);
    assert_eq!((count(&sent["sent"]), count(&sent["lost_at_source"])), ((120, 18_000_000), (0, 0)));
    program.signal("INT");
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["ledger"]["streams"]["0"]["durable"]), (120, 18_000_000), "{account:#}");
    verified(here, "a/run");
    let run = keepup(here, &["export", "a/run", "--to", "files", "--out", "restored"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let written = files(&here.join("in"));
    assert!(written.contains_key("csl-0-000059.raw") && written.contains_key("csl-1-000059.raw"));
    assert!(files(&here.join("restored")) == written, "restored files differ");
    let run = keepup(here, &source);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("of an earlier run"), "{run:#?}");
}

#[test]
fn a_recorder_that_is_too_slow_counts_exactly_what_was_removed() {
    let directory = directory();
    let here = directory.path();
    let program = record(here);
    program.signal("STOP");
    let source = ["source", "csl", "--as", "files", "--to", "dir:in", "--rate", "max", "--events", "100"];
    let more = ["--streams", "1", "--event", "100KiB", "--keep-files", "1MiB"];
    let run = keepup(here, &[&source[..], &more].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    program.signal("CONT");
    assert_eq!(files(&here.join("in")).len(), 10, "1 MiB of files of 100 KiB");
    program.signal("INT");
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["ledger"]["streams"]["0"]["durable"]), (10, 1_024_000), "{account:#}");
    assert_eq!(account["missing_events"], serde_json::json!({"file_unreadable": 90}), "{account:#}");
    let incidents = account["incidents"]["listed"].to_string();
    assert!(incidents.contains("csl-0-000000.raw"), "{incidents}");
}

#[test]
fn a_trial_of_a_detector_that_writes_files_goes_through_files() {
    let directory = busy_directory();
    let here = directory.path();
    ["disk", "detector"].iter().for_each(|name| fs::create_dir(here.join(name)).unwrap());
    let trial = ["trial", "pilatus-100k", "--volume", "disk", "--pool", "64 MiB", "--segment", "32 MiB"];
    let more = ["--time", "1s", "--files-in", "detector", "--keep-files", "30MB", "--json"];
    let run = keepup(here, &[&trial[..], &more].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(squeezed(&run.stderr).contains("protocol files in detector (at most 0.03 GB kept);"), "{run:#?}");
    let result = json(&run);
    let one = &result["runs"][0];
    let ledger = &one["ledger"];
    assert_eq!(count(&ledger["sent"]), (100, 36_600_000), "{ledger:#}");
    assert_eq!((&ledger["durable"], &ledger["verified"]), (&ledger["sent"], &ledger["sent"]));
    assert!(one["notes"].to_string().contains("each event was a file"), "{one:#}");
    for name in ["disk", "detector"] {
        assert!(files(&here.join(name)).is_empty(), "{name} is not empty");
    }
    // Without flow control, full speed would measure losses.
    let more = ["--rate", "max", "--events", "50", "--json", "--dry-run"];
    let run = keepup(here, &[&trial[..], &more].concat());
    assert!(run.stdout.contains("protocol keepup;"), "{run:#?}");
    let run = keepup(here, &["qualify", "pilatus-100k", "--volume", "disk", "--dry-run"]);
    assert!(run.stdout.contains("protocol files in disk (at most 1.07 GB kept):"), "{run:#?}");
}

#[test]
fn the_printed_command_of_a_source_can_be_pasted() {
    let directory = directory();
    let here = directory.path();
    for (place, printed) in [
        ("files", "`keepup record --from dir:files`"),
        ("a b,c", "`keepup record --from 'dir:a b,,c'`"),
        ("$(id);x", "`keepup record --from 'dir:$(id);x'`"),
    ] {
        std::fs::create_dir(here.join(place)).unwrap();
        let to = format!("dir:{place}");
        let run = keepup(here, &["source", "pilatus-100k", "--as", "files", "--to", &to, "--events", "1"]);
        assert_eq!(run.code(), 0, "{run:#?}");
        assert!(run.stderr.contains(printed), "{printed}: {run:#?}");
    }
}

#[test]
fn places_of_files_that_do_not_fit_the_protocol_are_refused() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir(here.join("in")).unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["source", "csl", "--as", "files"], "no directory given"),
        (&["source", "csl", "--as", "files", "--to", "127.0.0.1:1"], "no directory given"),
        (&["source", "csl", "--as", "files", "--to", "dir:"], "no directory given hint: --to dir:PATH"),
        (&["source", "csl", "--as", "spead", "--to", "dir:in"], "cannot use --to dir:PATH with --as spead"),
        (&["trial", "csl", "--files-in", "in", "--to-null"], "the source sends as keepup"),
    ];
    for (arguments, expected) in cases {
        let run = keepup(here, arguments);
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(squeezed(&run.stderr).contains(expected), "{run:#?}");
    }
    let run = keepup(here, &["source", "csl", "--as", "files", "--to", "dir:missing"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("cannot write files to missing: No such file"), "{run:#?}");
    assert!(run.stderr.contains("hint: mkdir -p missing"), "{run:#?}");
}
