//! Tails, read by an MCAP reader and by our own lookup.
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use keepup_stream::wire::StreamInfo;

use super::{EventMark, SegmentIndex, SegmentLookup, put_tail, seal};
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::layout::{
    BlockHeader, ChannelBytes, MESSAGE_HEADER, SECTOR, SUPERBLOCK_SPACE, SegmentIdentity, block_bytes,
};
use crate::scan::{ScanOptions, scan};
use crate::testing::{payloads, stream};
use crate::volume::{Segment, SegmentState};

/// A sealed segment with blocks of two streams, and the end of its blocks.
fn sealed(streams: [&StreamInfo; 2], event_bytes: usize) -> (Vec<u8>, u64) {
    let mut segment = SegmentBuilder::new(SegmentIdentity::default());
    for block in 0..20u64 {
        let events = payloads(block, 7, event_bytes);
        let events: Vec<(u64, &[u8])> = events.iter().map(|(time, payload)| (*time, &payload[..])).collect();
        // The second stream's blocks come in reverse, as after a volume returned them.
        for (stream, number) in [(streams[0], block), (streams[1], 19 - block)] {
            let plan = BlockPlan { stream_block: number, first_sequence: number * 7, flags: 0 };
            segment.block(stream, plan, &events).unwrap();
        }
    }
    let data_bytes = segment.bytes().len() as u64;
    (segment.finish(), data_bytes)
}

#[test]
fn mcap_readers_find_everything_through_the_summary() {
    let (bytes, _) = sealed([&stream(1), &stream(3)], 900);
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let stats = summary.stats.as_ref().unwrap();
    assert_eq!((stats.message_count, stats.chunk_count, stats.channel_count), (280, 40, 2));
    assert_eq!(stats.channel_message_counts[&3], 140);
    assert_eq!(summary.channels[&1].topic, "module 1");
    for chunk in &summary.chunk_indexes {
        let indexes = summary.read_message_indexes(&bytes, chunk).unwrap();
        let messages: Vec<_> = summary.stream_chunk(&bytes, chunk).unwrap().map(Result::unwrap).collect();
        let (channel, entries) = indexes.iter().next().unwrap();
        assert_eq!((entries.len(), messages.len()), (7, 7));
        for entry in entries {
            let message = summary.seek_message(&bytes, chunk, entry).unwrap();
            assert_eq!(message.channel.id, channel.id);
            assert!(messages.contains(&message));
        }
    }
}

#[test]
fn the_lookup_locates_every_block() {
    let (bytes, data_bytes) = sealed([&stream(1), &stream(3)], 900);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    fs::write(&path, &bytes).unwrap();
    let segment = |bytes: u64| Segment {
        index: 0,
        id: Id::default(),
        path: path.clone(),
        state: SegmentState::Ended { bytes, data_bytes, blocks: 40 },
    };
    let whole = segment(bytes.len() as u64);
    let lookup = SegmentLookup::open(&whole).unwrap();
    assert_eq!(lookup.streams.len(), 2);
    for summary in &lookup.streams {
        assert_eq!((summary.events, summary.first_sequence, summary.last_sequence), (140, 0, 139));
        let blocks = lookup.blocks_of(summary, &whole).unwrap();
        assert!(blocks.windows(2).all(|pair| pair[0].first_sequence < pair[1].first_sequence));
        assert_eq!(blocks.len(), 20);
    }
    // A truncated file has no lookup. After a bit flip the lookup is unchanged or refused.
    for cut in [0, 7, data_bytes, bytes.len() as u64 - 1] {
        fs::write(&path, &bytes[..cut as usize]).unwrap();
        assert!(SegmentLookup::open(&segment(cut)).is_err(), "{cut}");
    }
    for at in (data_bytes as usize..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        fs::write(&path, &flipped).unwrap();
        let Ok(found) = SegmentLookup::open(&whole) else { continue };
        assert_eq!(found.streams, lookup.streams, "at {at}");
    }
}

#[test]
fn the_tail_never_exceeds_its_reserved_space() {
    for streams in [[1, 3], [2, 4]] {
        let streams = streams.map(stream);
        let (bytes, data_bytes) = sealed([&streams[0], &streams[1]], 64);
        let index = index_of(&bytes, data_bytes);
        let tail = bytes.len() as u64 - data_bytes;
        assert!(tail <= index.tail_bytes_max(0), "{tail} of {}", index.tail_bytes_max(0));
    }
}

#[test]
fn a_truncated_index_is_that_of_the_first_blocks() {
    let (bytes, data_bytes) = sealed([&stream(1), &stream(3)], 300);
    let mut index = index_of(&bytes, data_bytes);
    index.truncate(1);
    assert_eq!((index.blocks(), index.events(), index.channels().len()), (1, 7, 1));
    index.truncate(0);
    let mut out = Vec::new();
    let tail = put_tail(&index, 4096, &mut out).unwrap();
    assert_eq!((tail.bytes, tail.superblock.len()), (out.len() as u64, SUPERBLOCK_SPACE.len()));
}

/// Index obtained by reading the blocks.
fn index_of(bytes: &[u8], data_bytes: u64) -> SegmentIndex {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    fs::write(&path, bytes).unwrap();
    let options = ScanOptions { durable_bytes: 0, reads_events: false };
    let found =
        scan(&fs::File::open(&path).unwrap(), &path, &SegmentIdentity::default(), options, &mut |_| {})
            .unwrap();
    assert_eq!(found.data_bytes, data_bytes);
    found.index
}

/// Measures sealing for `docs/journal`; writes about 250 MB below the temporary directory, in
/// sparse files: `cargo test --release -p keepup-recording seal_speed -- --ignored --nocapture`
#[test]
#[ignore = "a measurement, not a test"]
fn seal_speed() {
    const SEGMENTS: u64 = 1024;
    let directory = tempfile::tempdir().unwrap();
    // A segment of 1 GiB in blocks of 4 events of 256 KiB each.
    let channel = Arc::new(ChannelBytes::new(&stream(1)).unwrap());
    let mut index = SegmentIndex::default();
    let event = EventMark { timestamp_ns: 1, payload_bytes: 256 << 10 };
    let records = 4 * (event.payload_bytes + MESSAGE_HEADER as u64);
    let mut at = SECTOR as u64;
    for block in 0..1020 {
        let header = BlockHeader {
            stream: 1,
            first_sequence: block * 4,
            event_count: 4,
            chunk_records_bytes: records,
            payload_bytes: 4 * event.payload_bytes,
            ..BlockHeader::default()
        };
        index.push(at, &header, &channel, [event; 4]);
        at += block_bytes(records);
    }
    let start = Instant::now();
    for number in 0..SEGMENTS {
        let path = directory.path().join(number.to_string());
        fs::File::create(&path).unwrap().set_len(at).unwrap();
        seal(&path, &index, at).unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let tib = (SEGMENTS * at) as f64 / (1u64 << 40) as f64;
    println!("{tib:.2} TiB in {} events sealed in {seconds:.2} s", SEGMENTS * 4080);
}
