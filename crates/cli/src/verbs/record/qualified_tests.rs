//! What a stored result says of another machine and of this one.
use std::fs;

use super::*;

/// A result directory made of a sample, as of another machine or of this one.
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
fn a_named_result_of_elsewhere_is_used_and_says_what_differs() {
    let place = tempfile::tempdir().unwrap();
    put(place.path(), "elsewhere", "2026-11-21T09:00:00Z", None);
    let qualified = named(&place.path().join("elsewhere"), &[]).unwrap();
    assert!((1..=DIFFERENCES_MAX + 1).contains(&qualified.differs.len()), "{:?}", qualified.differs);
    assert!(qualified.differs.iter().any(|one| one.contains(" was ")), "{:?}", qualified.differs);
    let machine = Environment::collect(&[], Path::new("/")).fingerprint();
    put(place.path(), "here", "2026-11-21T09:00:00Z", Some(&machine));
    assert!(named(&place.path().join("here"), &[]).unwrap().differs.is_empty());
    assert!(named(place.path(), &[]).is_err(), "a directory of results is none");
}
