//! Exports compared with what was recorded.
use std::fs;

use super::{nexus, one_file, raw, zarr_reference};
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
    let array: serde_json::Value =
        serde_json::from_str(refs["module 2/data/.zarray"].as_str().unwrap()).unwrap();
    assert_eq!(array["shape"], serde_json::json!([40, 4, 8]));
    assert_eq!(array["dtype"], "<u2");
    for row in 0..40u64 {
        let place = &refs[&format!("module 2/data/{row}.0.0")];
        let file = fs::read(place[0].as_str().unwrap()).unwrap();
        let (at, length) = (place[1].as_u64().unwrap() as usize, place[2].as_u64().unwrap() as usize);
        assert_eq!(file[at..at + length], [row as u8; 64]);
    }
}

/// Metadata record of an exported file.
fn missing_in(bytes: &[u8]) -> std::collections::BTreeMap<String, String> {
    let summary = mcap::Summary::read(bytes).unwrap().unwrap();
    assert_eq!(summary.stats.as_ref().unwrap().metadata_count, 1);
    let metadata = mcap::read::metadata(bytes, &summary.metadata_indexes[0]).unwrap();
    assert_eq!(metadata.name, "missing");
    metadata.metadata
}

#[test]
fn streams_without_events_are_exported_with_none() {
    let mut test = TestRecording::new(2, Placement::Free, &[2, 3, 4, 5]);
    test.block(0, 2, 0, 0, &frames(0));
    // All events of stream 5 are missing.
    test.gap(0, 5, 0, 3);
    test.end();
    let recording = Recording::open(&test.dirs()).unwrap();
    let out = |name: &str| test.root.path().join(name);
    let exported = one_file(&recording, None, &out("all.mcap"), &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.events, exported.left_out), (4, 5, 0));
    let bytes = fs::read(out("all.mcap")).unwrap();
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let counts = summary.stats.unwrap().channel_message_counts;
    assert_eq!(counts, [(2, 5), (3, 0), (4, 0), (5, 0)].into());
    let topics: Vec<&str> = summary.channels.values().map(|channel| channel.topic.as_str()).collect();
    assert!(topics.len() == 4 && topics.contains(&"module 5"), "{topics:?}");
    let missing = [("2", "[]"), ("3", "[]"), ("4", "[]"), ("5", r#"[[0,3,"sequence_gap"]]"#)];
    assert_eq!(missing_in(&bytes), missing.map(|(id, text)| (id.to_owned(), text.to_owned())).into());
    // The segment has only the stream with a block.
    let segment = fs::read(test.volumes[0].dir.join("segment-000000.mcap")).unwrap();
    assert_eq!(mcap::Summary::read(&segment).unwrap().unwrap().channels.len(), 1);

    let exported = one_file(&recording, Some(3), &out("three.mcap"), &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.events, exported.missing.len()), (1, 0, 0));
    let exported = raw(&recording, None, &out("raw"), &mut |_| {}).unwrap();
    assert_eq!((exported.streams, exported.missing.len()), (4, 1));
    assert_eq!(fs::read(out("raw/module 4.raw")).unwrap(), b"");
    assert_eq!(fs::read_to_string(out("raw/module 4.csv")).unwrap().lines().count(), 1);
    let exported = zarr_reference(&recording, None, &out("refs.json")).unwrap();
    assert_eq!((exported.streams, exported.left_out), (2, 2));
    assert_eq!(zarr(&out("refs.json"), "module 4/data/.zarray")["shape"], serde_json::json!([0, 4, 8]));
    assert_eq!(zarr(&out("refs.json"), "module 4/valid/.zarray")["shape"], serde_json::json!([0]));
    let exported = nexus(&recording, &out("all.nxs")).unwrap();
    assert_eq!((exported.streams, exported.events, exported.left_out), (4, 5, 0));
}

#[test]
fn a_stream_with_data_in_some_segments_has_no_rows_in_the_master() {
    // The second block of stream 2 is of another size, and in the second segment if `rotates`.
    for (sizes, rotates, left_out) in [([64, 64], true, 0), ([64, 63], true, 1), ([64, 63], false, 0)] {
        let mut test = TestRecording::new(1, Placement::Free, &[2, 4]);
        for (turn, size) in (0u64..).zip(sizes) {
            let payload = vec![1; size];
            test.block(0, 2, turn * 2, 0, &[(1, payload.clone()), (2, payload)]);
            test.block(0, 4, turn * 5, 0, &frames(turn));
            if turn == 0 && rotates {
                test.volumes[0].rotate();
            }
        }
        test.end();
        let path = test.root.path().join("all.nxs");
        let exported = nexus(&Recording::open(&test.dirs()).unwrap(), &path).unwrap();
        assert_eq!((exported.streams, exported.events, exported.left_out), (2, 14, left_out));
        let bytes = fs::read(&path).unwrap();
        let says = bytes.windows(8).any(|window| window == b"left_out");
        assert_eq!(says, left_out > 0, "{sizes:?}, {rotates}");
    }
}

/// Metadata in Zarr references.
fn zarr(path: &std::path::Path, key: &str) -> serde_json::Value {
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    serde_json::from_str(json["refs"][key].as_str().unwrap()).unwrap()
}

/// Rows of `valid` in Zarr references, by chunk.
fn valid_rows(path: &std::path::Path, name: &str) -> std::collections::BTreeMap<u64, Vec<u8>> {
    use base64::Engine as _;
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let chunk = |(key, value): (&String, &serde_json::Value)| {
        let number = key.strip_prefix(&format!("{name}/valid/"))?.parse().ok()?;
        let text = value.as_str()?.strip_prefix("base64:")?;
        Some((number, base64::engine::general_purpose::STANDARD.decode(text).unwrap()))
    };
    json["refs"].as_object().unwrap().iter().filter_map(chunk).collect()
}

#[test]
fn rows_of_missing_events_are_not_valid() {
    let mut test = TestRecording::new(1, Placement::Free, &[2]);
    // Events 0 to 4, 7 to 11, 4094 to 4098 and 10000 to 10004; 10005 to 10010 are missing too.
    let starts = [0, 7, 4094, 10_000];
    let mut next = 0;
    for start in starts {
        if start > next {
            test.gap(0, 2, next, start - next);
        }
        next = test.block(0, 2, start, 0, &frames(start));
    }
    test.gap(0, 2, next, 6);
    test.end();
    let recording = Recording::open(&test.dirs()).unwrap();
    let path = test.root.path().join("refs.json");
    let exported = zarr_reference(&recording, None, &path).unwrap();
    assert_eq!((exported.events, exported.missing.as_slice()), (20, recording.gaps().as_slice()));
    for array in ["data", "valid"] {
        assert_eq!(zarr(&path, &format!("module 2/{array}/.zarray"))["shape"][0], 10_011);
    }
    let about = zarr(&path, "module 2/.zattrs");
    assert_eq!((about["events"].as_u64(), about["missing"].as_array().unwrap().len()), (Some(20), 4));
    let valid: Vec<u64> = valid_rows(&path, "module 2")
        .into_iter()
        .flat_map(|(number, rows)| (number * 4096..).zip(rows).filter(|(_, row)| *row == 1))
        .map(|(row, _)| row)
        .collect();
    assert_eq!(valid, starts.iter().flat_map(|start| *start..start + 5).collect::<Vec<_>>());
}

#[test]
fn times_from_1970_to_2554_are_exported_as_they_are() {
    let times = [0, (1 << 63) - 1, 1 << 63, u64::MAX];
    let mut test = TestRecording::new(1, Placement::Free, &[2]);
    test.block(0, 2, 0, 0, &times.map(|time| (time, vec![1; 64])));
    test.end();
    let recording = Recording::open(&test.dirs()).unwrap();
    let out = |name: &str| test.root.path().join(name);
    one_file(&recording, None, &out("all.mcap"), &mut |_| {}).unwrap();
    let bytes = fs::read(out("all.mcap")).unwrap();
    let found: Vec<u64> =
        mcap::MessageStream::new(&bytes).unwrap().map(|message| message.unwrap().log_time).collect();
    assert_eq!(found, times);
    let stats = mcap::Summary::read(&bytes).unwrap().unwrap().stats.unwrap();
    assert_eq!((stats.message_start_time, stats.message_end_time), (0, u64::MAX));
    raw(&recording, None, &out("raw"), &mut |_| {}).unwrap();
    let table = fs::read_to_string(out("raw/module 2.csv")).unwrap();
    let column: Vec<u64> =
        table.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(column, times);
    let end = crate::info::info(&recording).unwrap().streams[&2].last_timestamp_ns;
    assert_eq!(end, Some(u64::MAX));
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
