//! Disk tests: output adds up, and test files are removed.
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::common::{directory, json, keepup, start, until};

/// Bytes of the small sequence: 1 x 64 MiB, 8 x 8 MiB, 256 x 8 KiB.
const ROUND: u64 = (64 << 20) + (64 << 20) + (2 << 20);

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn phases(run: &Value) -> &Vec<Value> {
    run["phases"].as_array().unwrap()
}

#[test]
#[ignore = "system"]
fn testdisk_counts_every_byte_on_alternating_volumes() {
    let place = directory();
    let here = place.path();
    for volume in ["a", "b"] {
        std::fs::create_dir(here.join(volume)).unwrap();
    }
    let arguments = ["disk", "testdisk", "--quick", "--volume", "a", "--volume", "b", "--repeats", "2"];
    let run = keepup(here, &[&arguments[..], &["--json"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!((&found["failure"], &found["interrupted"]), (&Value::Null, &Value::Bool(false)));
    let runs = found["runs"].as_array().unwrap();
    let turns: Vec<_> =
        runs.iter().map(|r| (r["volumes"][0].as_str().unwrap(), r["repeat"].as_u64())).collect();
    assert_eq!(turns, [("a", Some(1)), ("b", Some(1)), ("a", Some(2)), ("b", Some(2))]);
    for run in runs {
        let bytes: u64 = phases(run).iter().map(|phase| phase["bytes"].as_u64().unwrap()).sum();
        assert_eq!((phases(run).len(), bytes), (6, 2 * ROUND));
        let files: Vec<_> = phases(run).iter().map(|phase| phase["files"].as_u64().unwrap()).collect();
        assert_eq!(files, [1, 8, 256, 1, 8, 256]);
        for phase in phases(run) {
            let (seconds, cpu) = (phase["seconds"].as_f64().unwrap(), phase["cpu_seconds"].as_f64().unwrap());
            assert!(0.0 < cpu && cpu <= seconds * 1.05, "one thread writes: {phase:#}");
        }
    }
    assert_eq!((entries(&here.join("a")), entries(&here.join("b"))), (0, 0));
}

#[test]
fn testdisk_prints_the_figures_of_the_original_program() {
    let place = directory();
    let here = place.path();
    for more in [&[][..], &["--direct"]] {
        let run = keepup(here, &[&["disk", "testdisk", "--quick"][..], more].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let (_, listing) = run.stdout.split_once("in the units of the listing").unwrap();
        let series = |line: &&str| line.contains("create ") || line.contains("overwrite ");
        let lines: Vec<&str> = listing.lines().filter(series).collect();
        assert_eq!(lines.len(), 6, "{run:#?}");
        for line in lines {
            let figures: Vec<f64> = line.rsplit(' ').filter_map(|word| word.parse().ok()).take(3).collect();
            let [rate, seconds, mib] = figures[..] else { panic!("{line}") };
            // Seconds have three decimals, rates two.
            assert!((mib / rate - seconds).abs() <= 0.0006 + mib / rate * (0.006 / rate), "{line}");
        }
        assert!(listing.contains("overwrite 8 x 8 MiB"), "{run:#?}");
    }
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
fn a_dry_run_of_testdisk_writes_nothing() {
    let place = directory();
    let here = place.path();
    let run = keepup(here, &["disk", "testdisk", "--dry-run", "--repeats", "3"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    // Three repeats of two rounds of 4096 + 4096 + 16 MiB.
    assert!(run.stdout.contains("3 runs, at most 51.6 GB written"), "{run:#?}");
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
#[ignore = "system"]
fn an_interrupted_test_keeps_its_results_and_removes_its_files() {
    let place = directory();
    let here = place.path();
    let arguments = ["disk", "testdisk", "--quick", "--repeats", "1000", "--json"];
    let test = start(here, &arguments);
    until("it writes", || here.join("keepup-data").exists() && entries(&here.join("keepup-data")) > 0);
    std::thread::sleep(Duration::from_millis(1500));
    test.signal("INT");
    let run = test.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let found = json(&run);
    assert_eq!(found["interrupted"], true);
    assert!(!found["runs"].as_array().unwrap().is_empty());
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

/// Bytes that a process has passed to `write`. The counter remains until the process is waited for.
fn written_by(process: u32) -> u64 {
    let account = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    account.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap()
}

/// Whether a process has ended and was not waited for.
fn has_ended(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap().contains(") Z ")
}

#[test]
#[ignore = "system"]
fn a_test_can_be_interrupted_within_a_large_file() {
    const FILE: u64 = 4 << 30;
    let place = directory();
    let here = place.path();
    let test = start(here, &["disk", "testdisk", "--json"]);
    until("it writes the first file", || written_by(test.id()) > 64 << 20);
    test.signal("INT");
    until("it has ended", || has_ended(test.id()));
    let written = written_by(test.id());
    let run = test.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    assert!(written < FILE, "{written} bytes were written: the whole file, in spite of the signal");
    assert_eq!(json(&run)["interrupted"], true);
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
#[ignore = "system"]
fn sweep_measures_every_point_or_gives_a_reason() {
    let place = directory();
    let here = place.path();
    let points =
        ["--sizes", "64 KiB,1 MiB,64 MiB", "--depths", "1,16", "--time", "100 ms", "--file", "128 MiB"];
    let arguments = [&["disk", "sweep", "--repeats", "2"][..], &points].concat();
    let run = keepup(here, &[&arguments[..], &["--json"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    for run in found["runs"].as_array().unwrap() {
        let skipped = run["skipped"].as_array().unwrap();
        assert_eq!((phases(run).len(), skipped.len()), (10, 2));
        for skipped in skipped {
            assert!(skipped["name"].as_str().unwrap().contains("67108864 B depth 16"), "{skipped:#}");
            assert!(skipped["why"].as_str().unwrap().contains("memory"), "{skipped:#}");
        }
        for phase in phases(run) {
            let number = |key: &str| phase[key].as_u64().unwrap();
            let size: u64 = phase["name"].as_str().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(number("bytes"), number("operations") * size, "{phase:#}");
            let (latency, seconds) = (&phase["latency"], phase["seconds"].as_f64().unwrap());
            // A histogram has three digits. A point may consist of a single wait.
            assert!(latency["max_ns"].as_f64().unwrap() / 1e9 <= seconds * 1.001, "{phase:#}");
            assert!(seconds >= 0.1, "{phase:#}");
        }
    }
    let run = keepup(here, &arguments);
    assert_eq!(run.code(), 0, "{run:#?}");
    for surface in ["write, MB/s", "read, MB/s", "write, CPU ms/GB", "-: needs 1024 MiB of memory"] {
        assert!(run.stdout.replace('\n', " ").contains(surface), "{surface}: {run:#?}");
    }
    assert_eq!(entries(&here.join("keepup-data")), 0);
    let wrong = keepup(here, &["disk", "sweep", "--sizes", "1000 B"]);
    assert_eq!(wrong.code(), 2, "{wrong:#?}");
}
