//! A segment that was cut off, good with arbitrary edits and cut anywhere: recovery takes what is whole,
//! and what it sealed can be read back in every way.
//!
//! The first four bytes say where the file is cut; each following 5 bytes change one byte of it (offset,
//! exclusive or).
#![no_main]

use std::fs;
use std::ops::ControlFlow;

use keepup_recording::access::{From, StreamReader};
use keepup_recording::fixture::{BlockPlan, SegmentBuilder};
use keepup_recording::id::Id;
use keepup_recording::info::info;
use keepup_recording::journal::{Journal, JournalRecord};
use keepup_recording::layout::{FORMAT_VERSION, SegmentIdentity, segment_file_name};
use keepup_recording::manifest::{Manifest, Placement};
use keepup_recording::reader::Recording;
use keepup_recording::recover::recover;
use keepup_recording::verify::{VerifyOptions, verify};
use keepup_stream::wire::{ElementType, StreamInfo};
use libfuzzer_sys::fuzz_target;

const RECORDING: Id = Id([7; 16]);
const SEGMENT: Id = Id([9; 16]);

fuzz_target!(|data: &[u8]| {
    let Some((cut, edits)) = data.split_first_chunk::<4>() else { return };
    let mut bytes = good();
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % bytes.len();
        bytes[at] ^= edit[4];
    }
    bytes.truncate(u32::from_le_bytes(*cut) as usize % (bytes.len() + 1));
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
    fs::write(dir.join(&file), &bytes).expect("write the segment");
    for record in [
        JournalRecord::Stream(stream()),
        JournalRecord::Segment { index: 0, id: SEGMENT, file, preallocated_bytes: 1 << 20 },
    ] {
        journal.append(&record).expect("write the journal");
    }
    drop(journal);
    let dirs = [dir];
    // A first sector that is damaged is told of.
    let Ok(report) = recover(&dirs) else { return };
    if !report.complete {
        return;
    }
    let recording = Recording::open(&dirs).expect("open what was recovered");
    let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    assert!(report.faults.is_empty(), "{report:#?}");
    let told = info(&recording).expect("read the indexes");
    let mut read = 0;
    if let Some(mut reader) = StreamReader::open(&recording, 3, 1 << 20).expect("open the stream") {
        reader.read(From::Sequence(0), &mut |_| { read += 1; ControlFlow::Continue(()) }).expect("read it");
    }
    assert_eq!(told.streams.get(&3).map_or(0, |stream| stream.events), read);
});

fn stream() -> StreamInfo {
    StreamInfo { id: 3, name: "left".to_owned(), element: ElementType::U16, shape: vec![], compression: None }
}

/// Three blocks of small events, sealed.
fn good() -> Vec<u8> {
    let identity =
        SegmentIdentity { recording: RECORDING, segment: SEGMENT, created_unix_ns: 1, ..Default::default() };
    let mut builder = SegmentBuilder::new(identity);
    let events: [(u64, &[u8]); 3] = [(10, b"first"), (20, b"second event"), (15, b"")];
    for block in 0..3 {
        let plan = BlockPlan { stream_block: block, first_sequence: block * 3, flags: 0 };
        builder.block(&stream(), plan, &events).expect("build a block");
    }
    builder.finish()
}
