//! Disk tests with several readers and writers: parts add up, no writer runs ahead of its schedule, and
//! a full disk keeps the results.
use std::path::Path;
use std::time::Duration;

use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{SmallDisk, allowed, skip};
use serde_json::Value;

use crate::common::{FILE_SERVER, busy_directory, directory, json, keep_disk_full, keepup, start, until};

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn list<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap()
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap()
}

/// Checks that the parts of a phase and its counts per tenth of a second both add up to the whole.
fn adds_up(phase: &Value) {
    let sum = |key: &str| list(phase, "parts").iter().map(|part| number(part, key)).sum::<u64>();
    assert_eq!(sum("bytes"), number(phase, "bytes"), "{phase:#}");
    assert_eq!(sum("operations"), number(phase, "operations"), "{phase:#}");
    for part in list(phase, "parts") {
        let tenths: u64 = list(part, "tenths").iter().map(|bytes| bytes.as_u64().unwrap()).sum();
        assert_eq!(tenths, number(part, "bytes"), "{part:#}");
        assert!(part["seconds"].as_f64().unwrap() <= phase["seconds"].as_f64().unwrap() + 1e-6, "{phase:#}");
        assert_eq!(part["flush_seconds"].is_null(), part["writes"] == false, "{part:#}");
    }
}

#[test]
fn concurrent_files_share_the_throughput() {
    let place = directory();
    let here = place.path();
    for more in [&[][..], &["--shared"], &["--access", "buffered", "--engine", "sync", "--space", "new"]] {
        let small = ["disk", "concurrent", "--files", "3", "--size", "16 MiB"];
        let run = keepup(here, &[&small[..], more, &["--json"]].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        let phases = list(&found["runs"][0], "phases");
        assert_eq!(phases.len(), 6);
        for (phase, files) in phases.iter().zip([1, 2, 3, 1, 2, 3]) {
            adds_up(phase);
            assert_eq!((list(phase, "parts").len(), number(phase, "files")), (files, files as u64));
            assert_eq!(number(&phase["parts"][0], "bytes"), 16 << 20, "the first file is timed as a whole");
        }
    }
    let text_run = keepup(here, &["disk", "concurrent", "--files", "2", "--size", "8 MiB", "--repeats", "2"]);
    assert_eq!(text_run.code(), 0, "{text_run:#?}");
    assert!(
        text_run.stdout.contains("normalised") && text_run.stdout.contains("read, MB/s"),
        "{text_run:#?}"
    );
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
#[ignore = "system"]
fn throttled_writers_never_run_ahead_of_their_schedule() {
    let place = directory();
    let here = place.path();
    let times = ["--time", "250 ms", "--ramp", "50 ms", "--file", "16 MiB", "--event", "64 KiB"];
    let map =
        ["--writers", "0,2", "--delays", "5 ms,20 ms", "--readers", "0,1", "--read-delays", "0 ms,10 ms"];
    for more in [&[][..], &["--pause"]] {
        let run = keepup(here, &[&["disk", "throttle", "--json"][..], &times, &map, more].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        let phases = list(&found["runs"][0], "phases");
        // 3 numbers of writers by 3 of readers, without the combination of zero and zero.
        assert_eq!(phases.len(), 3 * 3 - 1);
        for phase in phases {
            adds_up(phase);
            let name = phase["name"].as_str().unwrap();
            for part in list(phase, "parts").iter().filter(|part| part["writes"] == true) {
                let period_ms = if name.contains("5ms") { 5 } else { 20 };
                // Requests that were late at the start of the window may end inside it.
                assert!(number(part, "operations") <= 300 / period_ms + 1, "{name}: {part:#}");
                assert_eq!(part["target_bytes_per_second"].is_null(), !more.is_empty(), "{part:#}");
            }
        }
    }
    let text_run = keepup(here, &[&["disk", "throttle"][..], &times, &map].concat());
    // Eight combinations. Cells may wrap.
    assert_eq!(text_run.stdout.matches("  2 writers").count(), 2 * 3, "{text_run:#?}");
    for expected in ["1 reader", "asked,", "p99,"] {
        assert!(text_run.stdout.contains(expected), "{expected}: {text_run:#?}");
    }
    assert_eq!(entries(&here.join("keepup-data")), 0);
}

#[test]
#[ignore = "system"]
fn scale_adds_volumes_one_by_one_and_compares_groups() {
    let place = directory();
    let here = place.path();
    for volume in ["a", "b", "c"] {
        std::fs::create_dir(here.join(volume)).unwrap();
    }
    let times = ["--ramp", "50 ms", "--time", "1 s", "--file", "32 MiB", "--json"];
    let volumes = ["--volume", "a", "--volume", "b", "--volume", "c"];
    let run = keepup(here, &[&["disk", "scale"][..], &times, &volumes].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let one = &list(&found, "runs")[0];
    assert_eq!(one["volumes"], serde_json::json!(["a", "b", "c"]), "one run uses all of them");
    for (n, phase) in list(one, "phases").iter().enumerate() {
        adds_up(phase);
        let used: Vec<_> = list(phase, "parts").iter().map(|part| part["volume"].as_str().unwrap()).collect();
        assert_eq!(used, ["a", "b", "c"][..=n]);
    }
    assert_eq!(list(&one["finding"], "gains").len(), 2);
    assert!((1..=3).contains(&number(&one["finding"], "knee_volumes")));
    if run.stderr.contains("are on the same disk") {
        assert!(run.stderr.contains("a and b are on the same disk"), "{run:#?}");
    }
    let groups = ["--group", "a,b", "--group", "c", "--read"];
    let run = keepup(here, &[&["disk", "scale"][..], &times, &groups].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let phases = list(&found["runs"][0], "phases");
    let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["group 1", "group 2", "2 groups"]);
    assert!(phases.iter().all(|phase| list(phase, "parts").iter().all(|part| part["writes"] == false)));
    assert!(["a", "b", "c"].iter().all(|volume| entries(&here.join(volume)) == 0));
    let alone = keepup(here, &["disk", "scale", "--group", "a,b"]);
    assert!(alone.code() == 2 && alone.stderr.contains("hint: use --group at least twice"), "{alone:#?}");
}

#[test]
fn every_mode_moves_every_byte() {
    let place = directory();
    let here = place.path();
    let small = ["disk", "concurrent", "--files", "1", "--size", "4 MiB", "--json"];
    let modes = [
        &["--engine", "sync"][..],
        &["--dsync"],
        &["--access", "buffered", "--engine", "mmap"],
        &["--access", "buffered", "--engine", "mmap", "--space", "new"],
        &["--access", "buffered", "--space", "overwritten"],
        &["--compressible", "50", "--duplicate", "50"],
    ];
    for mode in modes {
        let run = keepup(here, &[&small[..], mode].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let found = json(&run);
        let bytes: Vec<u64> =
            list(&found["runs"][0], "phases").iter().map(|phase| number(phase, "bytes")).collect();
        assert_eq!(bytes, [4 << 20, 4 << 20], "{mode:?}");
    }
    let wrong = keepup(here, &["disk", "concurrent", "--engine", "mmap"]);
    assert!(wrong.code() == 2 && wrong.stderr.contains("hint: --access buffered"), "{wrong:#?}");
}

#[test]
#[ignore = "system"]
fn a_full_disk_ends_all_writers_and_keeps_the_results() {
    let test = "a_full_disk_ends_all_writers_and_keeps_the_results";
    if !allowed(test) {
        return;
    }
    let place = busy_directory();
    let here = place.path();
    let small = match SmallDisk::mount(&here.join("small"), 200) {
        Ok(small) => small,
        Err(why) => return skip(test, &why),
    };
    // Another program takes the free space while growing files are written.
    let arguments =
        ["disk", "throttle", "--volume", "small", "--access", "buffered", "--space", "new", "--json"];
    let times = [
        "--writers",
        "2",
        "--delays",
        "1 ms",
        "--readers",
        "0",
        "--file",
        "32 MiB",
        "--time",
        "200 ms",
        "--ramp",
        "0 ms",
    ];
    let run = start(here, &[&arguments[..], &times, &["--repeats", "1000"]].concat());
    std::thread::sleep(Duration::from_secs(3));
    let run = keep_disk_full(small.path(), run);
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    assert!(found["failure"].as_str().unwrap().contains("No space left on device"), "{found:#}");
    list(&found["runs"][0], "phases").iter().for_each(adds_up);
    assert_eq!(entries(small.path()), 1, "only the other program's file remains");
}

#[test]
#[ignore = "system"]
fn fio_accepts_an_exported_job_file() {
    let place = directory();
    let here = place.path();
    let tests = [
        &["testdisk", "--quick"][..],
        &["sweep", "--quick"],
        &["concurrent", "--files", "2"],
        &["concurrent", "--files", "2", "--shared", "--access", "buffered", "--engine", "mmap"],
        &["throttle", "--read-delays", "0 ms,3 ms", "--pause", "--compressible", "50"],
        &["scale", "--group", "a,b", "--group", "c", "--dsync", "--space", "new"],
        &["block", "--quick"],
        &["steady", "--span", "4 GiB", "--time", "10 s"],
    ];
    for test in tests {
        let export = keepup(here, &[&["disk", "export-fio"][..], test].concat());
        assert_eq!(export.code(), 0, "{export:#?}");
        assert!(export.stdout.contains("[global]") && export.stdout.contains("stonewall"), "{export:#?}");
        let file = here.join("job.fio");
        std::fs::write(&file, &export.stdout).unwrap();
        match std::process::Command::new("fio").arg("--parse-only").arg(&file).output() {
            Ok(fio) => assert!(fio.status.success(), "{test:?}: {fio:#?}\n{}", export.stdout),
            Err(why) => skip("fio_accepts_an_exported_job_file", &format!("fio: {why}")),
        }
    }
    let cache = keepup(here, &["disk", "export-fio", "cache"]);
    assert!(cache.code() == 2 && cache.stderr.contains("cannot export cache as a fio job"), "{cache:#?}");
}

#[test]
fn the_stored_result_equals_the_printed_one() {
    let place = directory();
    let here = place.path();
    let small = ["disk", "concurrent", "--files", "1", "--size", "4 MiB", "--repeats", "2"];
    let run = keepup(here, &[&small[..], &["--json", "--out", "kept/disks"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let kept: Vec<_> = std::fs::read_dir(here.join("kept/disks")).unwrap().collect();
    let [Ok(directory)] = &kept[..] else { panic!("{kept:#?}") };
    assert!(directory.file_name().to_string_lossy().starts_with("concurrent-"), "{directory:?}");
    let text = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let summary: Value = serde_json::from_str(&text("result.json")).unwrap();
    assert_eq!(summary, json(&run));
    let events: Vec<Value> =
        text("events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // CPU samples are interspersed.
    let events: Vec<&Value> = events.iter().filter(|event| event["event"] != "sample").collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["started", "disk_run", "disk_run", "finished"]);
    let runs: Vec<&Value> = events[1..3].iter().map(|event| &event["run"]).collect();
    assert_eq!(runs, list(&summary, "runs").iter().collect::<Vec<_>>());
}

#[test]
#[ignore = "system"]
fn a_stalled_disk_delays_every_event_due_during_the_stall() {
    let test = "a_stalled_disk_delays_every_event_due_during_the_stall";
    if !allowed(test) {
        return;
    }
    let place = busy_directory();
    let here = place.path();
    let disk = match FaultyDisk::mount(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    let arguments =
        ["disk", "throttle", "--volume", "disk", "--json", "--event", "16 KiB", "--file", "4 MiB"];
    let map = ["--writers", "1", "--delays", "10 ms", "--readers", "0", "--time", "4 s", "--ramp", "0 ms"];
    let run = start(here, &[&arguments[..], &map].concat());
    until("it writes", || entries(&here.join("disk")) > 0);
    std::thread::sleep(Duration::from_secs(1));
    disk.freeze(Duration::from_secs(1));
    let run = run.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let part = &found["runs"][0]["phases"][0]["parts"][0];
    let (due, took) = (&part["latency"], &part["service"]);
    // A hundred of four hundred events were due during the stall; the last hundredth of all waited
    // nearly as long. Four were in flight.
    assert!(number(due, "max_ns") >= 900_000_000, "{part:#}");
    assert!(number(due, "p99_ns") >= 500_000_000, "{part:#}");
    assert!(due["mean_ns"].as_f64() > took["mean_ns"].as_f64(), "{part:#}");
}

#[test]
fn meaningless_measurements_are_refused() {
    let place = directory();
    let here = place.path();
    for nothing in [
        &["throttle", "--writers", "0", "--readers", "0"][..],
        &["throttle", "--time", "0 s"],
        &["scale", "--time", "0 s"],
        &["sweep", "--time", "0 s"],
        &["steady", "--time", "0 s"],
        &["concurrent", "--files", "0"],
        &["concurrent", "--depth", "0"],
        &["throttle", "--event", "1000 B"],
    ] {
        let run = keepup(here, &[&["disk"][..], nothing].concat());
        assert!(run.code() == 2 && run.stdout.is_empty(), "{nothing:?}: {run:#?}");
    }
    assert!(!here.join("keepup-data").exists(), "nothing is written");
}
