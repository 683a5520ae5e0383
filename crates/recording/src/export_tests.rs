//! Exports compared with what was recorded.
use std::fs;

use super::{one_file, raw, zarr_reference};
use crate::error::RecordingError;
use crate::manifest::Placement;
use crate::reader::Recording;
use crate::testing::damage::{block_at, forge_lookup};
use crate::testing::{TestRecording, payloads};

/// Two volumes, stream 2 (frames of 64 bytes) and stream 3 (any size), two segments each.
fn recording(is_ended: bool) -> TestRecording {
    let mut recording = TestRecording::new(2, Placement::Free, &[2, 3]);
    for turn in 0..8u64 {
        let volume = (turn % 2) as usize;
        recording.block(volume, 2, turn * 5, 0, &frames(turn));
        recording.block(volume, 3, turn * 5, 0, &payloads(turn, 5, 700));
        if turn == 3 {
            recording.volumes.iter_mut().for_each(|volume| volume.rotate());
        }
    }
    if is_ended {
        recording.end();
    }
    recording
}

fn frames(turn: u64) -> Vec<(u64, Vec<u8>)> {
    (0..5).map(|n| (turn * 10 + n, vec![(turn * 5 + n) as u8; 64])).collect()
}

#[test]
fn one_file_is_mcap_with_every_event_once() {
    let test = recording(true);
    let path = test.root.path().join("all.mcap");
    let exported = one_file(&Recording::open(&test.dirs()).unwrap(), None, &path, &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.events), (2, 80));
    let bytes = fs::read(&path).unwrap();
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    assert_eq!(summary.stats.unwrap().message_count, 80);
    let mut found = Vec::new();
    for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
        let (turn, n) = (u64::from(message.sequence) / 5, message.sequence as usize % 5);
        let expected = if message.channel.id == 2 { frames(turn) } else { payloads(turn, 5, 700) };
        assert_eq!(message.data[..], expected[n].1[..]);
        found.push((message.channel.id, message.sequence));
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 80);
    // Nothing is overwritten.
    assert!(one_file(&Recording::open(&test.dirs()).unwrap(), None, &path, &mut |_| {}).is_err());
}

#[test]
fn one_stream_alone() {
    let test = recording(true);
    let path = test.root.path().join("two.mcap");
    let exported = one_file(&Recording::open(&test.dirs()).unwrap(), Some(2), &path, &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.events, exported.payload_bytes), (1, 40, 40 * 64));
}

#[test]
fn raw_files_with_their_tables() {
    let test = recording(true);
    let dir = test.root.path().join("raw");
    let exported = raw(&Recording::open(&test.dirs()).unwrap(), None, &dir, &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.events), (2, 80));
    let expected: Vec<u8> = (0..8).flat_map(frames).flat_map(|(_, payload)| payload).collect();
    assert_eq!(fs::read(dir.join("module 2.raw")).unwrap(), expected);
    let bytes = fs::read(dir.join("module 3.raw")).unwrap();
    let table = fs::read_to_string(dir.join("module 3.csv")).unwrap();
    for (sequence, line) in (0usize..).zip(table.lines().skip(1)) {
        let fields: Vec<usize> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let (time, payload) = &payloads(sequence as u64 / 5, 5, 700)[sequence % 5];
        assert_eq!((fields[0], fields[1] as u64), (sequence, *time));
        assert_eq!(bytes[fields[2]..fields[2] + fields[3]], payload[..]);
    }
}

#[test]
fn references_point_to_the_events() {
    let test = recording(true);
    let path = test.root.path().join("refs.json");
    let exported = zarr_reference(&Recording::open(&test.dirs()).unwrap(), None, &path).unwrap();
    assert_eq!((exported.streams, exported.left_out, exported.events), (1, 1, 40));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let refs = json["refs"].as_object().unwrap();
    let about: serde_json::Value = serde_json::from_str(refs[".zattrs"].as_str().unwrap()).unwrap();
    assert_eq!(about, serde_json::json!({"name": "run 7", "run": 7, "metadata": {"sample": "quartz"}}));
    let array: serde_json::Value = serde_json::from_str(refs["module 2/.zarray"].as_str().unwrap()).unwrap();
    assert_eq!(array["shape"], serde_json::json!([40, 4, 8]));
    assert_eq!(array["dtype"], "<u2");
    for row in 0..40u64 {
        let place = &refs[&format!("module 2/{row}.0.0")];
        let file = fs::read(place[0].as_str().unwrap()).unwrap();
        let (at, length) = (place[1].as_u64().unwrap() as usize, place[2].as_u64().unwrap() as usize);
        assert_eq!(file[at..at + length], [row as u8; 64]);
    }
}

#[test]
fn unsealed_recordings_are_not_exported() {
    let mut test = recording(false);
    test.volumes.iter_mut().for_each(|volume| volume.watermark());
    let opened = Recording::open(&test.dirs()).unwrap();
    let out = test.root.path().join("out");
    assert!(matches!(raw(&opened, None, &out, &mut |_| {}), Err(RecordingError::NotSealed { .. })));
    assert!(!out.exists());
}

#[test]
fn references_point_only_to_the_indexed_block() {
    let test = recording(true);
    let path = test.volumes[0].dir.join("segment-000000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    // Swaps the index entries of the two blocks of stream 2.
    let (first, second) = (block_at(&bytes, 0), block_at(&bytes, 1));
    for at in 0..8 {
        bytes.swap(first + at, second + at);
    }
    forge_lookup(&mut bytes, 2);
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&test.dirs()).unwrap();
    let error = zarr_reference(&recording, Some(2), &test.root.path().join("refs")).unwrap_err();
    assert!(matches!(&error, RecordingError::Segment { path: p, .. } if *p == path), "{error}");
}
