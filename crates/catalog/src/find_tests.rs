//! Which stored result is of this machine, and which recording a name means.
use std::fs;
use std::path::Path;

use keepup_results::RecordingState;
use serde_json::Value;

use super::*;

/// A result directory made of a sample, as of another machine or of `machine`.
fn put(root: &Path, name: &str, created: &str, machine: Option<&str>) -> f64 {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples/qualify-v2.json");
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(sample).unwrap()).unwrap();
    summary["created"] = created.into();
    summary["result_directory"] = name.into();
    if let Some(machine) = machine {
        summary["environment_hash"] = machine.into();
    }
    let directory = root.join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(".keepup-result"), "x\n").unwrap();
    fs::write(directory.join("events.jsonl"), "").unwrap();
    fs::write(directory.join("result.json"), summary.to_string()).unwrap();
    summary["qualified_bytes_per_second"].as_f64().unwrap()
}

#[test]
fn the_newest_of_this_machine_is_found_and_others_are_not() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let unasked = || -> String { panic!("there is no result yet") };
    assert!(newest_qualification(&root.join("none"), unasked).is_none());
    assert!(newest_qualification(root, unasked).is_none());
    let machine = || "this machine".to_owned();
    put(root, "elsewhere", "2026-11-21T09:00:00Z", None);
    fs::create_dir(root.join("no-result")).unwrap();
    assert!(newest_qualification(root, machine).is_none());
    let rate = put(root, "newest", "2026-11-21T08:00:00Z", Some(&machine()));
    // Written later, as copies are.
    put(root, "older", "2026-11-20T08:00:00Z", Some(&machine()));
    let found = newest_qualification(root, machine).unwrap();
    assert_eq!((found.result_directory.as_str(), found.qualified_bytes_per_second), ("newest", Some(rate)));
}

#[test]
fn the_summary_of_a_result_directory_means_the_directory() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "one", "2026-11-21T09:00:00Z", None);
    let directory = place.path().join("one");
    assert_eq!(open_result(&directory.join("result.json")).unwrap().path, directory);
    let alone = place.path().join("result.json");
    fs::copy(directory.join("result.json"), &alone).unwrap();
    assert_eq!(open_result(&alone).unwrap().path, alone);
}

#[test]
fn a_recording_is_found_by_id_then_by_name_the_newest_first() {
    let entry = |id: &str, name: &str| RecordingEntry {
        id: id.into(),
        name: name.into(),
        run: None,
        metadata: Default::default(),
        created: String::new(),
        state: RecordingState::Sealed,
        ended: None,
        directories: vec![],
        missing_volumes: vec![],
        streams: 1,
        events: None,
        bytes: 0,
        missing_events: 0,
    };
    let entries = vec![entry("c", "night"), entry("b", "day"), entry("a", "day"), entry("day2", "a")];
    let list = Entries { entries, ..Entries::default() };
    let found = |which: &str| find_recording(&list, which).map(|entry| entry.id.as_str());
    assert_eq!(
        [found("a"), found("day"), found(LAST), found("noon")],
        [Some("a"), Some("b"), Some("c"), None]
    );
}
