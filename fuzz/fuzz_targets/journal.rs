//! A journal of arbitrary bytes: read, or refused with the number of a line; and a recording with it is
//! opened or refused.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use keepup_recording::id::Id;
use keepup_recording::info::info;
use keepup_recording::journal::{JOURNAL_FILE, Journal};
use keepup_recording::layout::FORMAT_VERSION;
use keepup_recording::manifest::{Manifest, Placement};
use keepup_recording::reader::Recording;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let (_, dir) = SCENE.get_or_init(scene);
    fs::write(dir.join(JOURNAL_FILE), data).expect("write the journal");
    let Ok((records, _)) = Journal::read(dir) else { return };
    assert!(records.len() <= data.len());
    // Whatever it says of segments: none is there, which is an error and no more.
    if let Ok(recording) = Recording::open(&[dir.clone()]) {
        let _ = recording.gaps();
        let _ = info(&recording);
    }
});

static SCENE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();

fn scene() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("make a directory");
    let manifest = Manifest {
        format_version: FORMAT_VERSION,
        name: "fuzz".to_owned(),
        recording: Id([7; 16]),
        volume: Id([1; 16]),
        volume_index: 0,
        volumes: vec![root.path().to_owned()],
        placement: Placement::Free,
        created_unix_ns: 1,
        tool_version: "0.0.0".to_owned(),
    };
    let dir = manifest.create(root.path()).expect("make the recording");
    (root, dir)
}
