//! Changed documents and files are found; reformatted ones are not changed.
use std::fs;
use std::path::Path;

use keepup_error::{Diagnostic as _, ErrorClass};
use serde_json::json;

use super::*;
use crate::directory::ResultDirectory;
use crate::error::ResultsError;
use crate::event::Event;
use crate::example::fit;
use crate::stored::StoredResult;

fn written(path: &Path) -> ResultDirectory {
    let directory = ResultDirectory::create(path, "one").unwrap();
    let mut log = directory.create_log().unwrap();
    log.append(&Event::Phase { t_unix_ns: 1, name: "search".into() }).unwrap();
    log.finish().unwrap();
    directory.write_summary(&fit()).unwrap();
    directory
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_changed_file_of_a_result_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    for (name, from, to) in [("result.json", "\"csl\"", "\"csm\""), ("events.jsonl", "search", "seerch")] {
        let path = parent.path().join(name);
        written(&path);
        assert!(StoredResult::open(&path).unwrap().is_checked, "control");
        change(&path.join(name), from, to);
        let error = StoredResult::open(&path).unwrap_err();
        assert!(
            matches!(&error, ResultsError::Changed { path: found, .. } if found.ends_with(name)),
            "{error}"
        );
        assert_eq!(error.class(), ErrorClass::Failed);
        let hint = error.hint().unwrap();
        assert!(hint.starts_with("restore it from a copy, or remove "), "{hint}");
        // As the hint says. The summary still has its own checksum.
        fs::remove_file(path.join(CHECKSUMS)).unwrap();
        assert_eq!(StoredResult::open(&path).is_ok(), name == "events.jsonl");
    }
}

#[test]
fn a_summary_alone_has_its_own_checksum() {
    let parent = tempfile::tempdir().unwrap();
    let file = written(&parent.path().join("one")).path().join("result.json");
    let alone = parent.path().join("saved.json");
    let open = |text: &str| {
        fs::write(&alone, text).unwrap();
        StoredResult::open(&alone)
    };
    let text = fs::read_to_string(&file).unwrap();
    assert!(open(&text).unwrap().is_checked);
    // Reformatted, as by `jq -cS`: the same content.
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(open(&value.to_string()).unwrap().is_checked);
    assert!(open(&value.to_string().replace(".0,", ",")).unwrap().is_checked);
    // Changed content.
    let mut changed = value.clone();
    changed["interrupted"] = json!(true);
    assert!(matches!(open(&changed.to_string()).unwrap_err(), ResultsError::Changed { list: None, .. }));
    // No checksum, as written by an earlier version or by hand.
    changed.as_object_mut().unwrap().remove(FIELD);
    assert!(!open(&changed.to_string()).unwrap().is_checked);
}

#[test]
fn sha256sum_checks_every_file() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("one");
    let directory = ResultDirectory::create(&path, "one").unwrap();
    directory.create_log().unwrap().finish().unwrap();
    fs::create_dir_all(path.join("cells/1-r1")).unwrap();
    fs::write(path.join("cells/1-r1/stdout.txt"), "out\n").unwrap();
    fs::write(path.join(".lock"), "17\n").unwrap();
    // Longer than any log that is read: it has no line, and is not read for minutes.
    fs::File::create(path.join("endless.log")).unwrap().set_len(1 << 42).unwrap();
    written(&path.join("cells/1-r1/inner"));
    directory.write_summary(&fit()).unwrap();
    fs::write(path.join("report.html"), "<p>").unwrap();
    directory.cover("report.html").unwrap();
    let sums = fs::read_to_string(path.join(CHECKSUMS)).unwrap();
    let names: Vec<&str> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name).collect();
    let inner = "cells/1-r1/inner/SHA256SUMS";
    let files = [MARKER, inner, "cells/1-r1/stdout.txt", "events.jsonl", "report.html", "result.json"];
    assert_eq!(names, files);
    let check = |of: &Path| {
        let mut command = std::process::Command::new("sha256sum");
        command.args(["--check", "--strict", "--quiet", CHECKSUMS]).current_dir(of).output().unwrap()
    };
    assert!(check(&path).status.success(), "{:?}", check(&path));
    assert!(check(&path.join("cells/1-r1/inner")).status.success());
    fs::write(path.join("report.html"), "<i>").unwrap();
    assert!(!check(&path).status.success());
    // A page is not read back; entering it again makes the list true.
    StoredResult::open(&path).unwrap();
    directory.cover("report.html").unwrap();
    assert!(check(&path).status.success());
}

#[test]
fn a_continued_result_has_no_checksums_until_its_next_summary() {
    let parent = tempfile::tempdir().unwrap();
    let directory = written(&parent.path().join("one"));
    let mut log = directory.reopen_log().unwrap();
    log.append(&Event::Phase { t_unix_ns: 2, name: "soak".into() }).unwrap();
    log.finish().unwrap();
    assert!(!directory.path().join(CHECKSUMS).exists());
    // Of an earlier campaign: nothing to enter.
    directory.cover("events.jsonl").unwrap();
    assert!(!directory.path().join(CHECKSUMS).exists());
    StoredResult::open(directory.path()).unwrap();
    directory.write_summary(&fit()).unwrap();
    assert!(directory.check().unwrap());
    // Without its event log, a result is still read; without its summary, it is not rebuilt as interrupted.
    fs::remove_file(directory.path().join("events.jsonl")).unwrap();
    StoredResult::open(directory.path()).unwrap();
    fs::remove_file(directory.path().join("result.json")).unwrap();
    assert!(matches!(StoredResult::open(directory.path()).unwrap_err(), ResultsError::Io { .. }));
}

#[test]
fn a_changed_document_is_renewed_only_if_it_was_right() {
    let document = |value: Value| serde_json::to_string_pretty(&Document::new(&value).unwrap()).unwrap();
    let original = document(json!({"directory": "/tmp/host", "rate": 0.1}));
    let changed = renewed(&original, original.replace("/tmp/host", "/data"));
    let mut value = serde_json::from_str(&changed).unwrap();
    assert_eq!(take(&mut value), Check::Same);
    assert_eq!(value, json!({"directory": "/data", "rate": 0.1}));
    let wrong = original.replace("0.1", "0.2");
    let changed = renewed(&wrong, wrong.replace("/tmp/host", "/data"));
    assert_eq!(take(&mut serde_json::from_str(&changed).unwrap()), Check::Changed);
    assert_eq!(renewed("{}", "{\"a\":1}".to_owned()), "{\"a\":1}");
}
