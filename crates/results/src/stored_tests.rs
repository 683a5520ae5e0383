//! Results of every version and kind, and what is no result.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use keepup_error::Diagnostic as _;
use keepup_testkit::pipe;

use super::{Stored, StoredResult};
use crate::compare::Change;
use crate::directory::ResultDirectory;
use crate::error::ResultsError;
use crate::event::Event;
use crate::figure::{Figures, Quantity};
use crate::head::{Headed, Kind};
use crate::version::{ALL, current};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

fn open(name: &str) -> StoredResult {
    StoredResult::open(&samples().join(name)).unwrap()
}

fn name(kind: Kind) -> String {
    serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn every_version_of_every_kind_has_a_sample_that_can_be_read() {
    for kind in ALL {
        for version in 1..=current(kind) {
            let file = format!("{}-v{version}.json", name(kind));
            let path = samples().join(&file);
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}; store one"));
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["schema_version"], version, "{file} is of another version");
            let stored = StoredResult::open(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert_eq!(stored.summary.head().kind, kind, "{file}");
            assert_eq!(stored.summary.head().created, value["created"], "{file}");
            assert!(!stored.summary.figures().is_empty(), "{file} has no figures");
        }
    }
}

#[test]
fn an_older_comparison_gives_no_ratio_of_too_few_values() {
    let Stored::Compare(found) = open("compare-v1.json").summary else { panic!() };
    let cells = || found.rows.iter().filter_map(|row| row.cells[1].as_ref()?.beside);
    assert!(cells().count() > 0);
    for beside in cells() {
        let numbers = [beside.ratio, beside.lower, beside.upper, beside.chance, beside.effect];
        assert_eq!((beside.change, numbers), (Change::TooFew, [None; 5]));
    }
    assert_eq!((found.indices[0].index, found.indices[1].index), (Some(1.0), None));

    let tests = samples().join("../../report/tests/compare.json");
    let Stored::Compare(found) = StoredResult::open(&tests).unwrap().summary else { panic!() };
    let published = found.rows[0].cells[3].as_ref().unwrap().beside.unwrap();
    assert_eq!((published.change, published.ratio), (Change::NotJudged, Some(0.1)));
    assert!(found.indices[1].index.is_some(), "some of its rows have enough values");
}

#[test]
fn figures_hold_every_repeat_of_the_same_thing() {
    let figures = open("disk-v3.json").summary.figures();
    let places: BTreeSet<_> = figures.iter().map(|figure| figure.place.as_str()).collect();
    assert_eq!(places, BTreeSet::from(["/data/a", "/data/b"]));
    for figure in &figures {
        assert_eq!(figure.values.len(), 2, "two repeats: {figure:?}");
        assert!(figure.values.iter().all(|value| value.is_finite() && *value >= 0.0), "{figure:?}");
    }
    let mut names: Vec<_> = figures.iter().map(|f| (&f.place, &f.what, f.quantity)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "each only once");
    assert!(figures.iter().any(|figure| figure.quantity == Quantity::BytesPerSecond));
}

#[test]
fn an_interrupted_directory_is_rebuilt_from_its_events() {
    let parent = tempfile::tempdir().unwrap();
    let directory = ResultDirectory::create(&parent.path().join("cut"), "0a1b2c3d").unwrap();
    let whole = open("disk-v3.json");
    let Stored::Disk(summary) = &whole.summary else { panic!("{whole:?}") };
    let mut log = directory.create_log().unwrap();
    log.append(&Event::Started {
        t_unix_ns: 1_795_231_800_000_000_000,
        schema_version: u32::try_from(current(Kind::Disk)).unwrap(),
        tool_version: "0.1.0".into(),
        id: "0a1b2c3d".into(),
        kind: Kind::Disk,
        command: "keepup disk sweep".into(),
        profile: "sweep".into(),
        plan: summary.plan.clone(),
        environment: summary.environment.clone(),
    })
    .unwrap();
    log.append(&Event::DiskRun { t_unix_ns: 2, run: Box::new(summary.runs[0].clone()) }).unwrap();
    log.finish().unwrap();
    let torn = directory.path().join("events.jsonl");
    let mut text = fs::read_to_string(&torn).unwrap();
    text.push_str("{\"event\":\"disk_run\",\"t_un");
    fs::write(&torn, text).unwrap();

    let found = StoredResult::open(directory.path()).unwrap();
    assert!(found.is_rebuilt);
    let Stored::Disk(rebuilt) = &found.summary else { panic!("{found:?}") };
    assert_eq!(rebuilt.runs, summary.runs[..1]);
    assert_eq!(rebuilt.id, "0a1b2c3d");
    assert!(found.summary.head().failure.unwrap().contains("interrupted"));
}

#[test]
fn non_results_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    assert!(matches!(StoredResult::open(parent.path()), Err(ResultsError::NotAResult { .. })));
    let missing = parent.path().join("missing");
    assert!(matches!(StoredResult::open(&missing), Err(ResultsError::Io { .. })));
    let directory = ResultDirectory::create(&parent.path().join("empty"), "one").unwrap();
    assert!(matches!(StoredResult::open(directory.path()), Err(ResultsError::CutOff { .. })));
    for (text, is_newer) in [
        ("[1, 2]", false),
        (r#"{"schema_version": "two"}"#, false),
        (r#"{"schema_version": 4, "orchard": true}"#, false),
        (r#"{"schema_version": 99, "kind": "disk"}"#, true),
        (r#"{"schema_version": 0, "kind": "disk"}"#, true),
        (r#"{"schema_version": 1, "kind": "telepathy"}"#, true),
    ] {
        let path = parent.path().join("some.json");
        fs::write(&path, text).unwrap();
        let error = StoredResult::open(&path).unwrap_err();
        let is_expected = matches!(
            (&error, is_newer),
            (ResultsError::SchemaVersion { .. }, true) | (ResultsError::NotASummary { .. }, false)
        );
        assert!(is_expected, "{text}: {error}");
        assert!(error.hint().unwrap().contains("keepup"), "{error}");
    }
}

/// A result directory made of a sample, with an empty log.
fn directory_of(parent: &Path, name: &str) -> PathBuf {
    let directory = ResultDirectory::create(&parent.join(name), "0a1b2c3d").unwrap();
    directory.create_log().unwrap().finish().unwrap();
    fs::copy(samples().join("disk-v4.json"), directory.path().join("result.json")).unwrap();
    directory.path().to_path_buf()
}

/// What `open` says within a time that only something that hangs exceeds.
fn in_time<T: Send + 'static>(open: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(open()));
    receiver.recv_timeout(std::time::Duration::from_secs(30)).expect("opening hangs")
}

#[test]
fn pipes_and_links_in_a_result_directory_are_refused_at_once() {
    let parent = tempfile::tempdir().unwrap();
    for file in ["result.json", "events.jsonl"] {
        let directory = directory_of(parent.path(), &format!("pipe-{file}"));
        fs::remove_file(directory.join(file)).unwrap();
        pipe(&directory.join(file));
        let (opened, place) = (directory.clone(), directory.clone());
        let opened = in_time(move || StoredResult::open(&opened).map(|stored| stored.is_rebuilt));
        // The log alone is not needed where there is a summary.
        assert_eq!(opened.is_ok(), file == "events.jsonl", "{file}: {opened:?}");
        let events = in_time(move || ResultDirectory::open(&place).unwrap().events().map(drop));
        assert_eq!(events.is_ok(), file == "result.json", "{file}: {events:?}");

        let directory = directory_of(parent.path(), &format!("link-{file}"));
        let elsewhere = parent.path().join(format!("elsewhere-{file}"));
        fs::rename(directory.join(file), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, directory.join(file)).unwrap();
        let opened = StoredResult::open(&directory).map(|stored| stored.is_rebuilt);
        assert_eq!(opened.is_ok(), file == "events.jsonl", "{file}: {opened:?}");
        let found = ResultDirectory::open(&directory).unwrap();
        assert_eq!(found.events().is_ok(), file == "result.json", "{file}");
        assert_eq!(found.reopen_log().is_ok(), file == "result.json", "{file}");
    }
}

#[test]
fn a_link_in_place_of_the_marker_marks_no_result() {
    let parent = tempfile::tempdir().unwrap();
    let directory = directory_of(parent.path(), "result");
    fs::rename(directory.join(".keepup-result"), parent.path().join("marker")).unwrap();
    std::os::unix::fs::symlink("../marker", directory.join(".keepup-result")).unwrap();
    assert!(matches!(ResultDirectory::open(&directory), Err(ResultsError::NotAResult { .. })));
}

#[test]
fn a_summary_and_events_beyond_a_limit_are_not_taken_into_memory() {
    let parent = tempfile::tempdir().unwrap();
    let directory = directory_of(parent.path(), "large");
    let length = fs::metadata(directory.join("result.json")).unwrap().len();
    assert!(StoredResult::open_directory(&directory, length).is_ok());
    let refused = StoredResult::open_directory(&directory, length - 1).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("larger than"), "{refused}");

    let whole = open("disk-v3.json");
    let Stored::Disk(summary) = whole.summary else { panic!("{whole:?}") };
    let mut log = ResultDirectory::open(&directory).unwrap().reopen_log().unwrap();
    log.append(&Event::Started {
        t_unix_ns: 1,
        schema_version: u32::try_from(current(Kind::Disk)).unwrap(),
        tool_version: "0.1.0".into(),
        id: "0a1b2c3d".into(),
        kind: Kind::Disk,
        command: "keepup disk sweep".into(),
        profile: "sweep".into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    })
    .unwrap();
    for _ in 0..10 {
        log.append(&Event::DiskRun { t_unix_ns: 2, run: Box::new(summary.runs[0].clone()) }).unwrap();
    }
    log.finish().unwrap();
    fs::remove_file(directory.join("result.json")).unwrap();
    let line =
        fs::read_to_string(directory.join("events.jsonl")).unwrap().lines().nth(1).unwrap().len() as u64;
    assert!(StoredResult::open_directory(&directory, 11 * line).unwrap().is_rebuilt);
    let refused = StoredResult::open_directory(&directory, 5 * line).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("more than"), "{refused}");
}
