//! Tests of following a recording while it is written.

use super::*;
use crate::manifest::Placement;
use crate::reader::SegmentReader;
use crate::testing::{TestRecording, payloads};

/// Reads on; returns the first sequence number of each new block.
fn read_on(reader: &mut SegmentReader, limit: u64) -> Vec<u64> {
    let mut found = Vec::new();
    while let Some(block) = reader.next_block(limit).unwrap() {
        found.push(block.header.first_sequence);
    }
    found
}

#[test]
fn a_drain_sees_blocks_when_they_are_durable_and_not_before() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    let mut follower = Follower::open(&test.dirs()).unwrap();
    let readable = |follower: &Follower, segment: usize| {
        follower.volumes()[0].segments().get(segment).map(|segment| segment.readable_bytes())
    };
    assert_eq!(readable(&follower, 0), Some(0));
    assert!(!follower.poll().unwrap());

    let next = test.block(0, 0, 0, 0, &payloads(1, 3, 5000));
    test.volumes[0].watermark();
    assert!(follower.poll().unwrap());
    let volume = &follower.volumes()[0];
    let mut reader = SegmentReader::open(volume, &volume.segments()[0], 1 << 20).unwrap();
    let first_end = readable(&follower, 0).unwrap();
    assert_eq!(read_on(&mut reader, 0), [0u64; 0]);
    assert_eq!(read_on(&mut reader, first_end), [0]);

    // Written, and no watermark yet.
    let last = test.block(0, 0, next, 0, &payloads(2, 3, 50_000));
    std::fs::write(test.volumes[0].segment_path(), test.volumes[0].builder.bytes()).unwrap();
    assert!(!follower.poll().unwrap());
    assert_eq!(read_on(&mut reader, readable(&follower, 0).unwrap()), [0u64; 0]);

    test.volumes[0].rotate();
    test.block(0, 0, last, 0, &payloads(3, 1, 10));
    test.volumes[0].watermark();
    assert!(follower.poll().unwrap());
    assert!(follower.volumes()[0].segments()[0].is_ended());
    assert_eq!(read_on(&mut reader, readable(&follower, 0).unwrap()), [next]);
    let volume = &follower.volumes()[0];
    let mut reader = SegmentReader::open(volume, &volume.segments()[1], 1 << 20).unwrap();
    assert_eq!(read_on(&mut reader, readable(&follower, 1).unwrap()), [last]);
    assert!(!follower.is_ended());
    test.end();
    assert!(follower.poll().unwrap() && follower.is_ended());
    assert_eq!(read_on(&mut reader, readable(&follower, 1).unwrap()), [0u64; 0]);
}

#[test]
fn a_journal_that_contradicts_itself_is_refused() {
    use crate::id::Id;
    use crate::journal::JournalRecord::{self, *};
    let file = |name: &str| name.to_owned();
    let mark =
        |durable_bytes, blocks| Watermark { segment: 0, written_bytes: 1 << 20, durable_bytes, blocks };
    let bad: [(&str, JournalRecord); 10] = [
        ("second begin", Begin { recording: Id([7; 16]), volume: Id([0; 16]), time_unix_ns: 0 }),
        ("second time", Stream(crate::testing::stream(0))),
        ("the next is 1", Segment { index: 2, id: Id([0; 16]), file: file("x"), preallocated_bytes: 0 }),
        ("not called", Segment { index: 1, id: Id([0; 16]), file: file("../x"), preallocated_bytes: 0 }),
        ("earlier point", mark(4096, 1)),
        ("earlier point", mark(16384, 0)),
        ("odd", mark(8193, 1)),
        ("odd", mark(2 << 20, 1)),
        ("not begun", SegmentEnd { index: 1, bytes: 5000, data_bytes: 4096, blocks: 0 }),
        ("not that of a segment", SegmentEnd { index: 0, bytes: 8192, data_bytes: 8192, blocks: 1 }),
    ];
    for (what, record) in bad {
        let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
        let mut follower = Follower::open(&test.dirs()).unwrap();
        test.volumes[0].journal().append(&mark(8192, 1)).unwrap();
        follower.poll().unwrap();
        test.volumes[0].journal().append(&record).unwrap();
        let error = follower.poll().unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("line 5"), "{record:?} gives {error}");
    }
    let mut test = TestRecording::new(1, Placement::Pinned, &[]);
    test.end();
    test.gap(0, 0, 0, 1);
    let error = Follower::open(&test.dirs()).unwrap_err().to_string();
    assert!(error.contains("behind the end record"), "{error}");
}
