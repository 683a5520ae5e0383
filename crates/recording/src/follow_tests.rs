//! Following a recording while it is written.

use super::*;
use crate::manifest::Placement;
use crate::reader::SegmentReader;
use crate::testing::{TestRecording, payloads};

/// Reads more blocks; returns the first sequence number of each.
fn read_on(reader: &mut SegmentReader, limit: u64) -> Vec<u64> {
    let mut found = Vec::new();
    while let Some(block) = reader.next_block(limit).unwrap() {
        found.push(block.header.first_sequence);
    }
    found
}

#[test]
fn a_drain_sees_blocks_only_when_they_are_durable() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    let mut follower = Follower::open(&test.dirs()).unwrap();
    let readable = |follower: &Follower, segment: usize| {
        follower.volumes()[0].segments().get(segment).map(|segment| segment.readable_bytes())
    };
    assert_eq!(readable(&follower, 0), Some(0));
    assert!(!follower.poll());

    let next = test.block(0, 0, 0, 0, &payloads(1, 3, 5000));
    test.volumes[0].watermark();
    assert!(follower.poll());
    let volume = &follower.volumes()[0];
    let mut reader = SegmentReader::open(volume, &volume.segments()[0], 1 << 20).unwrap();
    let first_end = readable(&follower, 0).unwrap();
    assert_eq!(read_on(&mut reader, 0), [0u64; 0]);
    assert_eq!(read_on(&mut reader, first_end), [0]);

    // Written, without a watermark so far.
    let last = test.block(0, 0, next, 0, &payloads(2, 3, 50_000));
    std::fs::write(test.volumes[0].segment_path(), test.volumes[0].builder.bytes()).unwrap();
    assert!(!follower.poll());
    assert_eq!(read_on(&mut reader, readable(&follower, 0).unwrap()), [0u64; 0]);

    test.volumes[0].rotate();
    test.block(0, 0, last, 0, &payloads(3, 1, 10));
    test.volumes[0].watermark();
    assert!(follower.poll());
    assert!(follower.volumes()[0].segments()[0].is_ended());
    assert_eq!(read_on(&mut reader, readable(&follower, 0).unwrap()), [next]);
    let volume = &follower.volumes()[0];
    let mut reader = SegmentReader::open(volume, &volume.segments()[1], 1 << 20).unwrap();
    assert_eq!(read_on(&mut reader, readable(&follower, 1).unwrap()), [last]);
    assert!(!follower.is_ended());
    test.end();
    assert!(follower.poll() && follower.is_ended());
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
        follower.poll();
        test.volumes[0].journal().append(&record).unwrap();
        follower.poll();
        let error = follower.fault(0).unwrap().to_string();
        assert!(error.contains(what) && error.contains("line 6"), "{record:?} gives {error}");
    }
    let mut test = TestRecording::new(1, Placement::Pinned, &[]);
    test.end();
    test.gap(0, 0, 0, 1);
    let error = Follower::open(&test.dirs()).unwrap_err().to_string();
    assert!(error.contains("behind the end record"), "{error}");
}

#[test]
fn a_damaged_journal_does_not_affect_the_others() {
    let mut test = TestRecording::new(2, Placement::Free, &[0]);
    let mut follower = Follower::open(&test.dirs()).unwrap();
    let journal = test.volumes[0].dir.join(crate::journal::JOURNAL_FILE);
    let mut text = std::fs::read(&journal).unwrap();
    text.extend_from_slice(b"this is no line\n{}\n");
    std::fs::write(&journal, text).unwrap();
    test.block(1, 0, 0, 0, &payloads(1, 3, 5000));
    test.volumes[1].watermark();
    assert!(follower.poll());
    assert!(follower.fault(0).is_some() && follower.fault(1).is_none());
    assert_eq!(follower.volumes()[1].segments()[0].readable_blocks(), 1);
    test.gap(1, 0, 3, 10);
    assert!(follower.poll());
    let parts = follower.lost(0, 5..20);
    assert_eq!(parts.iter().map(|gap| (gap.first_sequence, gap.events)).collect::<Vec<_>>(), [(5, 8)]);
}
