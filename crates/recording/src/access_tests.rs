//! Events by sequence number and by time, from sealed and growing segments on several volumes.
use std::fs;
use std::ops::ControlFlow;

use super::{From, StreamReader};
use crate::error::RecordingError;
use crate::layout::u64_at;
use crate::manifest::Placement;
use crate::reader::{Event, Recording};
use crate::testing::damage::{block_at, forge_lookup};
use crate::testing::{TestRecording, payloads};

/// Stream 2 in blocks of five events, alternating between two volumes, several segments, events
/// 40..45 missing; the last segments are unsealed.
fn recording() -> TestRecording {
    let mut recording = TestRecording::new(2, Placement::Free, &[2, 3]);
    for turn in 0..16u64 {
        if turn == 8 {
            recording.gap(0, 2, 40, 5);
            continue;
        }
        recording.block((turn % 2) as usize, 2, turn * 5, u32::from(turn == 9), &events(turn));
        if turn % 4 == 3 && turn < 15 {
            recording.volumes.iter_mut().for_each(|volume| volume.rotate());
        }
        if turn == 14 {
            recording.volumes.iter_mut().for_each(|volume| volume.watermark());
        }
    }
    recording
}

/// Events of a turn, 1000 ns after those of the previous turn.
fn events(turn: u64) -> Vec<(u64, Vec<u8>)> {
    let events = payloads(turn, 5, 600);
    (0..).zip(events).map(|(n, (_, payload))| (turn * 1000 + n * 10, payload)).collect()
}

/// Sequence numbers read, at most `count`; each event is compared with what was written.
fn read(from: From, count: usize) -> Vec<u64> {
    let test = recording();
    let opened = Recording::open(&test.dirs()).unwrap();
    let mut reader = StreamReader::open(&opened, 2).unwrap().unwrap();
    let mut found = Vec::new();
    let count = reader.read(from, &mut |event| {
        let (time, payload) = &events(event.sequence / 5)[(event.sequence % 5) as usize];
        assert_eq!((event.timestamp_ns, event.payload), (*time, &payload[..]));
        found.push(event.sequence);
        if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(count.unwrap(), found.len() as u64);
    found
}

#[test]
fn every_event_comes_in_order_up_to_the_durable_end() {
    let all = read(From::Sequence(0), usize::MAX);
    // Turn 15 came after the last watermark.
    let expected: Vec<u64> = (0..40).chain(45..75).collect();
    assert_eq!(all, expected);
}

#[test]
fn by_sequence_number() {
    assert_eq!(read(From::Sequence(33), 4), [33, 34, 35, 36]);
    assert_eq!(read(From::Sequence(39), 3), [39, 45, 46], "over the gap");
    assert_eq!(read(From::Sequence(42), 1), [45]);
    assert_eq!(read(From::Sequence(74), 5), [74]);
    assert!(read(From::Sequence(75), 5).is_empty());
}

#[test]
fn by_time() {
    assert_eq!(read(From::Time(0), 2), [0, 1]);
    assert_eq!(read(From::Time(6020), 2), [32, 33]);
    assert_eq!(read(From::Time(6021), 1), [33]);
    assert_eq!(read(From::Time(6500), 1), [35], "between two blocks");
    assert!(read(From::Time(99_000), 1).is_empty());
}

#[test]
fn empty_and_unknown_streams_are_distinguished() {
    let test = recording();
    let opened = Recording::open(&test.dirs()).unwrap();
    let mut empty = StreamReader::open(&opened, 3).unwrap().unwrap();
    assert_eq!(empty.info().id, 3);
    assert_eq!(empty.read(From::Sequence(0), &mut |_| ControlFlow::Continue(())).unwrap(), 0);
    assert!(StreamReader::open(&opened, 4).unwrap().is_none());
}

/// Error of reading stream 2; checks that no wrong event came before it.
fn refused(test: &TestRecording) -> RecordingError {
    let opened = Recording::open(&test.dirs()).unwrap();
    let mut sink = |event: Event<'_>| {
        assert_eq!(event.payload, &events(event.sequence / 5)[(event.sequence % 5) as usize].1[..]);
        ControlFlow::Continue(())
    };
    let reader = StreamReader::open(&opened, 2);
    reader.and_then(|reader| reader.unwrap().read(From::Sequence(0), &mut sink)).unwrap_err()
}

#[test]
fn an_index_with_wrong_offsets_is_refused() {
    let test = recording();
    // Swaps the index entries of the two blocks on volume 0.
    let path = test.volumes[0].dir.join("segment-000000.mcap");
    let mut bytes = fs::read(&path).unwrap();
    let (first, second) = (block_at(&bytes, 0), block_at(&bytes, 1));
    let offset = u64_at(&bytes, second);
    for at in 0..8 {
        bytes.swap(first + at, second + at);
    }
    forge_lookup(&mut bytes, 1);
    fs::write(&path, &bytes).unwrap();
    let error = refused(&test);
    assert!(
        matches!(&error, RecordingError::Segment { path: p, offset: o, .. } if (p, *o) == (&path, offset))
    );
    assert!(error.to_string().contains("another than the segment's index says"), "{error}");
}

#[test]
fn a_repeated_event_in_a_growing_segment_is_refused_without_a_hang() {
    for from in [0, 3] {
        let mut test = TestRecording::new(1, Placement::Free, &[2]);
        test.block(0, 2, 0, 0, &events(0));
        test.block(0, 2, from, 0, &events(0));
        test.volumes[0].watermark();
        let error = refused(&test).to_string();
        assert!(error.contains(&format!("has event {from} of stream 2 again")), "{error}");
    }
}

#[test]
fn blocks_of_another_segment_are_refused_while_recording() {
    let test = recording();
    let (to, from) = (test.volumes[0].segment_path(), test.volumes[1].segment_path());
    fs::copy(from, &to).unwrap();
    let error = refused(&test);
    assert!(matches!(&error, RecordingError::Segment { path, .. } if *path == to), "{error}");
    assert!(error.to_string().contains("of another segment"), "{error}");
}
