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
