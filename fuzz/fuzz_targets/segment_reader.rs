//! A segment file of arbitrary bytes, or a good one with arbitrary edits, read block by block.
//!
//! The first byte chooses: even, the rest is the file; odd, each following 5 bytes change one byte of a
//! good segment (offset, exclusive or). A block that is handed out must be whole: its events must add up to
//! its header.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use keepup_recording::fixture::{edit, scene, scene_segment};
use keepup_recording::reader::{Recording, SegmentReader};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const BLOCK_BYTES_MAX: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let bytes = if mode & 1 == 0 { rest.to_vec() } else { edited(rest) };
    let scene = SCENE.get_or_init(Scene::new);
    fs::write(&scene.segment, &bytes).expect("write the segment");
    let volume = &scene.recording.volumes()[0];
    let mut reader =
        SegmentReader::open(volume, &volume.segments()[0], BLOCK_BYTES_MAX).expect("open the segment");
    while let Ok(Some(block)) = reader.next_block(bytes.len() as u64) {
        let payload_bytes: usize = block.events().map(|event| event.payload.len()).sum();
        assert_eq!(payload_bytes as u64, block.header.payload_bytes);
        assert_eq!(block.events().count(), block.header.event_count as usize);
    }
    assert!(reader.offset() <= bytes.len() as u64);
});

static SCENE: OnceLock<Scene> = OnceLock::new();

/// A recording of one segment whose file each run replaces.
struct Scene {
    _root: TempDir,
    recording: Recording,
    segment: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("make a directory");
        let dir = scene(root.path(), &[]).expect("make the recording");
        let recording = Recording::open(&[dir]).expect("open the recording");
        let segment = recording.volumes()[0].segments()[0].path.clone();
        Self { _root: root, recording, segment }
    }
}

/// The good segment with the edits applied.
fn edited(edits: &[u8]) -> Vec<u8> {
    let mut bytes = scene_segment(2).expect("build the segment");
    edit(&mut bytes, edits);
    bytes
}
