//! Common mistakes of new users: documented exit codes and useful hints.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use keepup_testkit::Program;

use crate::common::{directory, json, keepup, recorder, start, until, verified};

/// Records 200 events to `disk/run`.
fn recorded(here: &Path) {
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let source = keepup(here, &["source", "csl-old", "--to", &to, "--events", "200", "--rate", "max"]);
    assert_eq!(source.code(), 0, "{source:#?}");
    let record = record.wait();
    assert_eq!(record.code(), 0, "{record:#?}");
}

#[test]
fn an_address_without_a_scheme_is_not_used_as_a_directory() {
    let directory = directory();
    let here = directory.path();
    recorded(here);
    for to in ["127.0.0.1:1", "localhost:7612", "[::1]:7612", "http://127.0.0.1:7612"] {
        let run = keepup(here, &["drain", "disk/run", "--to", to]);
        assert_eq!(run.code(), 2, "{to}: {run:#?}");
        let address = to.trim_start_matches("http://");
        assert!(run.stderr.contains(&format!("hint: --to tcp://{address}")), "{to}: {run:#?}");
        assert!(!run.stderr.contains("mkdir"), "{to}: {run:#?}");
    }
    let missing = keepup(here, &["drain", "disk/run", "--to", "tape"]);
    assert_eq!(missing.code(), 2, "{missing:#?}");
    assert!(missing.stderr.contains("hint: mkdir -p tape"), "{missing:#?}");
    std::fs::create_dir(here.join("127.0.0.1:1")).unwrap();
    let there = keepup(here, &["drain", "disk/run", "--to", "127.0.0.1:1"]);
    assert_eq!(there.code(), 0, "an existing directory of that name is used: {there:#?}");
}

#[test]
fn names_that_cannot_be_used_everywhere_are_refused_with_a_hint() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("a")).unwrap();
    let long = "x".repeat(201);
    let names = ["", ".", ".hidden", "a/b", "tab\tbed", "bell\u{7}", "new\nline", "\u{202e}gnp", &long];
    let refused = |arguments: &[&str]| {
        let run = keepup(here, arguments);
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(run.stderr.contains("error: cannot ") && run.stderr.contains("hint: "), "{run:#?}");
        assert_eq!(std::fs::read_dir(here.join("a")).unwrap().count(), 0, "{run:#?}");
    };
    for name in names {
        refused(&["record", "--listen", "127.0.0.1:0", "--volume", "a", &format!("--name={name}")]);
    }
    refused(&["record", "--listen", "127.0.0.1:0", "--volume", "a", "--meta", "sample=\u{7}"]);
    let volume = here.join(OsStr::from_bytes(b"byte-\xFF"));
    std::fs::create_dir(&volume).unwrap();
    let record = std::process::Command::new(env!("CARGO_BIN_EXE_keepup"))
        .args(["record", "--listen", "127.0.0.1:0", "--volume"])
        .arg(&volume)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&record.stderr);
    assert_eq!(record.status.code(), Some(2), "{said}");
    assert!(said.contains("its path is not UTF-8") && said.contains("hint: rename the directory"), "{said}");
    assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 0);
}

#[test]
fn a_drain_to_a_closed_port_is_an_environment_error() {
    let directory = directory();
    let here = directory.path();
    recorded(here);
    let run = keepup(here, &["drain", "disk/run", "--to", "tcp://127.0.0.1:1"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("hint: "), "{run:#?}");
}

#[test]
fn a_recorder_stopped_before_the_first_event_leaves_nothing() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let base = ["--listen", "127.0.0.1:0", "--pool", "64 MiB", "--segment", "32 MiB"];
    let verbs: [&[&str]; 4] = [
        &["record", "--volume", "disk"],
        &["record", "--volume", "disk", "--stay", "--keep", "1 GB"],
        &["record", "--volume", "disk", "--stop-after", "100 ms"],
        &["sink", "--to", "disk"],
    ];
    for verb in verbs {
        let mut program = start(here, &[verb, &base].concat());
        program.address();
        if !verb.contains(&"--stop-after") {
            program.signal("INT");
        }
        let run = program.wait();
        assert_eq!(run.code(), 0, "{verb:?}: {run:#?}");
        assert!(run.stdout.contains("no events received\n  removed  disk/keepup-"), "{verb:?}: {run:#?}");
        assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "{verb:?}");
    }
}

#[test]
fn existing_directories_and_recorded_events_are_kept() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir_all(here.join("disk/run")).unwrap();
    let mut record = recorder(here, &["disk"], &["--stay"]);
    record.address();
    record.signal("INT");
    let record = record.wait();
    assert_eq!(json(&record)["removed"], true, "{record:#?}");
    assert_eq!(std::fs::read_dir(here.join("disk/run")).unwrap().count(), 0);
    let mut record = recorder(here, &["disk"], &["--stay"]);
    let to = record.address().to_string();
    let source = keepup(here, &["source", "csl-old", "--to", &to, "--events", "1"]);
    assert_eq!(source.code(), 0, "{source:#?}");
    record.signal("INT");
    let record = record.wait();
    assert_eq!((&json(&record)["removed"], record.code()), (&false.into(), 0), "{record:#?}");
    assert_eq!(verified(here, "disk/run").0, 1);
}

/// A sink that accepts 2 MB/s, and its address.
fn slow_sink(here: &Path, name: &str) -> (Program, String) {
    let sink = ["sink", "--listen", "127.0.0.1:0", "--to", "disk", "--name", name, "--rate", "2 MB/s"];
    let mut sink = start(here, &[&sink[..], &["--segment", "32 MiB", "--pool", "64 MiB"]].concat());
    let to = format!("tcp://{}", sink.address());
    (sink, to)
}

/// Waits until the sink has written data.
fn wait_for_data(here: &Path, name: &str) {
    let journal = here.join("disk").join(name).join("journal.jsonl");
    until("the sink has something", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"t\":\"watermark\""))
    });
}

#[test]
#[ignore = "system"]
fn an_interrupted_drain_is_reported() {
    let directory = directory();
    let here = directory.path();
    recorded(here);
    // One waits for its own rate limit, the other for the sink.
    for (name, rate) in [("paced", "2 MB/s"), ("blocked", "1 GB/s")] {
        let (sink, to) = slow_sink(here, name);
        let drain = start(here, &["drain", "disk/run", "--to", &to, "--rate", rate]);
        wait_for_data(here, name);
        drain.signal("INT");
        let drain = drain.wait();
        assert_eq!(drain.code(), 130, "{name}: {drain:#?}");
        sink.wait();
    }
}

#[test]
#[ignore = "system"]
fn a_sink_that_disconnects_is_an_environment_error() {
    let directory = directory();
    let here = directory.path();
    recorded(here);
    for signal in ["KILL", "INT"] {
        let (sink, to) = slow_sink(here, signal);
        let drain = start(here, &["drain", "disk/run", "--to", &to, "--json"]);
        wait_for_data(here, signal);
        sink.signal(signal);
        sink.wait();
        let drain = drain.wait();
        assert_eq!(drain.code(), 4, "{signal}: {drain:#?}");
        assert!(drain.stderr.contains("hint: "), "{signal}: {drain:#?}");
    }
}

const TAKEN: &str = "taken: it exists already\nhint: another --out PATH; nothing is ever overwritten";

#[test]
fn an_export_over_an_existing_file_is_refused() {
    let directory = directory();
    let here = directory.path();
    recorded(here);
    std::fs::write(here.join("taken"), "mine").unwrap();
    for form in ["raw", "mcap", "zarr-reference", "nexus"] {
        let run = keepup(here, &["export", "disk/run", "--to", form, "--out", "taken"]);
        assert_eq!(run.code(), 3, "{form}: {run:#?}");
        assert!(run.stderr.contains(TAKEN), "{form}: {run:#?}");
    }
    let cat = keepup(here, &["cat", "disk/run", "--stream", "0", "--out", "taken"]);
    assert!(cat.code() == 3 && cat.stderr.contains(TAKEN), "{cat:#?}");
    assert_eq!(std::fs::read_to_string(here.join("taken")).unwrap(), "mine");
}

#[test]
fn a_mistyped_profile_gets_a_suggestion() {
    let directory = directory();
    let here = directory.path();
    let verbs: [&[&str]; 6] = [
        &["qualify", "clx"],
        &["trial", "clx"],
        &["source", "clx", "--to", "127.0.0.1:1"],
        &["record", "--profile", "clx"],
        &["profile", "show", "clx"],
        &["doctor", "clx"],
    ];
    for verb in verbs {
        let run = keepup(here, verb);
        assert_eq!(run.code(), 2, "{verb:?}: {run:#?}");
        assert!(run.stderr.contains("did you mean csl?"), "{verb:?}: {run:#?}");
        assert!(run.stderr.contains("`keepup profile list` shows all of them"), "{verb:?}: {run:#?}");
    }
}

#[test]
fn several_recorders_need_the_protocol_with_acknowledgements_and_a_fleet() {
    let directory = directory();
    let here = directory.path();
    let mut record = recorder(here, &["disk"], &[]);
    let to = record.address().to_string();
    let both = ["source", "csl-old", "--to", &to, "--to", &to];
    let run = keepup(here, &[&both[..], &["--as", "udp", "--event", "8024B"]].concat());
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("hint: --as keepup"), "{run:#?}");
    let run = keepup(here, &[&both[..2], &["--to", "dir:a", "--to", "dir:b"]].concat());
    assert_eq!(run.code(), 2, "{run:#?}");
    let run = keepup(here, &both);
    assert_eq!(run.code(), 4, "a recorder without a fleet: {run:#?}");
    assert!(run.stderr.contains("the recorder refused: "), "{run:#?}");
}
