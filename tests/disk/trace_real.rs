//! Real traces from installed packages, none of them stored in the project. keepup's analysis must equal the
//! test's own counts.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use keepup_testkit::root::skip;
use serde_json::Value;

use crate::common::{directory, json, keepup};

/// A session with a file server from Debian's package dbench: operations on files, without times.
const SESSION: &str = "/usr/share/dbench/client.txt";
/// A trace of Debian's package blkreplay-examples.
const MYSQL: &str = "usr/share/doc/blkreplay-examples/examples/example-load/natural/linux-mysql.load.gz";
/// Converts a log of the Python package darshan to rows of MSR Cambridge.
const CONVERTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/checks/darshan_trace.py");

/// Requests and bytes.
type Count = (u64, u64);

/// Counts of a session by operation and by file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    operations: BTreeMap<String, Count>,
    files: BTreeMap<String, Count>,
}

fn add(counts: &mut BTreeMap<String, Count>, key: &str, bytes: u64) {
    let count = counts.entry(key.to_owned()).or_default();
    *count = (count.0 + 1, count.1 + bytes);
}

/// Converts a session of dbench to fio's iolog, version 2, which has no times either. Files have the
/// names that they were opened with.
fn iolog_of(session: &str) -> (String, Counted) {
    let (mut log, mut counted) = (String::from("fio version 2 iolog\n"), Counted::default());
    let mut open = BTreeMap::new();
    for line in session.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Requests that the server refused, for example for missing files, moved no data.
        if words.last() != Some(&"NT_STATUS_OK") {
            continue;
        }
        let (operation, handle, offset, bytes) = match words[..] {
            ["NTCreateX", name, _, _, handle, _] => {
                let name = name.trim_matches('"');
                open.insert(handle, name);
                writeln!(log, "{name} add\n{name} open").unwrap();
                continue;
            }
            ["Close", handle, _] => {
                writeln!(log, "{} close", open.remove(handle).unwrap()).unwrap();
                continue;
            }
            // Handle, offset, requested bytes, received bytes.
            ["ReadX", handle, offset, _, bytes, _] => ("read", handle, offset, bytes),
            ["WriteX", handle, offset, _, bytes, _] => ("write", handle, offset, bytes),
            ["Flush", handle, _] => ("sync", handle, "0", "0"),
            _ => continue,
        };
        let name = open[handle];
        writeln!(log, "{name} {operation} {offset} {bytes}").unwrap();
        add(&mut counted.operations, operation.replace("sync", "flush").as_str(), bytes.parse().unwrap());
        add(&mut counted.files, name, bytes.parse().unwrap());
    }
    (log, counted)
}

/// A real trace without times, in the native format: dbench's session with a file server, 169,254 requests to
/// 196 files. `None` with a message if it is not installed.
pub(crate) fn dbench_trace(test: &str, here: &Path) -> Option<PathBuf> {
    let Ok(text) = std::fs::read_to_string(SESSION) else {
        skip(test, "needs the package dbench");
        return None;
    };
    std::fs::write(here.join("session.iolog"), iolog_of(&text).0).unwrap();
    Some(native(here, "session.iolog"))
}

/// A real trace with issue and completion times, in the native format: darshan's log of a job of 1468 s,
/// 7613 requests to 169 files. The converter's counts are in `job.json`. `None` with a message without
/// Python's darshan.
pub(crate) fn darshan_trace(test: &str, here: &Path) -> Option<PathBuf> {
    let promised = std::env::var_os("CI_PYTHON");
    let python = promised.clone().unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import darshan"]).output().is_ok_and(|o| o.status.success());
    if !has {
        assert!(promised.is_none(), "{} has no darshan", python.display());
        skip(test, "needs Python with darshan");
        return None;
    }
    let output = Command::new(&python).args([CONVERTER, "job.csv"]).current_dir(here).output().unwrap();
    assert!(output.status.success(), "{output:#?}");
    std::fs::write(here.join("job.json"), output.stdout).unwrap();
    Some(native(here, "job.csv"))
}

/// A block trace of a MySQL server over one hour, in the native format, from Debian's package
/// blkreplay-examples: 80,794 requests without completions. `None` with a message if it is not there.
pub(crate) fn blkreplay_trace(test: &str, here: &Path) -> Option<PathBuf> {
    let promised = std::env::var_os("CI_TRACES").map(PathBuf::from);
    let packages = [promised.clone(), Some("/".into())];
    let file = packages.into_iter().flatten().map(|root| root.join(MYSQL)).find(|file| file.exists());
    let Some(file) = file else {
        assert!(promised.is_none(), "{promised:?} has no {MYSQL}");
        skip(test, "needs the package blkreplay-examples");
        return None;
    };
    std::fs::copy(file, here.join("mysql.load.gz")).unwrap();
    let run = keepup(here, &["trace", "convert", "mysql.load.gz", "mysql.trace"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    Some(here.join("mysql.trace"))
}

/// Converts a trace to the native format, in the same directory.
fn native(here: &Path, file: &str) -> PathBuf {
    let converted = Path::new(file).with_extension("trace");
    let run = keepup(here, &["trace", "convert", file, converted.to_str().unwrap()]);
    assert_eq!(run.code(), 0, "{run:#?}");
    here.join(converted)
}

fn info(here: &Path, file: &Path) -> Value {
    let run = keepup(here, &["trace", "info", file.to_str().unwrap(), "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

/// Requests and bytes of the entries of a list, by the name at `key`.
fn counts(list: &Value, key: &str) -> BTreeMap<String, Count> {
    let number = |part: &Value, key: &str| part[key].as_u64().unwrap();
    let parts = list.as_array().unwrap().iter();
    parts
        .map(|part| (part[key].as_str().unwrap().into(), (number(part, "records"), number(part, "bytes"))))
        .collect()
}

#[test]
#[ignore = "system"]
fn a_real_trace_without_times_is_analyzed_correctly() {
    let place = directory();
    let test = "a_real_trace_without_times_is_analyzed_correctly";
    let Some(path) = dbench_trace(test, place.path()) else { return };
    let (_, counted) = iolog_of(&std::fs::read_to_string(SESSION).unwrap());
    assert!(counted.operations["read"].0 > 100_000 && counted.operations["flush"].1 == 0, "{counted:#?}");
    let [log, native] = [Path::new("session.iolog"), &path].map(|file| info(place.path(), file));
    for analysis in [&log, &native] {
        assert_eq!(counts(&analysis["whole"]["operations"], "operation"), counted.operations);
        assert_eq!(counts(&analysis["devices"], "name"), counted.files);
        assert_eq!(
            (&analysis["header"]["clock"], &analysis["header"]["level"]),
            (&"none".into(), &"file".into())
        );
        assert_eq!(analysis["corrections"]["zero_sizes"], 0);
    }
    assert_eq!(log["whole"], native["whole"]);
}

#[test]
#[ignore = "system"]
fn a_real_trace_with_times_is_analyzed_correctly() {
    let place = directory();
    let Some(path) = darshan_trace("a_real_trace_with_times_is_analyzed_correctly", place.path()) else {
        return;
    };
    let counted: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("job.json")).unwrap()).unwrap();
    // In the log of darshan 3.5.0.
    assert_eq!((&counted["read"]["records"], &counted["write"]["records"]), (&6126.into(), &1497.into()));
    let [rows, native] = [Path::new("job.csv"), &path].map(|file| info(place.path(), file));
    // A read at the end of a file returns nothing, and is not a request to a disk.
    let empty = |kind: &str| counted[kind]["empty"].as_u64().unwrap();
    let expected = ["read", "write"].map(|kind| {
        let number = |key: &str| counted[kind][key].as_u64().unwrap();
        (kind.to_owned(), (number("records") - empty(kind), number("bytes")))
    });
    assert_eq!(counts(&rows["whole"]["operations"], "operation"), BTreeMap::from(expected));
    assert_eq!(rows["corrections"]["zero_sizes"], empty("read") + empty("write"));
    assert_eq!(rows["corrections"]["reordered"], 0);
    assert_eq!((rows["devices"].as_array().unwrap().len(), &counted["files"]), (169, &169.into()));
    let detail = &rows["whole"]["detail"];
    let seconds = (detail["last_ns"].as_u64().unwrap() - detail["first_ns"].as_u64().unwrap()) as f64 / 1e9;
    assert!((seconds - counted["seconds"].as_f64().unwrap()).abs() < 1e-6, "{detail:#}");
    // Its single process issues one request at a time, with few exceptions.
    assert!(detail["outstanding"]["peak"].as_u64().is_some_and(|peak| peak < 10), "{detail:#}");
    for key in ["whole", "devices", "corrections"] {
        assert_eq!(rows[key], native[key], "{key}");
    }
}

#[test]
#[ignore = "system"]
fn a_real_block_trace_is_analyzed_correctly() {
    let place = directory();
    let here = place.path();
    let Some(path) = blkreplay_trace("a_real_block_trace_is_analyzed_correctly", here) else { return };
    let [load, native] = [Path::new("mysql.load.gz"), &path].map(|file| info(here, file));
    // The test's own counts.
    let unpacked = Command::new("gzip").args(["-dc", "mysql.load.gz"]).current_dir(here).output().unwrap();
    let text = String::from_utf8(unpacked.stdout).unwrap();
    let mut counted: BTreeMap<String, Count> = BTreeMap::new();
    let (mut first, mut last, mut end) = (None, 0.0, 0);
    for line in text.lines() {
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        let Some(seconds) = fields[0].parse::<f64>().ok().filter(|_| fields.len() == 6) else { continue };
        let number = |at: usize| fields[at].parse::<u64>().unwrap() * 512;
        let operation = if fields[3] == "W" { "write" } else { "read" };
        add(&mut counted, operation, number(2));
        (first, last, end) = (first.or(Some(seconds)), seconds, end.max(number(1) + number(2)));
    }
    assert_eq!((counted["read"].0, counted["write"].0), (7187, 73_607));
    for analysis in [&load, &native] {
        let whole = &analysis["whole"];
        assert_eq!(counts(&whole["operations"], "operation"), counted);
        assert_eq!(whole["end_bytes"], end);
        let nanoseconds = whole["detail"]["last_ns"].as_f64().unwrap();
        assert!((nanoseconds / 1e9 - (last - first.unwrap())).abs() < 1e-6, "{whole:#}");
        assert_eq!(analysis["stages"], Value::Null, "the file has no dispatches");
    }
    assert_eq!(load["whole"], native["whole"]);
}
