//! `disk block` counts its data, refuses files that fit into the cache, and keeps its results if the
//! disk is full.

use keepup_testkit::root::{SmallDisk, allowed, skip};
use serde_json::Value;

use crate::common::{directory, has_event, json, keep_disk_full, keepup, start, until};

const PHASES: [&str; 10] = [
    "write",
    "rewrite",
    "read",
    "seek",
    "create sequential",
    "stat sequential",
    "delete sequential",
    "create random",
    "stat random",
    "delete random",
];
const SMALL: [&str; 8] = ["--size", "64 MiB", "--seeks", "500", "--files", "1", "--chunk", "64 KiB"];

fn phases(run: &Value) -> &Vec<Value> {
    run["phases"].as_array().unwrap()
}

#[test]
fn all_phases_are_present_and_add_up() {
    let place = directory();
    let here = place.path();
    for (more, suffix) in [("--direct", ""), ("--cached", ", cached")] {
        let run = keepup(here, &[&["disk", "block", more, "--json"][..], &SMALL].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        for run in found["runs"].as_array().unwrap() {
            let names: Vec<&str> = phases(run).iter().map(|phase| phase["name"].as_str().unwrap()).collect();
            assert_eq!(names, PHASES.map(|name| format!("{name}{suffix}")));
            for (phase, operations) in
                phases(run).iter().zip([1024, 1024, 1024, 500].into_iter().chain([1024; 6]))
            {
                assert_eq!(phase["operations"], operations, "{phase:#}");
                let bytes = if phase["files"] == 1 { operations << 16 } else { 0 };
                assert_eq!(phase["bytes"], bytes, "{phase:#}");
                let seconds = phase["seconds"].as_f64().unwrap();
                // Five threads seek, one does everything else.
                let at_once = if operations == 500 { 5.0 } else { 1.0 };
                let spent = phase["latency"]["mean_ns"].as_f64().unwrap() * f64::from(operations) / 1e9;
                assert!(spent <= seconds * at_once * 1.01, "{phase:#}");
            }
        }
        // Creating files may be slow after many were deleted: none were here.
        let bulk = ["--size", "16 MiB", "--files", "0", "--repeats", "2", "--seeks", "100"];
        let run = keepup(here, &[&["disk", "block", more][..], &bulk].concat());
        for line in ["CPU %", "requests/s", "rewrite", "seek"] {
            assert!(run.stdout.contains(line), "{line}: {run:#?}");
        }
        assert_eq!(run.stdout.contains("not figures of the disk"), more == "--cached", "{run:#?}");
    }
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
fn a_file_smaller_than_memory_is_refused() {
    let place = directory();
    let here = place.path();
    let run = keepup(here, &["disk", "block", "--size", "64 MiB"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(run.stderr.contains("hint: --size") && run.stderr.contains("--cached"), "{run:#?}");
    let run = keepup(here, &["disk", "block", "--direct", "--chunk", "1000 B"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    let run = keepup(here, &["disk", "block", "--quick", "--dry-run"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    // 1 GiB written and rewritten, plus 100 writes of 8 KiB in 1000 seeks.
    assert!(run.stdout.contains("at most 2.1 GB"), "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
#[ignore = "system"]
fn a_full_disk_keeps_the_finished_phases() {
    let test = "disk_block::a_full_disk_keeps_the_finished_phases";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let disk = match SmallDisk::mount(&here.join("disk"), 160) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let sizes = ["--size", "64 MiB", "--files", "0", "--seeks", "100"];
    let arguments =
        ["disk", "block", "--cached", "--repeats", "1000", "--volume", "disk", "--json", "--out", "out"];
    let run = start(here, &[&arguments[..], &sizes].concat());
    until("a run ends", || has_event(&here.join("out"), "disk_run"));
    let run = keep_disk_full(disk.path(), run);
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    let failure = found["failure"].as_str().unwrap();
    assert!(failure.contains("data") && failure.contains("No space left"), "{failure}");
    assert_eq!(phases(&found["runs"][0]).len(), 4, "{found:#}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 1, "only the other file remains");
}
