//! `keepup qualify` on any machine: relations, never speeds.
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::{busy_directory, count, directory, json, keepup, qualified, squeezed, start};

const FIELDS: [&str; 16] = [
    "verdict",
    "profile",
    "required_bytes_per_second",
    "knee_bytes_per_second",
    "qualified_bytes_per_second",
    "headroom",
    "bottleneck",
    "ceilings",
    "ledger",
    "cpu",
    "trials",
    "limits",
    "result_directory",
    "environment_hash",
    "soak",
    "storage",
];

#[test]
#[ignore = "system"]
fn a_quick_qualification_is_complete_and_leaves_no_files() {
    let directory = busy_directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let arguments = ["qualify", "csl-old", "--volume", "disk", "--quick", "--max-write", "48 GB", "--json"];
    let run = keepup(here, &arguments);
    let result = qualified(&run);
    for field in FIELDS {
        assert!(result.get(field).is_some(), "no {field} in {result}");
    }
    let ledger = &result["ledger"];
    let (sent, lost_at_source) = (count(&ledger["sent"]), count(&ledger["lost_at_source"]));
    let (durable, lost) = (count(&ledger["durable"]), count(&ledger["lost"]));
    assert_eq!(sent.0 + lost_at_source.0, durable.0 + lost.0);
    if run.code() == 0 {
        assert_eq!(lost.0, 0);
        let limits = result["limits"].as_array().unwrap();
        // The time for it is limited, and the page says so.
        let says_sample =
            |limit: &Value| limit.as_str().unwrap().contains("segments of the soak were read back");
        let is_sample = limits.iter().any(says_sample);
        assert_eq!(count(&ledger["verified"]) == durable, !is_sample, "{ledger:#} {limits:#?}");
        assert!(count(&ledger["verified"]).0 > 0, "{ledger:#}");
        let read = "read back from the disks: the page cache was dropped before";
        assert!(limits.iter().any(|limit| limit == read), "{limits:#?}");
        let (qualified, required) =
            (&result["qualified_bytes_per_second"], &result["required_bytes_per_second"]);
        assert!(qualified.as_f64() >= required.as_f64());
        assert!(result["knee_bytes_per_second"].as_f64() >= qualified.as_f64());
    }
    assert!(result["storage"]["bytes_written"].as_u64().unwrap() <= 48_000_000_000);
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "recordings are removed");
    let kept = here.join(result["result_directory"].as_str().unwrap());
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(kept.join("result.json")).unwrap()).unwrap();
    assert_eq!(summary, result);
    let events = std::fs::read_to_string(kept.join("events.jsonl")).unwrap();
    let trials = events.lines().filter(|line| line.contains("\"event\":\"trial\"")).count();
    // Of a counter-trial that measures one part alone, only the other of each pair is a trial.
    let counters = result["bottleneck"]["counter_trials"].as_array().unwrap();
    let trials_of = |counter: &serde_json::Value| {
        let is_alone = counter["change"].as_str().unwrap().ends_with("alone");
        counter["pairs"].as_array().unwrap().len() * if is_alone { 1 } else { 2 }
    };
    let counted: usize = counters.iter().map(trials_of).sum();
    assert!(counted > 0, "{counters:#?}");
    assert_eq!(trials, result["trials"].as_array().unwrap().len() + counted);
}

#[test]
fn a_dry_run_of_qualify_writes_nothing() {
    let directory = directory();
    std::fs::create_dir(directory.path().join("disk")).unwrap();
    let run = keepup(directory.path(), &["qualify", "csl", "--volume", "disk", "--dry-run"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stdout.contains("GB"), "{run:#?}");
    assert_eq!(std::fs::read_dir(directory.path().join("disk")).unwrap().count(), 0);
    assert!(!directory.path().join("results").exists());
}

#[test]
#[ignore = "system"]
fn an_interrupted_qualification_keeps_its_result() {
    let directory = busy_directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let arguments = ["qualify", "csl-old", "--volume", "disk", "--quick", "--max-write", "48 GB", "--json"];
    let mut run = start(here, &arguments);
    run.line("search for");
    std::thread::sleep(Duration::from_secs(2));
    run.signal("INT");
    let run = run.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let result = json(&run);
    assert_eq!((&result["interrupted"], &result["verdict"]), (&true.into(), &"INCONCLUSIVE".into()));
    assert!(!result["trials"].as_array().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "recordings are removed");
}

/// The search adds nothing: the run is stopped at its start.
#[test]
#[ignore = "system"]
fn rounds_until_the_rate_is_steady_are_in_the_result() {
    let directory = busy_directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let arguments = ["qualify", "csl-old", "--volume", "disk", "--quick", "--soak", "2s", "--until-steady"];
    let mut run = start(here, &[&arguments[..], &["--max-write", "48 GB", "--json"]].concat());
    run.line("search for");
    run.signal("INT");
    let run = run.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let found = json(&run);
    let steady = &found["steady"];
    let rounds = steady["bytes_per_second"].as_array().unwrap().len();
    let is_reached = steady["reached"].as_bool().unwrap();
    assert!(rounds >= if is_reached { 5 } else { 1 }, "{steady:#}");
    assert!(steady["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{steady:#}");
    let trials = found["trials"].as_array().unwrap();
    assert!(trials.iter().filter(|trial| trial["phase"] == "until steady").count() == rounds, "{trials:#?}");
    let limits = found["limits"].as_array().unwrap();
    let unsteady = "the write rate was not steady before the search: a cache of the disks may not be full";
    assert_eq!(limits.iter().any(|limit| limit == unsteady), !is_reached, "{limits:#?}");
    let page = keepup(here, &["report", found["result_directory"].as_str().unwrap(), "--full"]);
    assert!(squeezed(&page.stdout).contains("write rate before the search"), "{page:#?}");
}

#[test]
#[ignore = "system"]
fn a_write_limit_too_small_is_reported_before_the_search() {
    let directory = directory();
    std::fs::create_dir(directory.path().join("disk")).unwrap();
    let arguments = ["qualify", "csl", "--volume", "disk", "--quick", "--soak", "10h"];
    let run = keepup(directory.path(), &arguments);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("hint: ") && run.stderr.contains("soak"), "{run:#?}");
    assert_eq!(left_in(directory.path()), [Vec::<String>::new(), Vec::new()], "no incomplete result");
}

#[test]
fn a_limit_that_cannot_hold_the_target_is_refused_with_the_lowest_useful_one() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    for more in [&["--quick"][..], &[], &["--quick", "--soak", "100s"]] {
        let qualify = |limit: &str| {
            let base = ["qualify", "csl-old", "--volume", "disk", "--dry-run", "--max-write", limit];
            keepup(here, &[&base[..], more].concat())
        };
        let run = qualify("40 MB");
        assert_eq!(run.code(), 4, "{run:#?}");
        assert!(run.stderr.contains("the soak of ") && run.stderr.contains(" at the target, "), "{run:#?}");
        let hint = run.stderr.lines().find_map(|line| line.strip_prefix("hint: --max-write '")).unwrap();
        let lowest: u64 = hint.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(qualify(&format!("{lowest} MB")).code(), 0, "{hint}");
        assert_eq!(qualify(&format!("{} MB", lowest - 1)).code(), 4, "{hint}");
    }
    assert_eq!(left_in(here), [Vec::<String>::new(), Vec::new()], "nothing was written");
}

/// File names in the directories of results and of the disk.
fn left_in(here: &Path) -> [Vec<String>; 2] {
    ["results", "disk"].map(|directory| {
        let entries = std::fs::read_dir(here.join(directory)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    })
}

#[test]
fn a_recorder_that_cannot_start_is_reported_before_anything_is_measured() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--pool", "10TB"], 4, "hint: choose a smaller pool with --pool"),
        (&["--pool", "1 MiB"], 2, "hint: a larger --pool or a smaller --block"),
        (&["--cpus", "4000"], 4, "4000"),
        (&["--depth", "0"], 2, "depth"),
        (&["--drain-to", "tcp://127.0.0.1:1"], 4, "hint: start it with keepup sink"),
    ];
    for (flags, code, hint) in cases {
        let base = ["qualify", "csl-old", "--volume", "disk", "--quick", "--max-write", "1 GB"];
        let run = keepup(here, &[&base[..], flags].concat());
        assert_eq!(run.code(), code, "{flags:?}: {run:#?}");
        assert!(run.stderr.contains(hint), "{flags:?}: {run:#?}");
        assert!(!run.stderr.contains("ceilings of the components"), "nothing was measured: {run:#?}");
        assert_eq!(left_in(here), [Vec::<String>::new(), Vec::new()], "{flags:?} leaves nothing");
    }
}
