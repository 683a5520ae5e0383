//! Only what a recorder made is removed.
use std::path::PathBuf;

use super::*;
use crate::fixture::manifest;
use crate::journal::Journal;

fn recording(volume: &Path) -> PathBuf {
    let manifest = manifest(vec![volume.to_path_buf()], 0);
    let dir = manifest.create(volume).unwrap();
    Journal::create(&dir, &manifest).unwrap();
    fs::write(dir.join("segment-000000.mcap"), "x").unwrap();
    dir
}

#[test]
fn removes_a_recording_whole() {
    let volume = tempfile::tempdir().unwrap();
    let dir = recording(volume.path());
    remove(&dir).unwrap();
    assert!(!dir.exists());
}

#[test]
fn leaves_what_is_not_its_own() {
    let volume = tempfile::tempdir().unwrap();
    fs::write(volume.path().join("segment-000000.mcap"), "mine").unwrap();
    remove(volume.path()).unwrap_err();
    let dir = recording(volume.path());
    for name in ["notes.txt", "segment-1.mcap", "segment-000001.mcap.bak"] {
        fs::write(dir.join(name), "mine").unwrap();
    }
    remove(&dir).unwrap_err();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3);
    assert!(volume.path().join("segment-000000.mcap").exists());
}
