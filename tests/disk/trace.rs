//! `keepup trace`: consistent analysis in every format, and exchange of traces with fio in both directions.
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use keepup_testkit::root::skip;
use serde_json::Value;

use crate::common::{TestDirectory, directory, json, keepup};

/// Rows of MSR Cambridge: two disks, reads and writes, two out of order.
fn msr() -> String {
    let mut text = String::new();
    for n in 0..1000u64 {
        let time = 128_166_372_003_061_629 + 10_000 * if n == 500 { 480 } else { n };
        let (disk, kind) = (n % 2, if n % 3 == 0 { "Write" } else { "Read" });
        let (offset, bytes) = ((n * 7919) % 100_003 * 4096, 4096 * (n % 4 + 1));
        writeln!(text, "{time},srv,{disk},{kind},{offset},{bytes},{}", 500 + n).unwrap();
    }
    text
}

fn info(place: &TestDirectory, file: &str, more: &[&str]) -> Value {
    let run = keepup(place.path(), &[&["trace", "info", file, "--json"], more].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

fn converted(place: &TestDirectory, arguments: &[&str]) -> Value {
    let run = keepup(place.path(), &[&["trace", "convert"], arguments, &["--json"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

/// Checks an analysis. Returns requests and bytes.
fn consistent(info: &Value) -> (u64, u64) {
    let sum = |list: &Value, key: &str| -> u64 {
        list.as_array().unwrap().iter().map(|part| part[key].as_u64().unwrap()).sum()
    };
    let whole = &info["whole"];
    let both = |key: &str| whole[key].as_u64().unwrap();
    for key in ["records", "bytes"] {
        assert_eq!(sum(&whole["operations"], key), both(key), "{info:#}");
        assert_eq!(sum(&info["devices"], key), both(key), "{info:#}");
        // A flush has no size.
        let parts = whole["operations"].as_array().unwrap();
        let flushes =
            parts.iter().find(|part| part["operation"] == "flush").map_or(0, |f| f[key].as_u64().unwrap());
        assert_eq!(sum(&whole["detail"]["sizes"], key) + flushes, both(key), "{info:#}");
    }
    assert_eq!(sum(&info["devices"], "footprint_bytes"), both("footprint_bytes"), "{info:#}");
    let jumps = &whole["jumps"];
    assert!(jumps["sequential"].as_u64() <= jumps["in_streams"].as_u64(), "{info:#}");
    (both("records"), both("bytes"))
}

#[test]
fn a_trace_is_the_same_in_every_format() {
    let place = directory();
    std::fs::write(place.path().join("srv.csv"), msr()).unwrap();
    let first = info(&place, "srv.csv", &[]);
    assert_eq!(consistent(&first).0, 1000);
    assert_eq!(first["corrections"]["reordered"], 1);
    let native = converted(&place, &["srv.csv", "srv.trace"]);
    assert_eq!((&native["records"], &native["lost"]), (&1000.into(), &Value::Array(Vec::new())));
    assert_eq!(info(&place, "srv.trace", &[]), first);
    let lost = converted(&place, &["srv.trace", "srv.iolog"]);
    assert!(lost["lost"][0].as_str().unwrap().starts_with("completion times"), "{lost:#}");
    let log = info(&place, "srv.iolog", &[]);
    assert_eq!(consistent(&log), consistent(&first));
    for key in ["operations", "footprint_bytes", "jumps", "end_bytes"] {
        assert_eq!(log["whole"][key], first["whole"][key], "{key}");
    }
    assert_eq!(log["whole"]["detail"]["outstanding"], Value::Null);
    // One disk, selected by name.
    let alone = info(&place, "srv.csv", &["--device", "srv.1"]);
    assert_eq!(alone["devices"][0]["records"], first["devices"][1]["records"]);
    assert_eq!(alone["corrections"]["other_devices"], first["devices"][0]["records"]);
    // Two traces are analyzed separately.
    let run = keepup(place.path(), &["trace", "info", "srv.csv", "srv.iolog"]);
    assert!(run.code() == 0 && run.stdout.matches("in whole pages of").count() == 2, "{run:#?}");
    assert!(run.stdout.contains("several devices: use --device NAME"), "{run:#?}");
    assert!(run.stdout.contains("corrected or skipped  1 requests out of order: sorted"), "{run:#?}");
}

#[test]
fn invalid_traces_are_refused_with_exit_code_and_position() {
    let place = directory();
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
    write("srv.csv", msr().as_bytes());
    converted(&place, &["srv.csv", "srv.trace"]);
    let whole = std::fs::read(place.path().join("srv.trace")).unwrap();
    write("cut.trace", &whole[..whole.len() / 2]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    write("flipped.trace", &flipped);
    write("row.csv", msr().replacen(",Read,", ",Trim,", 1).as_bytes());
    write("five.txt", b"5 0 8 8 1\n9 0 16 8 0\n");
    let wrong: String = (0..20).map(|n| format!("0,{},4096,R,{n}.0\n", n * 4096)).collect();
    write("bytes.spc", wrong.as_bytes());
    for (arguments, code, words) in [
        (&["info", "cut.trace"][..], 1, "the trace is truncated"),
        (&["info", "flipped.trace"], 1, "checksum mismatch in a frame"),
        (&["info", "row.csv"], 1, "line 2 of row.csv"),
        (&["info", "five.txt"], 2, "hint: choose --format mqsim or --format disksim"),
        (&["info", "bytes.spc"], 2, "hint: choose --unit bytes or --unit sectors"),
        (&["info", "nowhere.csv"], 2, "cannot open nowhere.csv"),
        (&["info", "srv.csv", "--device", "7"], 2, "choose one of srv.0, srv.1"),
        (&["info", "srv.csv", "--waits", "gap"], 2, "cannot use --waits with format msr"),
        (&["convert", "srv.csv", "srv.trace"], 2, "cannot write srv.trace: the file exists"),
        (&["convert", "row.csv", "new.trace"], 1, "its Type is \"Trim\""),
    ] {
        let run = keepup(place.path(), &[&["trace"], arguments].concat());
        assert_eq!(run.code(), code, "{run:#?}");
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
    }
    assert!(!place.path().join("new.trace").exists());
    let settled = info(&place, "bytes.spc", &["--unit", "bytes"]);
    assert_eq!(settled["whole"]["jumps"]["sequential"], 19);
}

/// Runs fio. Returns the JSON of its only job; `None` with a message if fio is not installed.
fn fio(test: &str, here: &Path, arguments: &[&str]) -> Option<Value> {
    let mut program = Command::new("fio");
    program.args(["--name=job", "--output-format=json"]).args(arguments);
    let Ok(output) = program.current_dir(here).output() else {
        skip(test, "needs fio");
        return None;
    };
    assert!(output.status.success(), "{output:#?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    Some(report["jobs"][0].clone())
}

/// Requests and bytes read and written according to fio.
fn done(job: &Value) -> [(u64, u64); 2] {
    ["read", "write"]
        .map(|kind| (job[kind]["total_ios"].as_u64().unwrap(), job[kind]["io_bytes"].as_u64().unwrap()))
}

fn reads_and_writes(info: &Value) -> [(u64, u64); 2] {
    let parts = info["whole"]["operations"].as_array().unwrap();
    ["read", "write"].map(|kind| {
        let part = parts.iter().find(|part| part["operation"] == kind).unwrap();
        (part["records"].as_u64().unwrap(), part["bytes"].as_u64().unwrap())
    })
}

#[test]
#[ignore = "system"]
fn fio_replays_a_converted_trace() {
    let place = directory();
    std::fs::write(place.path().join("srv.csv"), msr()).unwrap();
    converted(&place, &["srv.csv", "srv.iolog"]);
    // The files named in the log, as long as the trace requires.
    for disk in ["srv.0", "srv.1"] {
        std::fs::File::create(place.path().join(disk)).unwrap().set_len(500_000_000).unwrap();
    }
    let replay = ["--read_iolog=srv.iolog", "--ioengine=sync", "--replay_no_stall=1"];
    let Some(job) = fio("fio_replays_a_converted_trace", place.path(), &replay) else { return };
    assert_eq!(done(&job), reads_and_writes(&info(&place, "srv.iolog", &[])), "{job:#}");
}

#[test]
#[ignore = "system"]
fn a_log_written_by_fio_matches_its_report() {
    let place = directory();
    let log = [
        "--filename=data",
        "--size=1m",
        "--bs=4k",
        "--rw=randrw",
        "--ioengine=sync",
        "--fsync=8",
        "--rate_iops=2000",
        "--write_iolog=fio.log",
    ];
    let Some(job) = fio("a_log_written_by_fio_matches_its_report", place.path(), &log) else { return };
    let info = info(&place, "fio.log", &[]);
    assert_eq!(done(&job), reads_and_writes(&info), "{info:#}");
    let flushes = info["whole"]["operations"].as_array().unwrap().iter().find(|p| p["operation"] == "flush");
    assert_eq!(flushes.unwrap()["records"], job["sync"]["total_ios"], "{job:#}");
    // The whole file was read or written, and nothing else.
    assert_eq!(
        (&info["whole"]["footprint_bytes"], &info["whole"]["end_bytes"]),
        (&1048576.into(), &1048576.into())
    );
}

#[test]
fn a_synthetic_trace_is_marked_and_reproducible() {
    let place = directory();
    for name in ["a.trace", "b.trace"] {
        let run =
            keepup(place.path(), &["trace", "make", "mail-server", name, "--seed", "7", "--time", "5 s"]);
        assert!(run.code() == 0 && run.stdout.contains("SYNTHETIC mail-server, seed 7"), "{run:#?}");
    }
    let bytes = |name: &str| std::fs::read(place.path().join(name)).unwrap();
    assert_eq!(bytes("a.trace"), bytes("b.trace"));
    let info = info(&place, "a.trace", &[]);
    assert_eq!((consistent(&info).0 > 1000, &info["header"]["origin"]["seed"]), (true, &7.into()));
    let again = keepup(place.path(), &["trace", "make", "mail-server", "a.trace"]);
    assert!(again.code() == 2 && again.stderr.contains("the file exists"), "{again:#?}");
    let other = keepup(place.path(), &["trace", "make", "printer", "c.trace"]);
    assert!(other.code() == 2 && other.stderr.contains("web-server, file-server"), "{other:#?}");
}
