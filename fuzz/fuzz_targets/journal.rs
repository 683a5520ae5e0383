//! A journal of arbitrary bytes: read, or refused with the number of a line; and a recording with it is
//! opened or refused.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use keepup_recording::fixture::{scene, scene_segment};
use keepup_recording::info::info;
use keepup_recording::journal::{JOURNAL_FILE, Journal};
use keepup_recording::reader::Recording;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let (_, dir) = SCENE.get_or_init(new_scene);
    fs::write(dir.join(JOURNAL_FILE), data).expect("write the journal");
    let read = Journal::read(dir);
    if let Ok((records, _)) = &read {
        assert!(records.len() <= data.len());
    }
    // Whatever it says of segments that are not there, or not so: that is an error and no more.
    if let Ok(recording) = Recording::open(&[dir.clone()]) {
        let _ = recording.gaps();
        let _ = info(&recording);
    }
});

static SCENE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();

fn new_scene() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("make a directory");
    let segment = scene_segment(2).expect("build the segment");
    let dir = scene(root.path(), &segment).expect("make the recording");
    (root, dir)
}
