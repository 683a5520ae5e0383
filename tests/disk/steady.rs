//! `disk steady` adds up, reports a slow-down while it lasts, and keeps its results if the disk breaks.
use std::time::Duration;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{SmallDisk, allowed, skip};
use serde_json::Value;

use crate::common::{FILE_SERVER, busy_directory, directory, json, keepup, kept, start};

const MIB: u64 = 1 << 20;

/// Whether a rate, in bytes per second, is possible with two requests of 1 MiB every 40 ms: at most 52 MB/s.
fn slow(rate: f64) -> bool {
    rate < 55e6
}

/// The rate after a reported change of level, in bytes per second; infinite without one.
fn rate_after_change(line: &str) -> f64 {
    let rate = line.split_once(" to ").and_then(|(_, rest)| rest.split_once(" MB/s"));
    rate.and_then(|(rate, _)| rate.parse::<f64>().ok()).unwrap_or(f64::INFINITY) * 1e6
}

fn sum(items: &Value, key: &str) -> u64 {
    items.as_array().unwrap().iter().map(|item| item[key].as_u64().unwrap()).sum()
}

#[test]
fn phases_samples_and_files_agree() {
    let place = directory();
    let here = place.path();
    let sizes = ["--bytes", "320 MiB", "--span", "128 MiB", "--file", "32 MiB", "--round", "1 s"];
    let run = keepup(here, &[&["disk", "steady", "--json"][..], &sizes].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let run = &found["runs"][0];
    let phases: Vec<_> = run["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| {
            (phase["name"].as_str().unwrap(), phase["files"].as_u64(), phase["bytes"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(phases, [("first write", Some(4), 128 * MIB), ("overwrite", Some(6), 192 * MIB)]);
    let finding = &run["finding"];
    assert_eq!((sum(&finding["samples"], "bytes"), sum(&finding["files"], "bytes")), (320 * MIB, 320 * MIB));
    assert_eq!(sum(&finding["files"], "files"), 10);
    assert_eq!(finding["cut_short"], Value::Null);
    let run = keepup(here, &[&["disk", "steady", "--out", "results"][..], &sizes].concat());
    let page = run.stdout.replace("\n  ", " ");
    for line in ["written, GB", "overwriting: steady", "first write"] {
        assert!(page.contains(line), "{line}: {run:#?}");
    }
    // A slow disk writes long enough for a change of level to be detected; each is one row.
    let changes = kept(&here.join("results"))["runs"][0]["finding"]["changes"].as_array().unwrap().len();
    let rows = ["  drop", "  rise"].map(|change| run.stdout.matches(change).count());
    assert_eq!(rows.iter().sum::<usize>(), changes, "{run:#?}");
    assert_eq!(run.stdout.contains("No changes of level."), changes == 0, "{run:#?}");
    let wrong = keepup(here, &["disk", "steady", "--block", "1000 B"]);
    assert_eq!(wrong.code(), 2, "{wrong:#?}");
    let dry = keepup(here, &["disk", "steady", "--bytes", "1 GB", "--span", "1 TiB", "--dry-run"]);
    assert_eq!(dry.code(), 0, "requires only the space that it will write: {dry:#?}");
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
#[ignore = "system"]
fn a_volume_is_filled_up_to_its_reserve() {
    let test = "a_volume_is_filled_up_to_its_reserve";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let disk = match SmallDisk::mount(&here.join("disk"), 256) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let run = keepup(here, &["disk", "steady", "--fill", "--file", "32 MiB", "--volume", "disk", "--json"]);
    if run.stderr.contains("cannot open") && run.stderr.contains("direct I/O") {
        return skip(test, "file systems in memory have no direct I/O before Linux 6.6");
    }
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let phases = &found["runs"][0]["phases"];
    assert_eq!(phases.as_array().unwrap().len(), 1, "nothing is overwritten: {found:#}");
    // 256 MiB minus a reserve of 5 % and 64 MiB leaves five whole files.
    assert_eq!((phases[0]["bytes"].as_u64(), phases[0]["files"].as_u64()), (Some(160 * MIB), Some(5)));
    assert_eq!(found["plan"]["fill"], true);
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0, "its files are removed");
}

#[test]
#[ignore = "system"]
fn a_slow_disk_is_reported_at_once_and_a_broken_one_keeps_its_results() {
    let test = "a_slow_disk_is_reported_at_once_and_a_broken_one_keeps_its_results";
    if !allowed(test) {
        return;
    }
    let place = busy_directory();
    let here = place.path();
    let mut disk = match FaultyDisk::mount(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let sizes = ["--time", "100 s", "--span", "64 MiB", "--file", "16 MiB", "--depth", "2", "--round", "1 s"];
    let mut run = start(here, &[&["disk", "steady", "--volume", "disk", "--json"][..], &sizes].concat());
    // A level is known after ten seconds. The speed of a disk in memory varies on a busy machine.
    std::thread::sleep(Duration::from_secs(12));
    disk.slow_down(Duration::from_millis(40)).unwrap();
    let great = |line: &str| line.contains("the rate fell from") && slow(rate_after_change(line));
    run.line_that(great, "a large drop of the rate");
    disk.break_down().unwrap();
    let run = run.wait();
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    let failure = found["failure"].as_str().unwrap();
    assert!(failure.contains("data_0000") && failure.contains("Input/output error"), "{failure}");
    let run = &found["runs"][0];
    assert_eq!(run["phases"][0]["name"], "first write", "{found:#}");
    assert_eq!(run["finding"]["cut_short"], failure);
    let changes = run["finding"]["changes"].as_array().unwrap();
    let number = |change: &Value, key: &str| change[key].as_f64().unwrap();
    let after = |change: &&Value| slow(number(change, "after_bytes_per_second"));
    let change = changes.iter().find(after).unwrap_or_else(|| panic!("{changes:#?}"));
    assert!(!slow(number(change, "before_bytes_per_second")), "{change:#}");
    assert!(number(change, "noticed_seconds") > 10.0, "{change:#}");
    assert_eq!(run["finding"]["laps"].as_array().unwrap().len(), 2, "{found:#}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "its files are removed");
}
