//! Stored results of this machine and of another one.
use std::fs;

use super::*;

/// Creates a result directory from a sample, with the fingerprint of `machine`.
fn put(root: &Path, name: &str, created: &str, machine: Option<&str>) {
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
}

#[test]
fn a_result_of_another_machine_lists_the_differences() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "elsewhere", "2026-11-21T09:00:00Z", None);
    let qualified = read(&place.path().join("elsewhere"), &[]).unwrap();
    assert!((1..=DIFFERENCES_MAX + 1).contains(&qualified.differs.len()), "{:?}", qualified.differs);
    assert!(qualified.differs.iter().any(|one| one.contains(" was ")), "{:?}", qualified.differs);
    let machine = Environment::collect(&[], Path::new("/")).fingerprint();
    put(place.path(), "here", "2026-11-21T09:00:00Z", Some(&machine));
    assert!(read(&place.path().join("here"), &[]).unwrap().differs.is_empty());
    assert!(read(place.path(), &[]).is_err(), "a directory of results is not a result");
}

#[test]
fn the_rate_that_failed_is_taken_from_the_result_and_said() {
    let place = tempfile::tempdir().unwrap();
    let machine = Environment::collect(&[], Path::new("/")).fingerprint();
    put(place.path(), "here", "2026-11-21T09:00:00Z", Some(&machine));
    let path = place.path().join("here/result.json");
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    // The sample was written by a version that did not keep the rate that failed.
    let earlier = read(&place.path().join("here"), &[]).unwrap();
    assert_eq!(earlier.failed_above, None);
    assert_eq!(describe(&earlier), "qualified rate: 1.42 GB/s by here; no higher rate is proven");
    summary["failed_above"] = serde_json::json!({
        "bytes_per_second": 1.61e9, "seconds": 30.0, "lost_events": 51, "condition": "events were lost"
    });
    fs::write(&path, summary.to_string()).unwrap();
    let found = [read(&place.path().join("here"), &[]).unwrap(), newest(place.path(), &[]).unwrap()];
    for qualified in found {
        assert_eq!(
            describe(&qualified),
            "qualified rate: 1.42 GB/s by here; 1.61 GB/s lost 51 events; \
             rates between the two are not proven"
        );
    }
}
