//! The bytes of a segment: round trips, damage, and another MCAP reader.

use mcap::records::Record;
use proptest::prelude::*;

use super::*;
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::testing::{payloads, stream};

fn identity() -> SegmentIdentity {
    SegmentIdentity {
        recording: Id([1; 16]),
        segment: Id([2; 16]),
        volume_index: 3,
        segment_index: 4,
        created_unix_ns: 5,
    }
}

/// A segment with blocks of all sizes, with the ends of its chunks and its events.
struct Sample {
    bytes: Vec<u8>,
    blocks: Vec<std::ops::Range<usize>>,
    chunk_ends: Vec<usize>,
    events: Vec<(u16, u32, u64, Vec<u8>)>,
}

fn sample() -> Sample {
    let mut builder = SegmentBuilder::new(identity());
    let mut sample = Sample { bytes: vec![], blocks: vec![], chunk_ends: vec![], events: vec![] };
    let mut next = [u64::from(u32::MAX) - 20; 3];
    // The sizes 4087..4096 end a block of one event just below a sector, where the pad needs a
    // sector more.
    let sizes = [(1, 0), (40, 30), (1, 4096), (7, 2000), (1, 4090), (1, 20_000), (3, 9000), (1, 1)];
    for (number, &(count, bytes)) in sizes.iter().enumerate() {
        let id = number % 3;
        let mut events = payloads(number as u64, count, bytes);
        if count == 1 {
            events[0].1.resize(bytes, 9);
        }
        let refs: Vec<(u64, &[u8])> = events.iter().map(|(time, payload)| (*time, &payload[..])).collect();
        let plan = BlockPlan { stream_block: number as u64 / 3, first_sequence: next[id], flags: 0 };
        let range = builder.block(&stream(id as u32), plan, &refs).unwrap();
        let header = parse_block_sector(&builder.bytes()[range.start..]).unwrap().header;
        sample.chunk_ends.push(range.start + CHUNK_START + header.chunk_records_bytes as usize);
        sample.blocks.push(range);
        for (time, payload) in events {
            sample.events.push((id as u16, next[id] as u32, time, payload));
            next[id] += 1;
        }
    }
    sample.bytes = builder.finish();
    sample
}

#[test]
fn another_reader_finds_the_same_messages() {
    let sample = sample();
    let stream =
        mcap::MessageStream::new_with_options(&sample.bytes, mcap::read::Options::ValidateChunkCrcs.into());
    let found: Vec<_> = stream
        .unwrap()
        .map(|message| {
            let message = message.unwrap();
            assert_eq!(message.channel.topic, format!("module {}", message.channel.id));
            let encoding = &message.channel.message_encoding;
            let is_opaque = message.channel.id % 2 == 1;
            assert_eq!(encoding, if is_opaque { "application/octet-stream" } else { "x-keepup-u16" });
            assert_eq!(message.channel.metadata["element"], "u16");
            assert_eq!(message.channel.metadata["shape"], if is_opaque { "" } else { "4,8" });
            assert_eq!(message.publish_time, message.log_time);
            (message.channel.id, message.sequence, message.log_time, message.data.into_owned())
        })
        .collect();
    assert!(found == sample.events);
}

/// Chunks that the other reader returns from `bytes` before an error or the end.
fn chunks_read(bytes: &[u8]) -> usize {
    let Ok(reader) = mcap::read::LinearReader::new(bytes) else {
        return 0;
    };
    let records = reader.take_while(Result::is_ok).flatten();
    records.filter(|record| matches!(record, Record::Chunk { .. })).count()
}

#[test]
fn a_cut_file_keeps_all_chunks_before_the_cut() {
    let sample = sample();
    let mut cuts: Vec<usize> = vec![0, 7, 8, 60, 128, 2050, SECTOR - 1, SECTOR, sample.bytes.len() - 1];
    for (block, &chunk_end) in sample.blocks.iter().zip(&sample.chunk_ends) {
        let classes = [0, 1, 9, 13, 130, 3800, CHUNK_START - 49, CHUNK_START - 1, CHUNK_START, SECTOR];
        cuts.extend(classes.map(|offset| block.start + offset));
        cuts.extend([chunk_end - 1, chunk_end, (chunk_end + 5).min(block.end), block.end]);
    }
    let mut random = fastrand::Rng::with_seed(11);
    cuts.extend(std::iter::repeat_with(|| random.usize(..sample.bytes.len())).take(300));
    for cut in cuts {
        let whole = sample.chunk_ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(chunks_read(&sample.bytes[..cut]), whole, "cut at {cut}");
    }
    // A preallocated file without an end: zeros after the last block.
    let mut unended = sample.bytes[..sample.blocks[7].end].to_vec();
    unended.resize(unended.len() + 100_000, 0);
    assert_eq!(chunks_read(&unended), 8);
}

#[test]
fn payloads_start_on_sectors_and_blocks_fill_them() {
    let sample = sample();
    assert_eq!(sample.blocks[0].start, SECTOR);
    for block in &sample.blocks {
        assert_eq!((block.start % SECTOR, block.end % SECTOR), (0, 0));
        let first = parse_message_header(&sample.bytes[block.start + CHUNK_START..]).unwrap();
        let payload = &sample.bytes[block.start + SECTOR..][..first.payload_bytes as usize];
        assert!(sample.events.iter().any(|(.., event)| event == payload));
    }
    assert_eq!(sample.bytes[sample.blocks[7].end], 0x07, "the tail begins with a message index");
}

#[test]
fn block_lengths_leave_space_for_a_pad_or_need_none() {
    for records in 31..20_000u64 {
        let length = block_bytes(records);
        let tail = length - CHUNK_START as u64 - records;
        assert_eq!(length % SECTOR as u64, 0);
        assert!(tail == 0 || (9..SECTOR as u64 + 9).contains(&tail), "{records} leave {tail}");
    }
    assert!(block_bytes(u64::MAX) >= block_bytes(1 << 62), "no wrap-around");
}

#[test]
fn every_bit_of_a_block_header_counts() {
    let sample = sample();
    let sector = &mut sample.bytes[sample.blocks[1].start..][..SECTOR].to_vec();
    assert!(parse_block_sector(sector).is_ok());
    for bit in 0..CHUNK_START * 8 {
        sector[bit / 8] ^= 1 << (bit % 8);
        assert!(parse_block_sector(sector).is_err(), "bit {bit} may be flipped");
        sector[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(parse_block_sector(&sector[..SECTOR - 1]).is_err());
}

#[test]
fn every_bit_of_a_preamble_counts_except_the_superblocks_space() {
    let mut sector = segment_preamble(&identity());
    assert_eq!(parse_preamble(&sector), Ok(identity()));
    assert!(sector[SUPERBLOCK_SPACE].iter().all(|&byte| byte == 0));
    for bit in 0..SECTOR * 8 {
        sector[bit / 8] ^= 1 << (bit % 8);
        let is_space = SUPERBLOCK_SPACE.contains(&(bit / 8));
        assert_eq!(parse_preamble(&sector).is_ok(), is_space, "bit {bit}");
        sector[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_consistent_checksum_does_not_excuse_inconsistent_fields() {
    let channel = ChannelBytes::new(&stream(4)).unwrap();
    let good = BlockHeader {
        stream: 4,
        event_count: 2,
        payload_bytes: 100,
        chunk_records_bytes: 162,
        first_sequence: 8,
        ..BlockHeader::default()
    };
    let parse = |header: &BlockHeader| {
        let mut sector = [0xAA; SECTOR];
        put_block_sector(&mut sector, header, &channel);
        parse_block_sector(&sector).map(|sector| sector.header)
    };
    assert_eq!(parse(&good), Ok(good));
    let huge = u64::MAX - 62;
    let bad = [
        BlockHeader { event_count: 0, chunk_records_bytes: 100, ..good },
        BlockHeader { payload_bytes: 101, ..good },
        BlockHeader { payload_bytes: huge, chunk_records_bytes: u64::MAX, ..good },
        BlockHeader { payload_bytes: u64::MAX, chunk_records_bytes: 61, ..good },
        BlockHeader { first_sequence: u64::MAX, ..good },
        BlockHeader { first_timestamp_ns: 1, ..good },
        BlockHeader { flags: 2, ..good },
        BlockHeader { stream: 5, ..good },
        BlockHeader { stream: 4 + 65536, ..good },
    ];
    for header in bad {
        let found = parse(&header);
        assert!(matches!(found, Err(LayoutError::Inconsistent { .. })), "{header:?} gives {found:?}");
    }
}

#[test]
fn a_channel_that_does_not_fit_is_refused() {
    let mut info = stream(1);
    info.name = "x".repeat(CHANNEL_BYTES_MAX);
    assert!(matches!(ChannelBytes::new(&info), Err(LayoutError::ChannelTooLong { .. })));
    info.id = 65536;
    assert_eq!(ChannelBytes::new(&info), Err(LayoutError::StreamId { stream: 65536 }));
    // A name longer than any that a client may declare fits; only the shape is refused.
    let with = |shape| keepup_stream::wire::StreamInfo { name: "é".repeat(128), shape, ..stream(65535) };
    let record = ChannelBytes::new(&with(vec![u64::MAX; 8])).unwrap();
    assert!(matches!(parse_channel(record.as_slice()), Err(LayoutError::Inconsistent { .. })));
    let longest = with(vec![1 << 7; 8]);
    assert_eq!(parse_channel(ChannelBytes::new(&longest).unwrap().as_slice()), Ok(longest));
}

fn any_header() -> impl Strategy<Value = BlockHeader> {
    let numbers = (any::<[u64; 4]>(), any::<[u32; 6]>(), any::<[u8; 16]>(), any::<[u8; 16]>());
    numbers.prop_map(|(wide, narrow, recording, segment)| {
        let (event_count, payload_bytes) = (narrow[0].max(1), wide[0] >> 2);
        BlockHeader {
            recording: Id(recording),
            segment: Id(segment),
            segment_index: narrow[1],
            stream: 6,
            stream_block: wide[1],
            segment_block: wide[2],
            first_sequence: wide[3] >> 1,
            event_count,
            first_timestamp_ns: wide[0].min(wide[1]),
            last_timestamp_ns: wide[0].max(wide[1]),
            chunk_records_bytes: payload_bytes + u64::from(event_count) * MESSAGE_HEADER as u64,
            payload_bytes,
            chunk_crc: narrow[2],
            previous_header_crc: narrow[3],
            flags: narrow[4] & FLAG_GAP_BEFORE,
        }
    })
}

proptest! {
    #[test]
    fn headers_come_back_as_they_went(header in any_header(), old in any::<u8>()) {
        let mut sector = [old; SECTOR];
        let channel = ChannelBytes::new(&stream(6)).unwrap();
        let crc = put_block_sector(&mut sector, &header, &channel);
        prop_assert!(sector[CHUNK_START..].iter().all(|&byte| byte == old), "message header touched");
        let found = parse_block_sector(&sector).unwrap();
        prop_assert_eq!((found.header, found.header_crc), (header, crc));
        prop_assert_eq!(&sector[found.channel.clone()], channel.as_slice());
        prop_assert_eq!(parse_channel(&sector[found.channel]), Ok(stream(6)));
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..5000),
        opening in any::<bool>(),
    ) {
        if opening && bytes.len() > 132 {
            bytes[0] = 0x81;
            bytes[9..16].copy_from_slice(b"KUBK\x01\0\0");
        }
        prop_assert!(parse_block_sector(&bytes).is_err());
        prop_assert!(parse_preamble(&bytes).is_err());
        let _ = parse_channel(&bytes);
        let _ = parse_message_header(&bytes);
    }

    #[test]
    fn damaged_channels_are_read_or_refused_without_a_panic(at in 0..90usize, byte in any::<u8>()) {
        let mut record = ChannelBytes::new(&stream(6)).unwrap().as_slice().to_vec();
        let at = at % record.len();
        record[at] = byte;
        let _ = parse_channel(&record);
    }

    #[test]
    fn message_headers_come_back(stream: u16, sequence: u64, timestamp_ns: u64, payload in 0..u64::MAX / 2) {
        let mut bytes = [0xAA; MESSAGE_HEADER];
        put_message_header(&mut bytes, stream, sequence, timestamp_ns, payload);
        let found = parse_message_header(&bytes).unwrap();
        prop_assert_eq!((found.stream, found.sequence), (stream, sequence as u32));
        prop_assert_eq!((found.timestamp_ns, found.payload_bytes), (timestamp_ns, payload));
    }
}

/// A sector may have a valid checksum and false fields: found by fuzzing.
#[test]
fn an_absurd_record_length_is_refused() {
    use keepup_stream::wire::{ElementType, StreamInfo};
    let info =
        StreamInfo { id: 0, name: "s".into(), element: ElementType::U8, shape: vec![], compression: None };
    let header = BlockHeader { event_count: 1, chunk_records_bytes: 31, ..BlockHeader::default() };
    for length in [u64::MAX, u64::MAX - 9, u64::MAX - 18, (SECTOR - 80) as u64, 0] {
        let mut sector = [0; SECTOR];
        put_block_sector(&mut sector, &header, &ChannelBytes::new(&info).unwrap());
        sector[1..9].copy_from_slice(&length.to_le_bytes());
        sector[128..132].fill(0);
        let crc = crate::crc::crc32(&sector[..SECTOR - MESSAGE_HEADER]);
        sector[128..132].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(parse_block_sector(&sector), Err(LayoutError::Inconsistent { .. })), "{length}");
    }
}
