//! A segment that was cut off, good with arbitrary edits and cut anywhere: recovery takes what is whole,
//! and what it sealed can be read back in every way.
//!
//! The first four bytes say where the file is cut; each following 5 bytes change one byte of it (offset,
//! exclusive or).
#![no_main]

use std::ops::ControlFlow;

use keepup_recording::access::{From, StreamReader};
use keepup_recording::fixture::{SCENE_STREAM, edit, scene, scene_segment};
use keepup_recording::info::info;
use keepup_recording::reader::Recording;
use keepup_recording::recover::{RecoverOptions, recover};
use keepup_recording::verify::{VerifyOptions, verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((cut, edits)) = data.split_first_chunk::<4>() else { return };
    let mut bytes = scene_segment(3).expect("build the segment");
    edit(&mut bytes, edits);
    bytes.truncate(u32::from_le_bytes(*cut) as usize % (bytes.len() + 1));
    let root = tempfile::tempdir().expect("make a directory");
    let dir = scene(root.path(), &bytes).expect("make the recording");
    let dirs = [dir];
    // A first sector that is damaged is told of.
    let Ok(report) = recover(&dirs, RecoverOptions::default(), &mut |_| {}) else { return };
    if !report.complete {
        return;
    }
    let recording = Recording::open(&dirs).expect("open what was recovered");
    let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    assert!(report.faults.is_empty(), "{report:#?}");
    let told = info(&recording).expect("read the indexes");
    let mut read = 0;
    if let Some(mut reader) = StreamReader::open(&recording, SCENE_STREAM).expect("open the stream") {
        reader
            .read(From::Sequence(0), &mut |_| {
                read += 1;
                ControlFlow::Continue(())
            })
            .expect("read it");
    }
    assert_eq!(told.streams.get(&SCENE_STREAM).map_or(0, |stream| stream.events), read);
});
