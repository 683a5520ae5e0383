//! Payloads: disjoint within a batch, unique per page, still random after long use, with correct
//! checksums.

use std::collections::BTreeSet;

use super::*;
use crate::source::link::native;
use crate::wire::{FrameKind, Header};

/// Headers of keepup's own protocol.
struct Wire;

impl Framing for Wire {
    fn has_checksum(&self) -> bool {
        true
    }

    fn put_header(&self, event: &Event, timestamp_ns: u64, crc: u32, out: &mut Vec<u8>) {
        native::put_header(event, timestamp_ns, crc, out);
    }
}

fn event(sequence: u64, bytes: u64) -> Event {
    Event { slot: 0, stream: 3, sequence, due_ns: 0, bytes }
}

/// Checks that the batch's headers match its payloads.
fn check_batch(fill: &Fill) {
    let mut slices = [IoSlice::new(&[]); BATCH_SLICES_MAX];
    let count = fill.slices(&mut slices);
    for pair in slices[..count].chunks_exact(2) {
        let header = Header::decode(pair[0].first_chunk().unwrap()).unwrap();
        assert_eq!((header.kind, header.stream), (FrameKind::Event, 3));
        assert_eq!((header.length, header.crc), (pair[1].len() as u64, crc32(&pair[1])));
    }
    let mut ends = 0;
    for payload in &fill.payloads {
        assert!(payload.start >= ends, "payloads of one batch overlap");
        ends = payload.end;
    }
}

#[test]
fn batches_hold_small_events_up_to_their_limits() {
    let mut fill = Fill::new(1, None);
    for (bytes, expected) in [(0, 512), (64, 512), (4032, 64), (200 << 10, 1), (WHOLE_BYTES_MAX, 1)] {
        for lap in 0..20 {
            fill.begin(bytes);
            let mut added = 0;
            while fill.fits(bytes) {
                fill.add(&event(1000 * lap + added, bytes), 7, &Wire);
                added += 1;
            }
            assert_eq!(added, expected, "{bytes} bytes");
            check_batch(&fill);
        }
    }
}

#[test]
fn no_two_pages_are_equal() {
    let mut fill = Fill::new(1, None);
    let mut pages = BTreeSet::new();
    for sequence in 0..40 {
        fill.begin(100_000);
        fill.add(&event(sequence, 100_000), 0, &Wire);
        let payload = fill.payloads[0].clone();
        for page in fill.pool[payload].chunks(PAGE_BYTES) {
            assert!(pages.insert(page[..16].to_vec()));
        }
    }
    assert_eq!(pages.len(), 40 * 25);
}

#[test]
fn the_pool_stays_incompressible_after_long_use() {
    let mut fill = Fill::new(1, None);
    for sequence in 0..20_000 {
        fill.begin(5000);
        fill.add(&event(sequence, 5000), 0, &Wire);
    }
    let words: BTreeSet<&[u8]> = fill.pool.chunks_exact(8).collect();
    assert!(words.len() > POOL_BYTES / 8 - 10, "{} of {} words differ", words.len(), POOL_BYTES / 8);
}

#[test]
fn large_events_come_in_pieces_with_one_checksum() {
    let mut fill = Fill::new(1, None);
    for bytes in [WHOLE_BYTES_MAX + 1, 3_000_000, 4 << 20, (4 << 20) + 7] {
        let event = event(5, bytes);
        assert!(fill.is_large(&event));
        let (header, first_bytes) = fill.begin_large(&event, 9, &Wire);
        assert_eq!((header.len(), first_bytes), (HEADER_BYTES, 0));
        let header = Header::decode(header.first_chunk().unwrap()).unwrap();
        let mut whole = Vec::new();
        while (whole.len() as u64) < bytes {
            whole.extend_from_slice(fill.piece(&event, whole.len() as u64));
        }
        assert_eq!((header.length, header.timestamp_ns), (whole.len() as u64, 9));
        assert_eq!(header.crc, crc32(&whole));
        let body = |at: usize| &whole[at + 16..at + PAGE_BYTES];
        assert_ne!(body(0), body(PIECE_BYTES), "neighbouring pieces are different data");
        let stamps: BTreeSet<&[u8]> =
            whole.chunks(4096).filter(|p| p.len() >= 16).map(|p| &p[..16]).collect();
        assert_eq!(stamps.len(), whole.chunks(4096).filter(|p| p.len() >= 16).count());
    }
}
