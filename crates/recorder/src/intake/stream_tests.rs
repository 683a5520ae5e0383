//! A stream's account and its blocks, event by event.
use keepup_recording::crc::crc32;
use keepup_recording::layout::{SECTOR, parse_block_sector};
use keepup_stream::wire::ElementType;
use keepup_sys::pool::Pool;

use super::*;

fn stream() -> Stream {
    let info =
        StreamInfo { id: 3, name: "cam".into(), element: ElementType::U8, shape: vec![], compression: None };
    let channel = ChannelBytes::new(&info).unwrap();
    Stream::new(info, channel)
}

fn put(stream: &mut Stream, pool: &mut Pool, sequence: u64, payload: &[u8]) -> Option<Gap> {
    let head = EventHead {
        index: 0,
        stream: 3,
        sequence,
        timestamp_ns: 1000 + sequence,
        length: payload.len() as u64,
        crc: crc32(payload),
    };
    assert!(stream.open.is_none() || stream.open_takes(&head));
    if stream.open.is_none() {
        stream.open(pool.take(64 << 10).unwrap());
    }
    stream.begin(&head);
    stream.open.as_mut().unwrap().payload(payload.len()).copy_from_slice(payload);
    let gap = stream.note_gap(sequence, stream.gap_cause);
    stream.complete(&head, &mut Combiner::new());
    gap
}

#[test]
fn a_sealed_block_holds_its_events_and_their_checksum() {
    let (mut stream, mut pool) = (stream(), Pool::new(2 << 20).unwrap());
    for sequence in 0..10 {
        assert_eq!(
            put(&mut stream, &mut pool, sequence, &vec![sequence as u8; 100 + sequence as usize]),
            None
        );
    }
    let sealed = stream.seal(5, false).unwrap();
    let header = sealed.meta.header;
    assert_eq!((header.first_sequence, header.event_count, header.stream_block), (0, 10, 0));
    assert_eq!(header.payload_bytes, (0..10).map(|n| 100 + n).sum::<u64>());
    let records = &sealed.block[MESSAGES_START..MESSAGES_START + header.chunk_records_bytes as usize];
    assert_eq!(crc32(records), header.chunk_crc);
    assert_eq!(sealed.meta.bytes % SECTOR, 0);
    assert!(parse_block_sector(&sealed.block).is_err(), "the writer has not filled in the sector yet");
    assert!(!stream.is_settled());
    let all = Count { events: 10, bytes: header.payload_bytes };
    stream.block_durable(0, all, all);
    stream.advance(0);
    assert!(stream.is_settled() && stream.watermark.next == 10 && stream.dirty);
}

#[test]
fn a_gap_seals_the_block_and_is_entered_once() {
    let (mut stream, mut pool) = (stream(), Pool::new(2 << 20).unwrap());
    put(&mut stream, &mut pool, 0, b"a");
    let next = EventHead { index: 0, stream: 3, sequence: 5, timestamp_ns: 0, length: 1, crc: 0 };
    assert!(!stream.open_takes(&next));
    stream.seal(0, false).unwrap();
    let gap = put(&mut stream, &mut pool, 5, b"b").unwrap();
    assert_eq!((gap.first_sequence, gap.events, gap.cause), (1, 4, LossCause::SequenceGap));
    assert_eq!(put(&mut stream, &mut pool, 6, b"c"), None);
    let header = stream.seal(0, false).unwrap().meta.header;
    assert_eq!((header.flags, header.first_sequence, header.event_count), (FLAG_GAP_BEFORE, 5, 2));
}

#[test]
fn losses_declared_by_the_source_count_as_its_losses() {
    let (mut stream, mut pool) = (stream(), Pool::new(2 << 20).unwrap());
    put(&mut stream, &mut pool, 0, b"a");
    stream.seal(0, false);
    put(&mut stream, &mut pool, 3, b"b");
    let last = EndStream { id: 3, events: 2, bytes: 2, lost_events: 4, lost_bytes: 4, next_sequence: 6 };
    assert_eq!(stream.conclude(&last).0.unwrap().events, 2);
    assert_eq!(stream.ledger.gap_events.get(&LossCause::Source), Some(&4));
    assert_eq!(stream.ledger.gap_events.get(&LossCause::SequenceGap), None);
    assert!(stream.ledger.gaps.iter().all(|gap| gap.cause == LossCause::Source));
}

#[test]
fn the_watermark_passes_a_loss_and_counts_it() {
    let (mut stream, mut pool) = (stream(), Pool::new(2 << 20).unwrap());
    for sequence in 0..4 {
        put(&mut stream, &mut pool, sequence, b"x");
        stream.seal(0, false).unwrap();
    }
    for block in [0, 1, 3] {
        stream.block_durable(block, Count::one(1), Count::one(1));
    }
    stream.advance(0);
    assert_eq!((stream.watermark.next, stream.watermark.lost_events), (2, 0));
    let gap = Gap { stream: 3, first_sequence: 2, events: 1, cause: LossCause::VolumeFailed };
    stream.block_lost(gap, 1);
    stream.advance(1);
    assert_eq!((stream.watermark.next, stream.watermark.lost_events), (4, 1));
    assert!(stream.is_settled());
    assert_eq!(stream.ledger.durable.events, 3);
}

#[test]
fn an_incomplete_event_moves_and_the_complete_ones_are_sent() {
    let (mut stream, mut pool) = (stream(), Pool::new(2 << 20).unwrap());
    put(&mut stream, &mut pool, 0, b"whole");
    let payload = [9u8; 5000];
    let head =
        EventHead { index: 0, stream: 3, sequence: 1, timestamp_ns: 5, length: 5000, crc: crc32(&payload) };
    stream.begin(&head);
    stream.open.as_mut().unwrap().payload(5000)[..2000].copy_from_slice(&payload[..2000]);
    let sealed = stream.part(0, pool.take(64 << 10).unwrap()).unwrap();
    assert_eq!((sealed.meta.header.event_count, sealed.meta.header.first_sequence), (1, 0));
    stream.open.as_mut().unwrap().payload(5000)[2000..].copy_from_slice(&payload[2000..]);
    assert!(stream.complete(&head, &mut Combiner::new()), "it is the first event of the new block");
    let next = stream.seal(0, false).unwrap();
    assert_eq!((next.meta.header.event_count, next.meta.header.first_sequence), (1, 1));
    let records = MESSAGES_START..MESSAGES_START + MESSAGE_HEADER + 5000;
    assert_eq!(crc32(&next.block[records]), next.meta.header.chunk_crc);
}

/// Seals the stream's next block once it is full; returns its number of events.
fn fill(stream: &mut Stream, pool: &mut Pool) -> u32 {
    while !stream.is_full() {
        let next = stream.next_sequence;
        put(stream, pool, next, &[0; 1000]);
    }
    stream.seal(0, true).unwrap().meta.header.event_count
}

#[test]
fn streams_of_one_rate_fill_their_blocks_at_different_times() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let filled = [0, 1, 2, 3].map(|slot| {
        let mut stream = stream();
        stream.stagger(slot);
        [fill(&mut stream, &mut pool), fill(&mut stream, &mut pool)]
    });
    // Only the first block of each stream is smaller.
    let whole = filled[0][0];
    assert!(filled.iter().all(|blocks| blocks[1] == whole), "{filled:?}");
    let mut first = filled.map(|blocks| blocks[0]);
    first.sort_unstable();
    assert!(first.windows(2).all(|pair| pair[1] - pair[0] >= whole / 8), "{first:?}");
}

#[test]
fn the_next_block_follows_from_what_the_last_one_held() {
    let mut pool = Pool::new(2 << 20).unwrap();
    for (slot, parts) in [(0, 6), (1, 8), (2, 7), (3, 9)] {
        let mut stream = stream();
        stream.stagger(slot);
        put(&mut stream, &mut pool, 0, &[0; 1000]);
        let held = stream.seal(0, false).unwrap().meta.header.chunk_records_bytes as usize + MESSAGES_START;
        // 1.5, 2, 1.75 and 2.25 times, rounded.
        assert!((held * parts / 4).abs_diff(stream.next_block_bytes) < WHOLE, "{slot}");
        put(&mut stream, &mut pool, 1, &[0; 1000]);
        stream.seal(0, true).unwrap();
        assert!(((64 << 10) * parts / 4).abs_diff(stream.next_block_bytes) < WHOLE, "{slot}");
    }
}
