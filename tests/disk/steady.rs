//! `disk steady` adds up, tells a slower disk while it is slow, and keeps what it has when the disk breaks.
use std::time::Duration;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{SmallDisk, allowed, skip};
use serde_json::Value;

use crate::common::{FILE_SERVER, directory, directory_alone, json, keepup, kept, start};

const MIB: u64 = 1 << 20;

/// Whether a rate can be that of two requests of 1 MiB every 40 ms: 52 MB/s at most. Bytes per second.
fn slow(rate: f64) -> bool {
    rate < 55e6
}

/// The rate after a change of level that people are told, in bytes per second; infinite without one.
fn told_after(line: &str) -> f64 {
    let rate = line.split_once(" to ").and_then(|(_, rest)| rest.split_once(" MB/s"));
    rate.and_then(|(rate, _)| rate.parse::<f64>().ok()).unwrap_or(f64::INFINITY) * 1e6
}

fn sum(items: &Value, key: &str) -> u64 {
    items.as_array().unwrap().iter().map(|item| item[key].as_u64().unwrap()).sum()
}

#[test]
fn phases_samples_and_files_say_the_same() {
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
    let told = &run["finding"];
    assert_eq!((sum(&told["samples"], "bytes"), sum(&told["files"], "bytes")), (320 * MIB, 320 * MIB));
    assert_eq!(sum(&told["files"], "files"), 10);
    assert_eq!(told["cut_short"], Value::Null);
    let run = keepup(here, &[&["disk", "steady", "--out", "results"][..], &sizes].concat());
    let page = run.stdout.replace("\n  ", " ");
    for line in ["written, GB", "overwriting: steady", "first write"] {
        assert!(page.contains(line), "{line}: {run:#?}");
    }
    // A slow disk writes for as long as it takes to see a change of level: then each is a row, else none.
    let changes = kept(&here.join("results"))["runs"][0]["finding"]["changes"].as_array().unwrap().len();
    let rows = ["  drop", "  rise"].map(|change| run.stdout.matches(change).count());
    assert_eq!(rows.iter().sum::<usize>(), changes, "{run:#?}");
    assert_eq!(run.stdout.contains("No changes of level."), changes == 0, "{run:#?}");
    let wrong = keepup(here, &["disk", "steady", "--block", "1000 B"]);
    assert_eq!(wrong.code(), 2, "{wrong:#?}");
    let dry = keepup(here, &["disk", "steady", "--bytes", "1 GB", "--span", "1 TiB", "--dry-run"]);
    assert_eq!(dry.code(), 0, "only what will be written is needed: {dry:#?}");
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
#[ignore = "system"]
fn a_volume_is_filled_but_for_its_reserve() {
    let test = "a_volume_is_filled_but_for_its_reserve";
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
    assert_eq!(phases.as_array().unwrap().len(), 1, "nothing is written over: {found:#}");
    // 256 MiB less a reserve of 5 % and 64 MiB for others are five whole files.
    assert_eq!((phases[0]["bytes"].as_u64(), phases[0]["files"].as_u64()), (Some(160 * MIB), Some(5)));
    assert_eq!(found["plan"]["fill"], true);
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0, "its files are gone");
}

#[test]
#[ignore = "system"]
fn a_disk_that_slows_down_is_told_at_once_and_one_that_breaks_keeps_what_was_found() {
    let test = "a_disk_that_slows_down_is_told_at_once_and_one_that_breaks_keeps_what_was_found";
    if !allowed(test) {
        return;
    }
    let place = directory_alone();
    let here = place.path();
    let mut disk = match FaultyDisk::mount(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let sizes = ["--time", "100 s", "--span", "64 MiB", "--file", "16 MiB", "--depth", "2", "--round", "1 s"];
    let mut run = start(here, &[&["disk", "steady", "--volume", "disk", "--json"][..], &sizes].concat());
    // A level is known from ten seconds on. How fast a disk in memory is changes by itself on a busy machine.
    std::thread::sleep(Duration::from_secs(12));
    disk.slow_down(Duration::from_millis(40)).unwrap();
    let great = |line: &str| line.contains("the rate fell from") && slow(told_after(line));
    run.line_that(great, "a great fall");
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
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "its files are gone");
}
