//! A disk that breaks during a test: results are kept, test files are removed, and the error names the
//! file. All disk tests, each on a separate disk; `steady` has its own test.
use std::path::Path;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{allowed, skip};

use crate::common::{FILE_SERVER, directory, has_event, json, start, until};

/// Repeats a test until its disk breaks.
fn breaks(here: &Path, test: &[&str]) -> Result<(), String> {
    let mut disk = FaultyDisk::mount(&here.join("disk"), FILE_SERVER)?;
    let run = start(
        here,
        &[&["disk"], test, &["--repeats", "1000", "--volume", "disk", "--out", "out", "--json"]].concat(),
    );
    until("a run ends", || has_event(&here.join("out"), "disk_run"));
    disk.break_down().unwrap();
    let run = run.wait();
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    let failure = found["failure"].as_str().unwrap();
    assert!(failure.contains("disk/keepup-disk-") && failure.contains("Input/output error"), "{failure}");
    assert!(run.stderr.contains(failure), "missing in the text output: {run:#?}");
    assert!(!found["runs"][0]["phases"].as_array().unwrap().is_empty(), "{found:#}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "its files are removed");
    Ok(())
}

#[test]
#[ignore = "system"]
fn a_broken_disk_keeps_the_finished_measurements() {
    let name = "a_broken_disk_keeps_the_finished_measurements";
    if !allowed(name) {
        return;
    }
    let place = directory();
    let tests = [
        &["testdisk", "--quick"][..],
        &["sweep", "--sizes", "64 KiB", "--depths", "1,4", "--time", "50 ms", "--file", "64 MiB"],
        &["concurrent", "--files", "2", "--size", "16 MiB"],
        &[
            "throttle",
            "--writers",
            "2",
            "--delays",
            "1 ms",
            "--time",
            "50 ms",
            "--ramp",
            "0 ms",
            "--file",
            "8 MiB",
        ],
        &["scale", "--ramp", "0 ms", "--time", "50 ms", "--file", "16 MiB"],
        &["cache", "--file", "16 MiB", "--max", "64 MiB"],
        &["block", "--cached", "--size", "64 MiB", "--seeks", "500", "--files", "1", "--chunk", "64 KiB"],
    ];
    for (n, test) in tests.into_iter().enumerate() {
        let here = place.path().join(n.to_string());
        std::fs::create_dir(&here).unwrap();
        if let Err(why) = breaks(&here, test) {
            return skip(name, &why);
        }
    }
}
