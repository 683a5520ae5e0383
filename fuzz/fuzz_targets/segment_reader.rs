//! A segment file of arbitrary bytes, or a good one with arbitrary edits, read block by block.
//!
//! The first byte chooses: even, the rest is the file; odd, each following 5 bytes change one byte of a
//! good segment (offset, exclusive or). A block that is handed out must be whole: its events must add up to
//! its header.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use keepup_recording::fixture::{BlockPlan, SegmentBuilder};
use keepup_recording::id::Id;
use keepup_recording::journal::{Journal, JournalRecord};
use keepup_recording::layout::{FORMAT_VERSION, SegmentIdentity, segment_file_name};
use keepup_recording::manifest::{Manifest, Placement};
use keepup_recording::reader::{Recording, SegmentReader};
use keepup_stream::wire::{ElementType, StreamInfo};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const RECORDING: Id = Id([7; 16]);
const SEGMENT: Id = Id([9; 16]);
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
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            name: "fuzz".to_owned(),
            recording: RECORDING,
            volume: Id([1; 16]),
            volume_index: 0,
            volumes: vec![root.path().to_owned()],
            placement: Placement::Free,
            created_unix_ns: 1,
            tool_version: "0.0.0".to_owned(),
        };
        let dir = manifest.create(root.path()).expect("make the recording");
        let mut journal = Journal::create(&dir, &manifest).expect("make the journal");
        let file = segment_file_name(0);
        let segment = dir.join(&file);
        for record in [
            JournalRecord::Stream(stream()),
            JournalRecord::Segment { index: 0, id: SEGMENT, file, preallocated_bytes: 1 << 20 },
        ] {
            journal.append(&record).expect("write the journal");
        }
        fs::write(&segment, good()).expect("write the segment");
        let recording = Recording::open(&[dir]).expect("open the recording");
        Self { _root: root, recording, segment }
    }
}

fn stream() -> StreamInfo {
    StreamInfo { id: 3, name: "left".to_owned(), element: ElementType::U16, shape: vec![], compression: None }
}

/// Two blocks of small events.
fn good() -> Vec<u8> {
    let identity =
        SegmentIdentity { recording: RECORDING, segment: SEGMENT, created_unix_ns: 1, ..Default::default() };
    let mut builder = SegmentBuilder::new(identity);
    let events: [(u64, &[u8]); 3] = [(10, b"first"), (20, b"second event"), (15, b"")];
    for block in 0..2 {
        let plan = BlockPlan { stream_block: block, first_sequence: block * 3, flags: 0 };
        builder.block(&stream(), plan, &events).expect("build a block");
    }
    builder.finish()
}

/// The good segment with the edits applied.
fn edited(edits: &[u8]) -> Vec<u8> {
    let mut bytes = good();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % bytes.len();
        bytes[at] ^= edit[4];
    }
    bytes
}
