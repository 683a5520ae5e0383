//! `trace record`: the trace matches the report of the traced command exactly.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use keepup_testkit::root::{SmallDisk, allowed, skip};
use keepup_trace::{Hints, Operation, Record, Trace};
use serde_json::Value;

use crate::common::{count, directory, json, keepup, segments, start};

const MIB: u64 = 1 << 20;
const SECTOR: u64 = 4096;

/// Device names and requests of a trace.
fn read(trace: &Path) -> (Vec<String>, Vec<Record>) {
    let mut trace = Trace::open(&[trace.to_owned()], &Hints::default(), None).unwrap();
    let mut records = Vec::new();
    while trace.fill(&mut records).unwrap() {}
    (trace.devices().iter().map(|device| device.name.clone()).collect(), records)
}

fn info(here: &Path, trace: &str) -> Value {
    let run = keepup(here, &["trace", "info", trace, "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

/// Requests and bytes of one operation.
fn sum(records: &[Record], operation: Operation) -> (u64, u64) {
    let of = records.iter().filter(|record| record.operation == operation);
    of.fold((0, 0), |(count, bytes), record| (count + 1, bytes + u64::from(record.bytes)))
}

#[test]
#[ignore = "system"]
fn the_trace_of_a_disk_test_matches_its_result() {
    let place = directory();
    let here = place.path();
    let sizes = ["--bytes", "32 MiB", "--span", "16 MiB", "--file", "8 MiB", "--block", "64 KiB"];
    for (engine, depth) in [("io_uring", 4), ("sync", 1)] {
        let out = format!("{engine}.trace");
        let verb = ["trace", "record", &out, "--", "disk", "steady", "--json", "--depth", "4"];
        let run = keepup(here, &[&verb[..], &sizes, &["--engine", engine]].concat());
        if run.code() == 4 && run.stderr.contains("io_uring") {
            skip("the_trace_of_a_disk_test_matches_its_result", "needs io_uring");
            continue;
        }
        assert_eq!(run.code(), 0, "{run:#?}");
        let phases = json(&run)["runs"][0]["phases"].clone();
        let reported_bytes: u64 =
            phases.as_array().unwrap().iter().map(|phase| phase["bytes"].as_u64().unwrap()).sum();
        let (names, records) = read(&here.join(&out));
        assert_eq!(
            (sum(&records, Operation::Write), reported_bytes),
            ((512, 32 * MIB), 32 * MIB),
            "{run:#?}"
        );
        assert_eq!(sum(&records, Operation::Read).0, 0);
        assert!(sum(&records, Operation::Flush).0 >= 4, "each file ends with a flush");
        assert!(records.iter().all(|record| record.completion_ns().is_some()));
        assert!(names.iter().all(|name| name.contains("/keepup-data/")) && names.len() == 2, "{names:?}");
        let line = run.stderr.lines().find(|line| line.starts_with(&out)).unwrap();
        assert!(line.contains(&format!("{} requests to 2 files", records.len())), "{line}");
        let info = info(here, &out);
        assert_eq!(info["whole"]["records"], records.len());
        for device in info["devices"].as_array().unwrap() {
            assert_eq!((&device["size_bytes"], &device["end_bytes"]), (&(8 * MIB).into(), &(8 * MIB).into()));
            let peak = device["detail"]["outstanding"]["peak"].as_u64().unwrap();
            assert!((depth.min(2)..=depth).contains(&peak), "{engine}: {device:#}");
        }
    }
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
fn direct_system_calls_are_traced_too() {
    let place = directory();
    let here = place.path();
    let run = keepup(here, &["trace", "record", "x.trace", "--", "disk", "testdisk", "--quick", "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let phases = json(&run)["runs"][0]["phases"].clone();
    let reported_bytes: u64 =
        phases.as_array().unwrap().iter().map(|phase| phase["bytes"].as_u64().unwrap()).sum();
    let (names, records) = read(&here.join("x.trace"));
    assert_eq!((sum(&records, Operation::Write).1, names.len()), (reported_bytes, 1 + 8 + 256));
    let soak = ["soak", "--quick", "--copies", "3", "--size", "3 MB", "--json"];
    let run = keepup(here, &[&["trace", "record", "y.trace", "--"], &soak[..]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let (_, records) = read(&here.join("y.trace"));
    // The reference is written once; each copy reads it, writes, and reads back.
    assert_eq!(sum(&records, Operation::Write).1, (1 + 3) * 3_000_000);
    assert!(sum(&records, Operation::Read).1 >= 2 * 3 * 3_000_000, "{run:#?}");
    assert!(records.iter().all(|record| record.bytes > 0 || record.operation == Operation::Flush));
}

#[test]
fn the_trace_of_a_recording_shows_sequential_blocks() {
    let place = directory();
    let here = place.path();
    let volumes = ["a", "b"];
    volumes.iter().for_each(|volume| std::fs::create_dir(here.join(volume)).unwrap());
    let mut arguments = vec!["trace", "record", "run.trace", "--", "record", "--listen", "127.0.0.1:0"];
    arguments.extend(["--name", "run", "--json", "--pool", "64 MiB", "--segment", "32 MiB"]);
    arguments.extend(volumes.iter().flat_map(|volume| ["--volume", volume]));
    let mut record = start(here, &arguments);
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "400", "--rate", "max", "--json"];
    let source = keepup(here, &source);
    assert_eq!(source.code(), 0, "{source:#?}");
    let run = record.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let (found, mut blocks) = (json(&run), 0);
    for volume in found["volumes"].as_array().unwrap() {
        blocks += volume["write_latency"]["count"].as_u64().unwrap();
    }
    let durable = count(&found["durable"]).1;
    let (names, records) = read(&here.join("run.trace"));
    let mut ends: BTreeMap<u16, u64> = BTreeMap::new();
    // The next block takes the place of an end mark.
    let is_mark = |record: &Record| record.operation == Operation::Write && u64::from(record.bytes) == SECTOR;
    let (marks, records): (Vec<_>, Vec<_>) = records.into_iter().partition(is_mark);
    for record in records.iter().filter(|record| record.operation == Operation::Write) {
        let end = ends.entry(record.device).or_insert(record.offset);
        assert_eq!(*end, record.offset, "the next block of {}", names[usize::from(record.device)]);
        *end = record.end();
    }
    let mut files: Vec<_> =
        volumes.iter().flat_map(|volume| segments(&here.join(volume).join("run"))).collect();
    files.retain(|file| ends.iter().any(|(n, _)| Path::new(&names[usize::from(*n)]).ends_with(file)));
    assert_eq!(files.len(), ends.len(), "{names:?}");
    for (device, end) in &ends {
        let bytes = std::fs::metadata(&names[usize::from(*device)]).unwrap().len();
        // Sealing appends data after the last block.
        assert!(*end <= bytes && *end + MIB > bytes, "{} of {bytes} bytes, blocks to {end}", names[0]);
    }
    let (writes, written) = sum(&records, Operation::Write);
    assert_eq!(writes, blocks);
    assert!(written > durable && written < durable + durable / 50, "{written} for {durable}");
    let flushes = sum(&records, Operation::Flush).0;
    assert!(flushes >= volumes.len() as u64 && flushes >= marks.len() as u64);
}

#[test]
fn an_interrupted_capture_keeps_its_trace() {
    let place = directory();
    let here = place.path();
    let steady = ["disk", "steady", "--time", "1 h", "--span", "64 MiB", "--file", "2 MiB", "--json"];
    let program = start(here, &[&["trace", "record", "run.trace", "--"], &steady[..]].concat());
    let data = here.join("keepup-data");
    let has_second = || {
        let tests = std::fs::read_dir(&data).into_iter().flatten().flatten();
        tests.into_iter().any(|test| test.path().join("data_00002").exists())
    };
    while !has_second() {
        std::thread::sleep(Duration::from_millis(5));
    }
    program.signal("INT");
    let run = program.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    let (names, records) = read(&here.join("run.trace"));
    assert!(names.len() >= 2 && sum(&records, Operation::Write).1 >= 4 * MIB, "{run:#?}");
    assert!(run.stderr.contains(&format!("run.trace: {} requests", records.len())), "{run:#?}");
}

#[test]
fn an_invalid_command_creates_no_trace() {
    let place = directory();
    let here = place.path();
    std::fs::write(here.join("mine.trace"), "mine").unwrap();
    for (arguments, code, words) in [
        (&["x.trace", "--", "disk", "steady", "--dry-run"][..], 2, "the command made no file I/O"),
        (&["x.trace", "--", "disk", "steady", "--block", "1000 B"], 2, "must be a multiple of 4096"),
        (&["x.trace", "--", "disk", "steady", "--volume", "nowhere"], 2, "nowhere"),
        (&["x.trace", "--", "profile", "list"], 2, "cannot record a trace of profile"),
        (&["x.trace", "--", "trace", "record", "y.trace", "--", "disk", "sweep"], 2, "a trace of trace"),
        (&["x.trace", "--", "disk", "swep"], 2, "unrecognized subcommand 'swep'"),
        (&["x.trace"], 2, "required"),
        (&["mine.trace", "--", "disk", "steady"], 2, "cannot write mine.trace: the file exists"),
        (&["no/x.trace", "--", "disk", "steady"], 2, "cannot write no/x.trace"),
    ] {
        let run = keepup(here, &[&["trace", "record"], arguments].concat());
        assert_eq!(run.code(), code, "{run:#?}");
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
        assert!(!here.join("x.trace").exists() && !here.join("y.trace").exists(), "{run:#?}");
    }
    assert_eq!(std::fs::read(here.join("mine.trace")).unwrap(), b"mine");
    let help = keepup(here, &["trace", "record", "x.trace", "--", "disk", "steady", "--help"]);
    assert!(help.code() == 0 && help.stdout.contains("Usage: keepup disk steady"), "{help:#?}");
}

#[test]
#[ignore = "system"]
fn a_full_disk_for_the_trace_does_not_stop_the_command() {
    let test = "a_full_disk_for_the_trace_does_not_stop_the_command";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let disk = match SmallDisk::mount(&here.join("small"), 1) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    // 65 536 requests of 32 bytes need twice the free space.
    let sizes = ["--bytes", "256 MiB", "--span", "64 MiB", "--file", "64 MiB", "--block", "4 KiB"];
    let verb = ["trace", "record", "small/x.trace", "--", "disk", "steady", "--json", "--access", "buffered"];
    let run = keepup(here, &[&verb[..], &sizes].concat());
    assert_eq!(run.code(), 4, "{run:#?}");
    let phases = json(&run)["runs"][0]["phases"].clone();
    let reported_bytes: u64 =
        phases.as_array().unwrap().iter().map(|phase| phase["bytes"].as_u64().unwrap()).sum();
    assert_eq!(reported_bytes, 256 * MIB);
    assert!(run.stderr.contains("cannot write small/x.trace"), "{run:#?}");
    assert!(!disk.path().join("x.trace").exists());
}
