//! A block: first sector (header, channel, chunk header, first message header), messages, pad.

use std::ops::Range;

use super::bytes::{array, put, u16_at, u32_at, u64_at};
use super::{CHANNEL_BYTES_MAX, FORMAT_VERSION, LayoutError, MESSAGE_HEADER, RECORD_HEADER, SECTOR};
use crate::crc::{Crc32, crc32};
use crate::id::Id;
use crate::layout::ChannelBytes;

/// Events are missing between the stream's previous block and this one.
pub const FLAG_GAP_BEFORE: u32 = 1;

/// Offset of a block's chunk records: the first message header ends with the first sector.
pub const CHUNK_START: usize = SECTOR - MESSAGE_HEADER;

const PART: &str = "block header";
const MAGIC: &[u8; 4] = b"KUBK";
const OP_BLOCK_HEADER: u8 = 0x81;
const OP_BLOCK_PAD: u8 = 0x82;
const OP_CHANNEL: u8 = 0x04;
const OP_MESSAGE: u8 = 0x05;
const OP_CHUNK: u8 = 0x06;

/// Header of an MCAP chunk record: opcode, length, 2 times, size, CRC, "" and size again.
const CHUNK_HEADER: usize = 49;
pub(crate) const CHUNK_AT: usize = CHUNK_START - CHUNK_HEADER;
/// Channel id, sequence and two times of a message: counted in the record length besides the
/// payload.
const MESSAGE_FIELDS: u64 = (MESSAGE_HEADER - RECORD_HEADER) as u64;

// Offsets in the first sector; docs/recording-format.md has the same table.
const AT_MAGIC: usize = 9;
const AT_VERSION: usize = 13;
const AT_RECORDING: usize = 16;
const AT_SEGMENT: usize = 32;
const AT_STREAM_BLOCK: usize = 48;
const AT_SEGMENT_BLOCK: usize = 56;
const AT_FIRST_SEQUENCE: usize = 64;
const AT_FIRST_TIMESTAMP: usize = 72;
const AT_LAST_TIMESTAMP: usize = 80;
const AT_CHUNK_RECORDS: usize = 88;
const AT_PAYLOAD: usize = 96;
const AT_SEGMENT_INDEX: usize = 104;
const AT_STREAM: usize = 108;
const AT_EVENT_COUNT: usize = 112;
const AT_FLAGS: usize = 116;
const AT_CHUNK_CRC: usize = 120;
const AT_PREVIOUS_CRC: usize = 124;
const AT_HEADER_CRC: usize = 128;
const HEADER_END: usize = 132;

const _: () = assert!(HEADER_END + CHANNEL_BYTES_MAX <= CHUNK_AT);

/// Fields of a block's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHeader {
    /// Recording of the block.
    pub recording: Id,
    /// Segment that the block was written to.
    pub segment: Id,
    /// Number of that segment on its volume.
    pub segment_index: u32,
    /// Stream id.
    pub stream: u32,
    /// Number of the block within its stream, over all volumes, from 0.
    pub stream_block: u64,
    /// Number of the block within its segment, from 0.
    pub segment_block: u64,
    /// Sequence number of the first event; the others are consecutive.
    pub first_sequence: u64,
    /// Events in the block, at least 1.
    pub event_count: u32,
    /// Earliest event time in the block, ns since the Unix epoch.
    pub first_timestamp_ns: u64,
    /// Latest event time in the block, ns since the Unix epoch.
    pub last_timestamp_ns: u64,
    /// Length of all message records (headers and payloads), bytes: 31 per event + `payload_bytes`.
    pub chunk_records_bytes: u64,
    /// Sum of the events' payload lengths, bytes.
    pub payload_bytes: u64,
    /// CRC-32 of all message records.
    pub chunk_crc: u32,
    /// Header CRC of the previous block in this segment, 0 for the first.
    pub previous_header_crc: u32,
    /// [`FLAG_GAP_BEFORE`] or 0.
    pub flags: u32,
}

/// A block's first sector, parsed and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSector {
    /// The header's fields.
    pub header: BlockHeader,
    /// CRC-32 of the sector; the next block's header repeats it.
    pub header_crc: u32,
    /// Range of the stream's channel record in the sector.
    pub channel: Range<usize>,
}

/// The fields of one message record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageHeader {
    pub(crate) stream: u16,
    /// Low 32 bits of the event's sequence number.
    pub(crate) sequence: u32,
    pub(crate) timestamp_ns: u64,
    pub(crate) payload_bytes: u64,
}

/// Writes an MCAP message record's first 31 bytes to the start of `out`; the payload follows them.
#[inline]
pub fn put_message_header(out: &mut [u8], stream: u16, sequence: u64, timestamp_ns: u64, payload_bytes: u64) {
    out[0] = OP_MESSAGE;
    put(out, 1, &(MESSAGE_FIELDS + payload_bytes).to_le_bytes());
    put(out, 9, &stream.to_le_bytes());
    // MCAP has 32 bits; the block header's first sequence number restores the rest.
    put(out, 11, &(sequence as u32).to_le_bytes());
    put(out, 15, &timestamp_ns.to_le_bytes());
    put(out, 23, &timestamp_ns.to_le_bytes());
}

/// Parses the first 31 bytes of `bytes` as a message header; `None` if they are not in our
/// format.
#[inline]
pub(crate) fn parse_message_header(bytes: &[u8]) -> Option<MessageHeader> {
    let bytes: &[u8; MESSAGE_HEADER] = bytes.first_chunk()?;
    let payload_bytes = u64_at(bytes, 1).checked_sub(MESSAGE_FIELDS)?;
    let timestamp_ns = u64_at(bytes, 15);
    if bytes[0] != OP_MESSAGE || timestamp_ns != u64_at(bytes, 23) {
        return None;
    }
    Some(MessageHeader { stream: u16_at(bytes, 9), sequence: u32_at(bytes, 11), timestamp_ns, payload_bytes })
}

/// Length of a block on disk, bytes, from its first sector to the end of its pad.
///
/// `chunk_records_bytes` counts from the first message header, 31 bytes before the first sector's
/// end.
#[inline]
pub fn block_bytes(chunk_records_bytes: u64) -> u64 {
    let end = (CHUNK_START as u64).saturating_add(chunk_records_bytes);
    let pad = end.wrapping_neg() % SECTOR as u64;
    // The pad is an MCAP record and cannot be shorter than its opcode and length.
    let pad = if pad != 0 && pad < RECORD_HEADER as u64 { pad + SECTOR as u64 } else { pad };
    end.saturating_add(pad)
}

/// Fills `tail`, from the end of a block's chunk to the end of the block, with the pad record.
///
/// Its length is `block_bytes(n) - (SECTOR - 31 + n)`: 0, or at least 9.
pub fn put_block_tail(tail: &mut [u8]) {
    if tail.is_empty() {
        return;
    }
    tail.fill(0);
    put(tail, 0, &pad_opening(tail.len() as u64));
}

/// Opcode and length of a pad of `tail_bytes`; all bytes after them are zero.
pub fn pad_opening(tail_bytes: u64) -> [u8; RECORD_HEADER] {
    let mut opening = [0; RECORD_HEADER];
    opening[0] = OP_BLOCK_PAD;
    put(&mut opening, 1, &tail_bytes.saturating_sub(RECORD_HEADER as u64).to_le_bytes());
    opening
}

/// Writes a block's first sector except its last 31 bytes, which already hold the first message
/// header.
///
/// `sector` is the start of the block, at least [`SECTOR`] bytes. Returns the header CRC; the
/// next block of the segment repeats it.
pub fn put_block_sector(sector: &mut [u8], header: &BlockHeader, channel: &ChannelBytes) -> u32 {
    let channel = channel.as_slice();
    let channel_at = CHUNK_AT - channel.len();
    let sector = &mut sector[..CHUNK_START];
    sector[0] = OP_BLOCK_HEADER;
    put(sector, 1, &((channel_at - RECORD_HEADER) as u64).to_le_bytes());
    put(sector, AT_MAGIC, MAGIC);
    put(sector, AT_VERSION, &FORMAT_VERSION.to_le_bytes());
    sector[AT_VERSION + 2] = 0;
    put(sector, AT_RECORDING, &header.recording.0);
    put(sector, AT_SEGMENT, &header.segment.0);
    put(sector, AT_STREAM_BLOCK, &header.stream_block.to_le_bytes());
    put(sector, AT_SEGMENT_BLOCK, &header.segment_block.to_le_bytes());
    put(sector, AT_FIRST_SEQUENCE, &header.first_sequence.to_le_bytes());
    put(sector, AT_FIRST_TIMESTAMP, &header.first_timestamp_ns.to_le_bytes());
    put(sector, AT_LAST_TIMESTAMP, &header.last_timestamp_ns.to_le_bytes());
    put(sector, AT_CHUNK_RECORDS, &header.chunk_records_bytes.to_le_bytes());
    put(sector, AT_PAYLOAD, &header.payload_bytes.to_le_bytes());
    put(sector, AT_SEGMENT_INDEX, &header.segment_index.to_le_bytes());
    put(sector, AT_STREAM, &header.stream.to_le_bytes());
    put(sector, AT_EVENT_COUNT, &header.event_count.to_le_bytes());
    put(sector, AT_FLAGS, &header.flags.to_le_bytes());
    put(sector, AT_CHUNK_CRC, &header.chunk_crc.to_le_bytes());
    put(sector, AT_PREVIOUS_CRC, &header.previous_header_crc.to_le_bytes());
    sector[AT_HEADER_CRC..channel_at].fill(0);
    put(sector, channel_at, channel);
    put(sector, CHUNK_AT, &chunk_header(header));
    let header_crc = crc32(sector);
    put(sector, AT_HEADER_CRC, &header_crc.to_le_bytes());
    header_crc
}

/// The MCAP chunk record's header: uncompressed, so both sizes are the same.
fn chunk_header(header: &BlockHeader) -> [u8; CHUNK_HEADER] {
    let mut out = [0; CHUNK_HEADER];
    let body = (CHUNK_HEADER - RECORD_HEADER) as u64;
    out[0] = OP_CHUNK;
    put(&mut out, 1, &body.saturating_add(header.chunk_records_bytes).to_le_bytes());
    put(&mut out, 9, &header.first_timestamp_ns.to_le_bytes());
    put(&mut out, 17, &header.last_timestamp_ns.to_le_bytes());
    put(&mut out, 25, &header.chunk_records_bytes.to_le_bytes());
    put(&mut out, 33, &header.chunk_crc.to_le_bytes());
    // 37..41 is the length of the compression's name: none.
    put(&mut out, 41, &header.chunk_records_bytes.to_le_bytes());
    out
}

/// Reads and checks a block's first sector, except its last 31 bytes (the chunk CRC covers those).
///
/// # Errors
/// `sector` is shorter than [`SECTOR`], or is not an intact, consistent block header of this
/// version.
pub fn parse_block_sector(sector: &[u8]) -> Result<BlockSector, LayoutError> {
    let Some(sector) = sector.get(..SECTOR) else {
        return Err(LayoutError::Short { part: PART, bytes: sector.len() });
    };
    if sector[0] != OP_BLOCK_HEADER || !sector[AT_MAGIC..].starts_with(MAGIC) {
        return Err(LayoutError::Magic { part: PART });
    }
    let version = u16_at(sector, AT_VERSION);
    if version != FORMAT_VERSION {
        return Err(LayoutError::Version { part: PART, found: version });
    }
    let stored = u32_at(sector, AT_HEADER_CRC);
    let mut crc = Crc32::new();
    crc.update(&sector[..AT_HEADER_CRC]);
    crc.update(&[0; 4]);
    crc.update(&sector[HEADER_END..CHUNK_START]);
    let computed = crc.value();
    if stored != computed {
        return Err(LayoutError::Checksum { part: PART, stored, computed });
    }
    let header = read_header(sector);
    let channel = channel_range(sector, &header)?;
    check_header(sector, &header)?;
    Ok(BlockSector { header, header_crc: stored, channel })
}

fn read_header(sector: &[u8]) -> BlockHeader {
    BlockHeader {
        recording: Id(array(sector, AT_RECORDING)),
        segment: Id(array(sector, AT_SEGMENT)),
        segment_index: u32_at(sector, AT_SEGMENT_INDEX),
        stream: u32_at(sector, AT_STREAM),
        stream_block: u64_at(sector, AT_STREAM_BLOCK),
        segment_block: u64_at(sector, AT_SEGMENT_BLOCK),
        first_sequence: u64_at(sector, AT_FIRST_SEQUENCE),
        event_count: u32_at(sector, AT_EVENT_COUNT),
        first_timestamp_ns: u64_at(sector, AT_FIRST_TIMESTAMP),
        last_timestamp_ns: u64_at(sector, AT_LAST_TIMESTAMP),
        chunk_records_bytes: u64_at(sector, AT_CHUNK_RECORDS),
        payload_bytes: u64_at(sector, AT_PAYLOAD),
        chunk_crc: u32_at(sector, AT_CHUNK_CRC),
        previous_header_crc: u32_at(sector, AT_PREVIOUS_CRC),
        flags: u32_at(sector, AT_FLAGS),
    }
}

/// The channel record must exactly fill the space between the header record and the chunk header.
fn channel_range(sector: &[u8], header: &BlockHeader) -> Result<Range<usize>, LayoutError> {
    let misfit = LayoutError::Inconsistent { part: PART, what: "its channel record does not fit" };
    let start = usize::try_from(u64_at(sector, 1)).ok().and_then(|body| body.checked_add(RECORD_HEADER));
    let Some(start) = start.filter(|&start| (HEADER_END..=CHUNK_AT - RECORD_HEADER - 2).contains(&start))
    else {
        return Err(misfit);
    };
    let length = u64_at(sector, start + 1);
    let is_whole = length == (CHUNK_AT - start - RECORD_HEADER) as u64;
    let is_of_stream = u32::from(u16_at(sector, start + RECORD_HEADER)) == header.stream;
    if sector[start] == OP_CHANNEL && is_whole && is_of_stream { Ok(start..CHUNK_AT) } else { Err(misfit) }
}

fn check_header(sector: &[u8], header: &BlockHeader) -> Result<(), LayoutError> {
    let count = u64::from(header.event_count);
    let records = (count * MESSAGE_HEADER as u64).checked_add(header.payload_bytes);
    let fault = if header.event_count == 0 {
        Some("it has no events")
    } else if records != Some(header.chunk_records_bytes) {
        Some("its lengths do not add up")
    } else if header.chunk_records_bytes > i64::MAX as u64 {
        Some("its length is beyond any file's")
    } else if header.first_sequence.checked_add(count).is_none() {
        Some("its sequence numbers overflow")
    } else if header.first_timestamp_ns > header.last_timestamp_ns {
        Some("its first time is after its last")
    } else if header.flags & !FLAG_GAP_BEFORE != 0 {
        Some("it has flags of a later version")
    } else if sector[CHUNK_AT..CHUNK_START] != chunk_header(header) {
        Some("its chunk header says otherwise")
    } else {
        None
    };
    fault.map_or(Ok(()), |what| Err(LayoutError::Inconsistent { part: PART, what }))
}
