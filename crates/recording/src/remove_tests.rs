//! Only what a recorder made is removed.
use std::path::PathBuf;

use super::*;
use crate::id::Id;
use crate::journal::Journal;
use crate::layout::FORMAT_VERSION;
use crate::manifest::Placement;

fn recording(volume: &Path) -> PathBuf {
    let manifest = Manifest {
        format_version: FORMAT_VERSION,
        name: "run".into(),
        recording: Id([1; 16]),
        volume: Id([2; 16]),
        volume_index: 0,
        volumes: vec![volume.to_path_buf()],
        placement: Placement::Free,
        created_unix_ns: 1,
        tool_version: "test".into(),
        keep: None,
    };
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
