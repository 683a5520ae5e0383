//! Finding intact blocks, whatever follows them.
use std::fs;

use proptest::prelude::*;

use super::{ScanOptions, scan};
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::layout::{SECTOR, SegmentIdentity};
use crate::seal::put_tail;
use crate::testing::{payloads, stream};

const IDENTITY: SegmentIdentity = SegmentIdentity {
    recording: Id([7; 16]),
    segment: Id([9; 16]),
    volume_index: 1,
    segment_index: 3,
    created_unix_ns: 0,
};

/// A segment of five blocks with events of about `event_bytes`, and the ends of its blocks.
fn segment(event_bytes: usize) -> (SegmentBuilder, Vec<u64>) {
    let mut segment = SegmentBuilder::new(IDENTITY);
    let mut ends = vec![SECTOR as u64];
    for block in 0..5u64 {
        let events = payloads(block, 40, event_bytes);
        let events: Vec<(u64, &[u8])> = events.iter().map(|(time, payload)| (*time, &payload[..])).collect();
        let plan = BlockPlan { stream_block: block, first_sequence: block * 40, flags: 0 };
        ends.push(segment.block(&stream(1), plan, &events).unwrap().end as u64);
    }
    (segment, ends)
}

fn scanned(bytes: &[u8], durable_bytes: u64) -> Result<super::ScanResult, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("segment");
    fs::write(&path, bytes).unwrap();
    let options = ScanOptions { durable_bytes, reads_events: false };
    scan(&fs::File::open(&path).unwrap(), &path, &IDENTITY, options, &mut |_| {}).map_err(|e| e.to_string())
}

#[test]
fn scanned_blocks_seal_to_the_same_bytes() {
    // Small events in one piece, events over several pieces, and events with headers far apart.
    for event_bytes in [30, 9000, 70_000] {
        let (builder, ends) = segment(event_bytes);
        let (bytes, sealed) = (builder.bytes().to_vec(), builder.finish());
        for durable_bytes in [0, ends[2], ends[5]] {
            let found = scanned(&bytes, durable_bytes).unwrap();
            assert_eq!(found.data_bytes, ends[5]);
            let behind = ends.iter().skip(1).filter(|end| **end > durable_bytes).count() as u64;
            assert_eq!(found.blocks_behind, behind);
            let mut tail = Vec::new();
            put_tail(&found.index, found.data_bytes, &mut tail).unwrap();
            assert!(tail == sealed[ends[5] as usize..], "the tail equals the writer's");
        }
        // Bytes after the blocks make no difference, not even a complete tail.
        assert_eq!(scanned(&sealed, ends[2]).unwrap().data_bytes, ends[5]);
    }
}

#[test]
fn damage_below_the_watermark_is_reported_and_nothing_is_cut() {
    let (builder, ends) = segment(600);
    let mut bytes = builder.bytes().to_vec();
    bytes[ends[1] as usize + 20] ^= 1;
    assert_eq!(scanned(&bytes, ends[1]).unwrap().data_bytes, ends[1]);
    let why = scanned(&bytes, ends[2]).unwrap_err();
    assert!(why.contains(&format!("at offset {}", ends[1])), "{why}");
    let why = scanned(&builder.bytes()[..ends[2] as usize], ends[3]).unwrap_err();
    assert!(why.contains("ends before what the journal calls durable"), "{why}");
}

#[test]
fn another_segment_is_refused() {
    let (builder, _) = segment(60);
    let mut bytes = builder.bytes().to_vec();
    bytes[136] ^= 1;
    assert!(scanned(&bytes, 0).unwrap_err().contains("cannot trust a segment preamble"));
    let other = SegmentBuilder::new(SegmentIdentity { segment_index: 4, ..IDENTITY });
    assert!(scanned(other.bytes(), 0).unwrap_err().contains("another segment"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A cut or a flipped bit at any offset leaves exactly the blocks before it.
    #[test]
    fn the_first_block_that_is_not_whole_ends_it(at in any::<prop::sample::Index>(), flip in 0..9u8) {
        let (builder, ends) = segment(900);
        let mut bytes = builder.bytes().to_vec();
        let at = SECTOR + at.index(bytes.len() - SECTOR);
        if flip < 8 { bytes[at] ^= 1 << flip } else { bytes.truncate(at) }
        let found = scanned(&bytes, 0).unwrap();
        let whole = *ends.iter().rfind(|end| **end <= at as u64).unwrap();
        prop_assert_eq!(found.data_bytes, whole);
    }
}
