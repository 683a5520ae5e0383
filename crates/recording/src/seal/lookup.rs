//! Our own index in a segment's tail: which events of which stream lie in which block.
//!
//! Invariant: what is read is used only when its checksum holds and every length fits the file.
use std::fs::File;
use std::io;
use std::path::Path;

use super::index::{BlockMark, SegmentIndex};
use super::mcap::{DATA_END_BYTES, FOOTER_BYTES};
use crate::crc::crc32;
use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::layout::{MCAP_MAGIC, RECORD_HEADER, array, u16_at, u32_at, u64_at};
use crate::volume::Segment;

const MAGIC: &[u8; 4] = b"KUIX";
const LOCATOR_MAGIC: &[u8; 4] = b"KUSL";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 24;
const STREAM_BYTES: usize = 72;
/// Flag of a stream: its events are the rows of an HDF5 dataset `data`.
const FLAG_ARRAY: u32 = 1;
const BLOCK_BYTES: usize = 40;
const LOCATOR_BYTES: usize = 40;

/// Where the lookup lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    /// Where the blocks end and the tail begins.
    pub(super) data_bytes: u64,
    /// Offset of the lookup.
    pub(super) lookup_at: u64,
    /// Its length.
    pub(super) lookup_bytes: u64,
}

impl Locator {
    pub(super) fn to_bytes(self) -> [u8; LOCATOR_BYTES] {
        let mut out = [0; LOCATOR_BYTES];
        out[..4].copy_from_slice(LOCATOR_MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        for (at, number) in [(8, self.data_bytes), (16, self.lookup_at), (24, self.lookup_bytes)] {
            out[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32(&out[..32]);
        out[32..36].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() == LOCATOR_BYTES
            && bytes.starts_with(LOCATOR_MAGIC)
            && u16_at(bytes, 4) == VERSION
            && u32_at(bytes, 32) == crc32(&bytes[..32]);
        is_whole.then(|| Self {
            data_bytes: u64_at(bytes, 8),
            lookup_at: u64_at(bytes, 16),
            lookup_bytes: u64_at(bytes, 24),
        })
    }
}

/// What a segment has of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamSummary {
    /// Stream id.
    pub(crate) stream: u32,
    /// Its blocks; they stand together in the lookup.
    pub(crate) blocks: u32,
    /// Place of the first of them.
    pub(crate) first_block: u64,
    /// Events in them.
    pub(crate) events: u64,
    /// Payload bytes of those.
    pub(crate) payload_bytes: u64,
    /// Lowest sequence number.
    pub(crate) first_sequence: u64,
    /// Highest sequence number.
    pub(crate) last_sequence: u64,
    /// Earliest time, ns since the Unix epoch.
    pub(crate) first_timestamp_ns: u64,
    /// Latest time.
    pub(crate) last_timestamp_ns: u64,
    /// Whether its events are the rows of an HDF5 dataset.
    pub(crate) is_array: bool,
    /// CRC-32 of its entries in the table of blocks.
    pub(crate) blocks_crc: u32,
}

/// One block of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexedBlock {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Sequence number of its first event.
    pub(crate) first_sequence: u64,
    /// Its events.
    pub(crate) events: u32,
    /// Earliest time, ns since the Unix epoch.
    pub(crate) first_timestamp_ns: u64,
    /// Latest time.
    pub(crate) last_timestamp_ns: u64,
}

/// The lookup of one segment: its streams in memory, its blocks read when asked for.
#[derive(Debug)]
pub(crate) struct SegmentLookup {
    file: File,
    blocks_at: u64,
    /// Where the segment's blocks end.
    data_bytes: u64,
    /// Streams, by id.
    pub(crate) streams: Vec<StreamSummary>,
}

impl SegmentLookup {
    /// Opens the lookup of a sealed segment.
    ///
    /// # Errors
    /// When the file cannot be read, or has no lookup that is whole.
    pub(crate) fn open(segment: &Segment) -> Result<Self, RecordingError> {
        let path = &segment.path;
        let file = open_regular(path).map_err(RecordingError::io("open the segment", path))?;
        let read = Self::read(file, segment.file_bytes());
        let damaged = || damaged(path, segment.readable_bytes());
        let lookup = read.map_err(RecordingError::io("read", path))?.ok_or_else(damaged)?;
        if lookup.data_bytes == segment.readable_bytes() { Ok(lookup) } else { Err(damaged()) }
    }

    /// Reads the streams of a sealed segment of `file_bytes`; `None` when its lookup is not whole.
    pub(crate) fn read(file: File, file_bytes: u64) -> io::Result<Option<Self>> {
        let Some(locator) = find_locator(&file, file_bytes)? else { return Ok(None) };
        let mut header = [0; HEADER_BYTES];
        let read = read_fully_at(&file, &mut header, locator.lookup_at)?;
        if read < HEADER_BYTES || !header.starts_with(MAGIC) || u16_at(&header, 4) != VERSION {
            return Ok(None);
        }
        let (streams, blocks) = (u64::from(u32_at(&header, 8)), u64_at(&header, 16));
        let table_bytes = HEADER_BYTES as u64 + streams * STREAM_BYTES as u64 + 4;
        let bytes = blocks.checked_mul(BLOCK_BYTES as u64).and_then(|bytes| bytes.checked_add(table_bytes));
        let end = locator.lookup_at.checked_add(locator.lookup_bytes);
        if bytes != Some(locator.lookup_bytes) || end.is_none_or(|end| end > file_bytes) {
            return Ok(None);
        }
        let mut table = vec![0; table_bytes as usize];
        let read = read_fully_at(&file, &mut table, locator.lookup_at)?;
        let Some((body, crc)) = table.split_last_chunk::<4>() else { return Ok(None) };
        if read < table.len() || crc32(body) != u32::from_le_bytes(*crc) {
            return Ok(None);
        }
        let streams: Vec<_> = body[HEADER_BYTES..].chunks_exact(STREAM_BYTES).map(parse_stream).collect();
        let fits =
            |s: &StreamSummary| s.first_block.checked_add(s.blocks.into()).is_some_and(|end| end <= blocks);
        let is_sound = streams.iter().all(fits);
        let (blocks_at, data_bytes) = (locator.lookup_at + table_bytes, locator.data_bytes);
        Ok(is_sound.then_some(Self { file, blocks_at, data_bytes, streams }))
    }

    /// Blocks of a stream, by sequence number.
    ///
    /// # Errors
    /// When the file cannot be read, or the entries are damaged.
    pub(crate) fn blocks_of(
        &self,
        summary: &StreamSummary,
        segment: &Segment,
    ) -> Result<Vec<IndexedBlock>, RecordingError> {
        let at = self.blocks_at + summary.first_block * BLOCK_BYTES as u64;
        let mut bytes = vec![0; summary.blocks as usize * BLOCK_BYTES];
        let path = &segment.path;
        let read = read_fully_at(&self.file, &mut bytes, at).map_err(RecordingError::io("read", path))?;
        if read < bytes.len() || crc32(&bytes) != summary.blocks_crc {
            return Err(damaged(path, at));
        }
        Ok(bytes.chunks_exact(BLOCK_BYTES).map(parse_block).collect())
    }
}

fn damaged(path: &Path, offset: u64) -> RecordingError {
    RecordingError::Segment { path: path.into(), offset, what: "its index of blocks is damaged".into() }
}

/// The body of a lookup record: header and streams with a CRC-32, then blocks.
pub(super) fn put_lookup(index: &SegmentIndex) -> Vec<u8> {
    let by_stream = index.by_stream();
    let mut table = Vec::with_capacity(HEADER_BYTES + by_stream.len() * STREAM_BYTES + 4);
    table.extend_from_slice(MAGIC);
    table.extend_from_slice(&VERSION.to_le_bytes());
    table.extend_from_slice(&[0; 2]);
    table.extend_from_slice(&(by_stream.len() as u32).to_le_bytes());
    table.extend_from_slice(&[0; 4]);
    table.extend_from_slice(&(index.blocks() as u64).to_le_bytes());
    let mut entries = Vec::with_capacity(index.blocks() * BLOCK_BYTES);
    for (stream, blocks) in by_stream {
        let at = entries.len();
        let mut summary = StreamSummary { stream, is_array: index.is_array(stream), ..StreamSummary::none() };
        summary.first_block = (at / BLOCK_BYTES) as u64;
        for block in blocks {
            summary.add(block);
            put_block(&mut entries, block);
        }
        summary.blocks_crc = crc32(&entries[at..]);
        put_stream(&mut table, &summary);
    }
    let crc = crc32(&table);
    table.extend_from_slice(&crc.to_le_bytes());
    table.extend_from_slice(&entries);
    table
}

impl StreamSummary {
    /// Of no blocks yet.
    pub(crate) fn none() -> Self {
        Self { first_sequence: u64::MAX, first_timestamp_ns: u64::MAX, ..Self::default() }
    }

    fn add(&mut self, block: &BlockMark) {
        let events = u64::from(block.events);
        self.blocks += 1;
        self.events += events;
        self.payload_bytes += block.payload_bytes;
        self.first_sequence = self.first_sequence.min(block.first_sequence);
        self.last_sequence = self.last_sequence.max(block.first_sequence + events - 1);
        self.first_timestamp_ns = self.first_timestamp_ns.min(block.first_timestamp_ns);
        self.last_timestamp_ns = self.last_timestamp_ns.max(block.last_timestamp_ns);
    }
}

fn put_stream(out: &mut Vec<u8>, s: &StreamSummary) {
    out.extend_from_slice(&s.stream.to_le_bytes());
    out.extend_from_slice(&s.blocks.to_le_bytes());
    for number in [
        s.first_block,
        s.events,
        s.payload_bytes,
        s.first_sequence,
        s.last_sequence,
        s.first_timestamp_ns,
        s.last_timestamp_ns,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let flags = if s.is_array { FLAG_ARRAY } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&s.blocks_crc.to_le_bytes());
}

fn put_block(out: &mut Vec<u8>, block: &BlockMark) {
    for number in [block.offset, block.first_sequence, block.first_timestamp_ns, block.last_timestamp_ns] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&block.events.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// The locator stands before the data end record, which stands before what the footer calls the summary.
fn find_locator(file: &File, file_bytes: u64) -> io::Result<Option<Locator>> {
    let Some(footer_at) = file_bytes.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
    let mut footer = [0; FOOTER_BYTES];
    let read = read_fully_at(file, &mut footer, footer_at)?;
    if read < FOOTER_BYTES || !footer.ends_with(MCAP_MAGIC) {
        return Ok(None);
    }
    let summary_at = u64_at(&footer, RECORD_HEADER);
    let Some(at) = summary_at.checked_sub((DATA_END_BYTES + LOCATOR_BYTES) as u64) else { return Ok(None) };
    let locator: [u8; LOCATOR_BYTES] = {
        let mut bytes = [0; LOCATOR_BYTES];
        if at >= file_bytes || read_fully_at(file, &mut bytes, at)? < LOCATOR_BYTES {
            return Ok(None);
        }
        array(&bytes, 0)
    };
    Ok(Locator::parse(&locator))
}

fn parse_stream(bytes: &[u8]) -> StreamSummary {
    StreamSummary {
        stream: u32_at(bytes, 0),
        blocks: u32_at(bytes, 4),
        first_block: u64_at(bytes, 8),
        events: u64_at(bytes, 16),
        payload_bytes: u64_at(bytes, 24),
        first_sequence: u64_at(bytes, 32),
        last_sequence: u64_at(bytes, 40),
        first_timestamp_ns: u64_at(bytes, 48),
        last_timestamp_ns: u64_at(bytes, 56),
        is_array: u32_at(bytes, 64) & FLAG_ARRAY != 0,
        blocks_crc: u32_at(bytes, 68),
    }
}

fn parse_block(bytes: &[u8]) -> IndexedBlock {
    IndexedBlock {
        offset: u64_at(bytes, 0),
        first_sequence: u64_at(bytes, 8),
        first_timestamp_ns: u64_at(bytes, 16),
        last_timestamp_ns: u64_at(bytes, 24),
        events: u32_at(bytes, 32),
    }
}
