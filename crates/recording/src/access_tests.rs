//! Events by sequence number and by time, from sealed and growing segments on several volumes.
use std::ops::ControlFlow;

use super::{From, StreamReader};
use crate::manifest::Placement;
use crate::reader::Recording;
use crate::testing::{TestRecording, payloads};

const BLOCK_BYTES_MAX: u64 = 1 << 20;

/// Stream 2 in blocks of five events in turns over two volumes, several segments, events 40..45 missing; the
/// last segments are not sealed.
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

/// Events of a turn, a thousand ns after those of the turn before.
fn events(turn: u64) -> Vec<(u64, Vec<u8>)> {
    let events = payloads(turn, 5, 600);
    (0..).zip(events).map(|(n, (_, payload))| (turn * 1000 + n * 10, payload)).collect()
}

/// Sequence numbers read, at most `count`; each event is compared with what was written.
fn read(from: From, count: usize) -> Vec<u64> {
    let test = recording();
    let opened = Recording::open(&test.dirs()).unwrap();
    let mut reader = StreamReader::open(&opened, 2, BLOCK_BYTES_MAX).unwrap().unwrap();
    let mut found = Vec::new();
    let told = reader.read(from, &mut |event| {
        let (time, payload) = &events(event.sequence / 5)[(event.sequence % 5) as usize];
        assert_eq!((event.timestamp_ns, event.payload), (*time, &payload[..]));
        found.push(event.sequence);
        if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(told.unwrap(), found.len() as u64);
    found
}

#[test]
fn every_event_comes_in_order_up_to_what_is_durable() {
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
fn other_streams_have_nothing_or_are_not_there() {
    let test = recording();
    let opened = Recording::open(&test.dirs()).unwrap();
    let mut empty = StreamReader::open(&opened, 3, BLOCK_BYTES_MAX).unwrap().unwrap();
    assert_eq!(empty.info().id, 3);
    assert_eq!(empty.read(From::Sequence(0), &mut |_| ControlFlow::Continue(())).unwrap(), 0);
    assert!(StreamReader::open(&opened, 4, BLOCK_BYTES_MAX).unwrap().is_none());
}
