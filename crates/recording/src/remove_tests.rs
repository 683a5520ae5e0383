//! Only files of the recorder are removed.
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
fn a_recording_is_removed_completely() {
    let volume = tempfile::tempdir().unwrap();
    let dir = recording(volume.path());
    fs::write(dir.join("archive-0123456789abcdef.jsonl"), "x").unwrap();
    remove(&dir).unwrap();
    assert!(!dir.exists());
}

#[test]
fn foreign_files_are_kept() {
    let volume = tempfile::tempdir().unwrap();
    fs::write(volume.path().join("segment-000000.mcap"), "mine").unwrap();
    remove(volume.path()).unwrap_err();
    let dir = recording(volume.path());
    for name in ["notes.txt", "segment-1.mcap", "segment-000001.mcap.bak", "archive-notes.jsonl"] {
        fs::write(dir.join(name), "mine").unwrap();
    }
    remove(&dir).unwrap_err();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 4);
    assert!(volume.path().join("segment-000000.mcap").exists());
}

#[test]
fn take_back_removes_only_its_recording() {
    let volume = tempfile::tempdir().unwrap();
    let dir = recording(volume.path());
    let own = Manifest::read(&dir).unwrap().recording;
    let other = take_back(&dir, Id([1; 16]), true);
    assert!(matches!(other, Err(RecordingError::Foreign { .. })), "{other:?}");
    assert!(dir.join("segment-000000.mcap").exists());
    // A directory that existed before stays, empty as it was.
    take_back(&dir, own, false).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    assert_eq!(recording(volume.path()), dir);
    take_back(&dir, own, true).unwrap();
    assert!(!dir.exists());
    take_back(&dir, own, true).unwrap_err();
    assert!(volume.path().exists());
}
