//! Creating, refusing, writing and reading result directories.

use std::fs;
use std::path::Path;

use keepup_error::Diagnostic as _;

use super::{ResultDirectory, default_name};
use crate::error::ResultsError;
use crate::event::Event;
use crate::example::fit;
use crate::log::EventLog;
use crate::stored::{Stored, StoredResult};
use crate::summary::SCHEMA_VERSION;
use crate::time::rfc3339;

/// 2026-11-21T03:30:00Z.
const CREATED_UNIX_NS: u64 = 1_795_231_800 * 1_000_000_000;

#[test]
fn names_and_times_are_utc() {
    assert_eq!(rfc3339(CREATED_UNIX_NS), "2026-11-21T03:30:00Z");
    assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
    let name = default_name("csl", "0123456789abcdef", CREATED_UNIX_NS).unwrap();
    assert_eq!(name, "csl-20261121T033000Z-01234567");
}

#[test]
fn a_name_cannot_leave_its_parent() {
    for profile in ["", "..", "a/b", ".hidden", "a b", "ä"] {
        let error = default_name(profile, "id", 0).unwrap_err();
        assert!(matches!(error, ResultsError::BadName { what: "the profile", .. }), "{error}");
    }
    assert!(default_name("csl", "../x", 0).is_err());
}

fn read_back(directory: &ResultDirectory) -> Result<Stored, ResultsError> {
    StoredResult::open(directory.path()).map(|result| result.summary)
}

#[test]
fn a_result_is_written_and_read_back() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("results/one");
    let directory = ResultDirectory::create(&path, "one").unwrap();
    let mut log = directory.create_log().unwrap();
    log.append(&Event::Phase { t_unix_ns: 1, name: "search".into() }).unwrap();
    log.finish().unwrap();
    directory.write_summary(&fit()).unwrap();
    let mut second = fit();
    second.interrupted = true;
    directory.write_summary(&second).unwrap();

    let opened = ResultDirectory::open(&path).unwrap();
    assert_eq!(opened, directory);
    assert_eq!(read_back(&opened).unwrap(), Stored::Qualify(Box::new(second)));
    assert_eq!(opened.events().unwrap().count(), 1);
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [".keepup-result", "SHA256SUMS", "events.jsonl", "result.json"],
        "nothing temporary stays"
    );
}

#[test]
fn a_discarded_result_is_gone_and_files_of_others_stay() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("one");
    let (directory, log) = begin(&path);
    drop(log);
    directory.discard().unwrap();
    assert!(!path.exists());
    let (directory, log) = begin(&path);
    drop(log);
    fs::write(path.join("notes.txt"), "mine").unwrap();
    directory.discard().unwrap_err();
    assert_eq!(fs::read_to_string(path.join("notes.txt")).unwrap(), "mine");
}

fn begin(path: &Path) -> (ResultDirectory, EventLog) {
    let directory = ResultDirectory::create(path, "one").unwrap();
    let log = directory.create_log().unwrap();
    (directory, log)
}

#[test]
fn only_an_empty_or_absent_directory_is_taken() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("one");
    fs::create_dir(&path).unwrap();
    ResultDirectory::create(&path, "one").unwrap();
    assert!(matches!(ResultDirectory::create(&path, "one"), Err(ResultsError::NotEmpty { .. })), "our own");

    let foreign = parent.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "x").unwrap();
    let error = ResultDirectory::create(&foreign, "one").unwrap_err();
    assert!(error.to_string().ends_with("not empty") && error.hint().is_some(), "{error}");

    let file = parent.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(ResultDirectory::create(&file, "one"), Err(ResultsError::NotADirectory { .. })));
    let link = parent.path().join("link");
    fs::create_dir(parent.path().join("empty")).unwrap();
    std::os::unix::fs::symlink(parent.path().join("empty"), &link).unwrap();
    assert!(matches!(ResultDirectory::create(&link, "one"), Err(ResultsError::NotADirectory { .. })));
}

#[test]
fn a_directory_without_marker_is_not_opened() {
    let parent = tempfile::tempdir().unwrap();
    let error = ResultDirectory::open(parent.path()).unwrap_err().to_string();
    assert!(error.contains("no `.keepup-result` file"), "{error}");
}

#[test]
fn a_summary_that_could_not_be_read_back_is_not_written() {
    let parent = tempfile::tempdir().unwrap();
    let directory = ResultDirectory::create(&parent.path().join("one"), "one").unwrap();
    directory.write_summary(&fit()).unwrap();
    let mut broken = fit();
    broken.required_bytes_per_second = f64::NAN;
    assert!(matches!(directory.write_summary(&broken), Err(ResultsError::Unwritable { .. })));
    assert_eq!(read_back(&directory).unwrap(), Stored::Qualify(Box::new(fit())), "the earlier summary stays");
}

#[test]
fn a_newer_layout_is_named_as_such_and_damage_as_damage() {
    let parent = tempfile::tempdir().unwrap();
    let directory = ResultDirectory::create(&parent.path().join("one"), "one").unwrap();
    let summary = directory.path().join("result.json");
    let with = |version: u32| format!(r#"{{"schema_version": {version}, "kind": "qualify"}}"#);
    let next = u64::from(SCHEMA_VERSION) + 1;
    fs::write(&summary, with(SCHEMA_VERSION + 1)).unwrap();
    let answer = read_back(&directory);
    assert!(matches!(answer, Err(ResultsError::SchemaVersion { found, .. }) if found == next), "{answer:?}");
    fs::write(&summary, with(SCHEMA_VERSION)).unwrap();
    assert!(matches!(read_back(&directory), Err(ResultsError::Summary { .. })));
    fs::write(&summary, r#"{"schema_version": 1, "kind": "orrery"}"#).unwrap();
    assert!(matches!(read_back(&directory), Err(ResultsError::SchemaVersion { .. })), "a kind of later");
    fs::write(&summary, r#"{"verdict": "FIT"}"#).unwrap();
    assert!(matches!(read_back(&directory), Err(ResultsError::NotASummary { .. })));
    fs::write(&summary, r#"{"schema_ver"#).unwrap();
    assert!(matches!(read_back(&directory), Err(ResultsError::Summary { .. })));
}
