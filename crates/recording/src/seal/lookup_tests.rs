//! Forged indexes with valid checksums and false numbers.
use std::fs;

use keepup_error::Cause;

use super::SegmentLookup;
use crate::error::RecordingError;
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::layout::SegmentIdentity;
use crate::testing::damage::{block_at, forge_lookup, locator_at, lookup, stream_at};
use crate::testing::{payloads, stream};
use crate::volume::{Segment, SegmentState};

/// A sealed segment with three blocks of ten events of stream 1, and two of stream 3; and the end
/// of its blocks.
fn sealed() -> (Vec<u8>, u64) {
    let mut segment = SegmentBuilder::new(SegmentIdentity::default());
    for (id, block) in [(1, 0), (3, 0), (1, 1), (3, 1), (1, 2)] {
        let events = payloads(block, 10, 500);
        let events: Vec<(u64, &[u8])> = events.iter().map(|(time, payload)| (*time, &payload[..])).collect();
        let plan = BlockPlan { stream_block: block, first_sequence: block * 10, flags: 0 };
        segment.block(&stream(id), plan, &events).unwrap();
    }
    let data_bytes = segment.bytes().len() as u64;
    (segment.finish(), data_bytes)
}

/// Reads the whole index.
fn read(bytes: &[u8], data_bytes: u64) -> Result<usize, RecordingError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    fs::write(&path, bytes).unwrap();
    let state = SegmentState::Ended { bytes: bytes.len() as u64, data_bytes, blocks: 5 };
    let segment = Segment { index: 0, id: Id::default(), path, state };
    let lookup = SegmentLookup::open(&segment)?;
    let blocks = lookup.streams.iter().map(|summary| lookup.blocks_of(summary, &segment));
    blocks.map(|blocks| Ok(blocks?.len())).sum()
}

/// Writes numbers at offsets, recomputes the checksums, and returns the error.
fn forged(edits: &[(usize, u64, usize)]) -> String {
    let (mut bytes, data_bytes) = sealed();
    for &(at, number, length) in edits {
        bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
    }
    forge_lookup(&mut bytes, 2);
    let error = read(&bytes, data_bytes).unwrap_err();
    assert!(matches!(error, RecordingError::Segment { offset, .. } if offset >= data_bytes), "{error}");
    Cause::of(&error).to_text()
}

#[test]
fn an_unchanged_index_is_read() {
    let (mut bytes, data_bytes) = sealed();
    forge_lookup(&mut bytes, 2);
    assert_eq!(bytes, sealed().0);
    assert_eq!(read(&bytes, data_bytes).unwrap(), 5);
}

#[test]
fn counts_beyond_what_a_segment_can_have_take_no_memory() {
    let (bytes, _) = sealed();
    let (at, locator) = (lookup(&bytes).start, locator_at(&bytes));
    for streams in [65_537, u64::from(u32::MAX)] {
        assert!(forged(&[(at + 8, streams, 4)]).contains("more streams or blocks"));
    }
    for blocks in [1 << 22, u64::MAX / 40, u64::MAX] {
        assert!(forged(&[(at + 16, blocks, 8)]).contains("more streams or blocks"));
    }
    assert!(forged(&[(at + 8, 3, 4)]).contains("its length is not"));
    assert!(forged(&[(at + 16, 4, 8)]).contains("its length is not"));
    assert!(forged(&[(locator + 24, u64::MAX, 8)]).contains("beyond the file"));
    assert!(forged(&[(locator + 24, 1 << 40, 8)]).contains("beyond the file"));
    assert!(forged(&[(locator + 8, 1 << 60, 8)]).contains("beyond the file"));
}

#[test]
fn streams_that_contradict_themselves_are_refused() {
    let (bytes, _) = sealed();
    let (first, second) = (stream_at(&bytes, 0), stream_at(&bytes, 1));
    for (edits, expected) in [
        (vec![(second, 1, 4)], "not in order"),
        (vec![(second, 1 << 16, 4)], "not in order"),
        (vec![(first + 4, 0, 4)], "not where they should be"),
        (vec![(first + 8, 1, 8)], "not where they should be"),
        (vec![(second + 8, u64::MAX, 8)], "not where they should be"),
        (vec![(second + 4, 1, 4)], "blocks of no stream"),
        (vec![(first + 16, 0, 8)], "more events than fit"),
        (vec![(first + 16, u64::MAX, 8)], "more events than fit"),
        (vec![(first + 24, u64::MAX, 8)], "more bytes than fit"),
        (vec![(first + 40, u64::MAX, 8)], "overflow"),
        (vec![(first + 32, 100, 8)], "overflow"),
        (vec![(first + 48, u64::MAX, 8)], "first time is after its last"),
    ] {
        let text = forged(&edits);
        assert!(text.contains(expected) && text.contains("hint: "), "{edits:?}: {text}");
    }
}

#[test]
fn blocks_that_contradict_their_stream_are_refused() {
    let (bytes, data_bytes) = sealed();
    let (first, second, last) = (block_at(&bytes, 0), block_at(&bytes, 1), block_at(&bytes, 2));
    let stream = stream_at(&bytes, 0);
    for (edits, expected) in [
        (vec![(second + 32, 0, 4)], "has no events"),
        (vec![(second + 8, 9, 8)], "do not ascend"),
        (vec![(second + 8, 0, 8)], "do not ascend"),
        (vec![(last + 8, u64::MAX - 5, 8)], "overflow"),
        (vec![(first, 0, 8)], "where none can be"),
        (vec![(first, 5000, 8)], "where none can be"),
        (vec![(first, data_bytes, 8)], "where none can be"),
        (vec![(first, u64::MAX - 4095, 8)], "where none can be"),
        (vec![(first + 16, u64::MAX, 8)], "first time is after its last"),
        (vec![(first + 24, 1 << 40, 8)], "times are not those"),
        (vec![(last + 32, 11, 4)], "do not add up"),
        (vec![(second + 8, 10, 8), (stream + 16, 31, 8)], "do not add up"),
        (vec![(last + 8, 21, 8)], "do not add up"),
    ] {
        let text = forged(&edits);
        assert!(text.contains(expected), "{edits:?}: {text}");
    }
}

#[test]
fn a_file_of_another_length_than_the_journal_says_is_refused() {
    let (mut bytes, data_bytes) = sealed();
    let state = |bytes: u64| SegmentState::Ended { bytes, data_bytes, blocks: 5 };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let length = bytes.len() as u64;
    bytes.push(0);
    fs::write(&path, &bytes).unwrap();
    for expected in [length, length + 2, u64::MAX, 1 << 63] {
        let segment = Segment { index: 0, id: Id::default(), path: path.clone(), state: state(expected) };
        let error = SegmentLookup::open(&segment).unwrap_err().to_string();
        assert!(error.contains("the journal says"), "{error}");
    }
}
