//! Our own index in a segment's tail: the events of each stream by block.
//!
//! Invariants: data is used only if its checksum matches and every length fits the file. Since a
//! checksum does not authenticate the writer, numbers are also checked for consistency.
use std::fs::File;
use std::io;
use std::path::Path;

use keepup_error::Cause;

use super::index::{BlockMark, SEGMENT_EVENTS_MAX, SegmentIndex};
use super::mcap::{DATA_END_BYTES, FOOTER_BYTES};
use super::view::is_array;
use crate::crc::crc32;
use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::layout::{
    BlockHeader, MCAP_MAGIC, MESSAGE_HEADER, RECORD_HEADER, SECTOR, array, u16_at, u32_at, u64_at,
};
use crate::volume::Segment;

const MAGIC: &[u8; 4] = b"KUIX";
const LOCATOR_MAGIC: &[u8; 4] = b"KUSL";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 24;
const STREAM_BYTES: usize = 72;
/// Stream flag: its events are the rows of an HDF5 dataset `data`.
const FLAG_ARRAY: u32 = 1;
const BLOCK_BYTES: usize = 40;
const LOCATOR_BYTES: usize = 40;
/// Stream ids have 16 bits.
const STREAMS_MAX: u64 = 1 << 16;

/// Location of the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    /// End of the blocks and start of the tail.
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

/// A segment's summary of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamSummary {
    /// Stream id.
    pub(crate) stream: u32,
    /// Its blocks, consecutive in the lookup.
    pub(crate) blocks: u32,
    /// Index of the first of them.
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
    /// Offset in the file.
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

impl From<&BlockMark> for IndexedBlock {
    fn from(mark: &BlockMark) -> Self {
        Self {
            offset: mark.offset,
            first_sequence: mark.first_sequence,
            events: mark.events,
            first_timestamp_ns: mark.first_timestamp_ns,
            last_timestamp_ns: mark.last_timestamp_ns,
        }
    }
}

impl IndexedBlock {
    /// Entry of the block at `offset` with this header.
    pub(crate) fn new(offset: u64, header: &BlockHeader) -> Self {
        Self {
            offset,
            first_sequence: header.first_sequence,
            events: header.event_count,
            first_timestamp_ns: header.first_timestamp_ns,
            last_timestamp_ns: header.last_timestamp_ns,
        }
    }

    /// One past the sequence number of its last event.
    pub(crate) fn end(&self) -> u64 {
        self.first_sequence.saturating_add(self.events.into())
    }
}

/// Lookup of one segment: streams in memory, blocks read on demand.
#[derive(Debug)]
pub(crate) struct SegmentLookup {
    file: File,
    /// Position of the blocks' entries in the file.
    pub(crate) blocks_at: u64,
    /// End of the segment's blocks.
    data_bytes: u64,
    /// Streams, by id.
    pub(crate) streams: Vec<StreamSummary>,
}

/// Offset and description of a defect.
type Damage = (u64, &'static str);

impl SegmentLookup {
    /// Opens the lookup of a sealed segment.
    ///
    /// # Errors
    /// The file cannot be read, or has no intact lookup.
    pub(crate) fn open(segment: &Segment) -> Result<Self, RecordingError> {
        let path = &segment.path;
        let (file, size) = open_whole(segment)?;
        let read = Self::read(file, size).map_err(RecordingError::io("read", path))?;
        let lookup = read.map_err(|damage| damaged(path, damage))?;
        match lookup.data_bytes == segment.readable_bytes() {
            true => Ok(lookup),
            false => Err(damaged(path, (segment.readable_bytes(), "the blocks end elsewhere"))),
        }
    }

    /// Opens a lookup again that had its entries at `blocks_at`, without its streams: they may be many.
    ///
    /// # Errors
    /// The file cannot be read, or has another size now.
    pub(crate) fn reopen(segment: &Segment, blocks_at: u64) -> Result<Self, RecordingError> {
        let (file, _) = open_whole(segment)?;
        Ok(Self { file, blocks_at, data_bytes: segment.readable_bytes(), streams: Vec::new() })
    }

    /// Reads the streams of a sealed segment of `file_bytes`.
    fn read(file: File, file_bytes: u64) -> io::Result<Result<Self, Damage>> {
        let Some(Locator { data_bytes, lookup_at, lookup_bytes }) = find_locator(&file, file_bytes)? else {
            return Ok(Err((
                file_bytes.saturating_sub(FOOTER_BYTES as u64),
                "its end is not that of a segment",
            )));
        };
        let damage = |what| Ok(Err((lookup_at, what)));
        let mut header = [0; HEADER_BYTES];
        let end = lookup_at.checked_add(lookup_bytes);
        if data_bytes > lookup_at || end.is_none_or(|end| end > file_bytes) {
            return damage("it reaches beyond the file");
        }
        let read = read_fully_at(&file, &mut header, lookup_at)?;
        if read < HEADER_BYTES || !header.starts_with(MAGIC) || u16_at(&header, 4) != VERSION {
            return damage("its header is not that of an index");
        }
        let (streams, blocks) = (u64::from(u32_at(&header, 8)), u64_at(&header, 16));
        if streams > STREAMS_MAX || blocks > (data_bytes / SECTOR as u64).min(SEGMENT_EVENTS_MAX as u64) {
            return damage("it has more streams or blocks than a segment can have");
        }
        let table_bytes = HEADER_BYTES as u64 + streams * STREAM_BYTES as u64 + 4;
        if table_bytes + blocks * BLOCK_BYTES as u64 != lookup_bytes {
            return damage("its length is not that of its streams and blocks");
        }
        let mut table = vec![0; table_bytes as usize];
        let read = read_fully_at(&file, &mut table, lookup_at)?;
        let Some((body, crc)) = table.split_last_chunk::<4>().filter(|_| read == table.len()) else {
            return damage("the file ends in it");
        };
        if crc32(body) != u32::from_le_bytes(*crc) {
            return damage("its checksum does not match");
        }
        let streams: Vec<_> = body[HEADER_BYTES..].chunks_exact(STREAM_BYTES).map(parse_stream).collect();
        Ok(check_streams(&streams, blocks, data_bytes)
            .map(|()| Self { file, blocks_at: lookup_at + table_bytes, data_bytes, streams })
            .map_err(|what| (lookup_at, what)))
    }

    /// Blocks of a stream, by sequence number.
    ///
    /// # Errors
    /// The file cannot be read, or the entries are damaged.
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
            return Err(damaged(path, (at, "the checksum of a stream's blocks does not match")));
        }
        let blocks: Vec<_> = bytes.chunks_exact(BLOCK_BYTES).map(parse_block).collect();
        check_blocks(summary, &blocks, self.data_bytes).map_err(|what| damaged(path, (at, what)))?;
        Ok(blocks)
    }
}

/// Opens a sealed segment; returns its file and size, which is that in the journal.
fn open_whole(segment: &Segment) -> Result<(File, u64), RecordingError> {
    let path = &segment.path;
    let file = open_regular(path).map_err(RecordingError::open("open the segment", path))?;
    let size = file.metadata().map_err(RecordingError::io("read the size of", path))?.len();
    let expected = segment.file_bytes();
    if size != expected {
        let what = format!("the file has {size} bytes, the journal says {expected}").into();
        return Err(RecordingError::Segment { path: path.clone(), offset: expected.min(size), what });
    }
    Ok((file, size))
}

fn damaged(path: &Path, (offset, what): Damage) -> RecordingError {
    let what = Cause::new(format!("its index of blocks is damaged: {what}"))
        .with_hint("keepup export --to mcap goes by the blocks themselves, without the index");
    RecordingError::Segment { path: path.into(), offset, what }
}

/// Defect of the stream table of a lookup with `blocks` blocks.
fn check_streams(streams: &[StreamSummary], blocks: u64, data_bytes: u64) -> Result<(), &'static str> {
    let (mut id_min, mut first_block) = (0, 0);
    for s in streams {
        if u64::from(s.stream) < id_min || u64::from(s.stream) >= STREAMS_MAX {
            return Err("its streams are not in order");
        } else if s.blocks == 0 || s.first_block != first_block {
            return Err("a stream's blocks are not where they should be");
        } else if s.events < u64::from(s.blocks) || s.events > data_bytes / MESSAGE_HEADER as u64 {
            return Err("a stream has more events than fit, or fewer than blocks");
        } else if s.payload_bytes > data_bytes {
            return Err("a stream has more bytes than fit");
        } else if s.last_sequence == u64::MAX || s.last_sequence.checked_sub(s.first_sequence).is_none() {
            return Err("a stream's sequence numbers overflow");
        } else if s.first_timestamp_ns > s.last_timestamp_ns {
            return Err("a stream's first time is after its last");
        }
        (id_min, first_block) = (u64::from(s.stream) + 1, first_block + u64::from(s.blocks));
    }
    if first_block == blocks { Ok(()) } else { Err("it has blocks of no stream") }
}

/// Defect of a stream's blocks: they must match the summary's counts and be in order.
fn check_blocks(s: &StreamSummary, blocks: &[IndexedBlock], data_bytes: u64) -> Result<(), &'static str> {
    let (mut events, mut next) = (0, s.first_sequence);
    let (mut earliest, mut latest) = (u64::MAX, 0);
    for block in blocks {
        let is_aligned = block.offset.is_multiple_of(SECTOR as u64);
        if !is_aligned || block.offset < SECTOR as u64 || block.offset >= data_bytes {
            return Err("a block lies where none can be");
        } else if block.events == 0 {
            return Err("a block has no events");
        } else if block.first_sequence < next {
            return Err("its blocks do not ascend");
        } else if block.first_timestamp_ns > block.last_timestamp_ns {
            return Err("a block's first time is after its last");
        }
        let end = block.first_sequence.checked_add(block.events.into());
        next = end.ok_or("a block's sequence numbers overflow")?;
        events += u64::from(block.events);
        earliest = earliest.min(block.first_timestamp_ns);
        latest = latest.max(block.last_timestamp_ns);
    }
    let found = (blocks.first().map(|block| block.first_sequence), next.checked_sub(1), events);
    if found != (Some(s.first_sequence), Some(s.last_sequence), s.events) {
        Err("a stream's blocks do not add up to its events")
    } else if (earliest, latest) != (s.first_timestamp_ns, s.last_timestamp_ns) {
        Err("a stream's times are not those of its blocks")
    } else {
        Ok(())
    }
}

/// Streams and blocks as in a lookup, without positions in its block table.
pub(crate) fn summaries(index: &SegmentIndex) -> Vec<(StreamSummary, Vec<IndexedBlock>)> {
    let summary = |(stream, blocks): (u32, Vec<&BlockMark>)| {
        let mut summary =
            StreamSummary { stream, is_array: is_array(index, stream), ..StreamSummary::none() };
        blocks.iter().for_each(|block| summary.add(block));
        (summary, blocks.into_iter().map(IndexedBlock::from).collect())
    };
    index.by_stream().into_iter().map(summary).collect()
}

/// Body of a lookup record: header and streams with a CRC-32, then blocks.
pub(super) fn put_lookup(index: &SegmentIndex) -> Vec<u8> {
    let by_stream = summaries(index);
    let mut table = Vec::with_capacity(HEADER_BYTES + by_stream.len() * STREAM_BYTES + 4);
    table.extend_from_slice(MAGIC);
    table.extend_from_slice(&VERSION.to_le_bytes());
    table.extend_from_slice(&[0; 2]);
    table.extend_from_slice(&(by_stream.len() as u32).to_le_bytes());
    table.extend_from_slice(&[0; 4]);
    table.extend_from_slice(&(index.blocks() as u64).to_le_bytes());
    let mut entries = Vec::with_capacity(index.blocks() * BLOCK_BYTES);
    for (mut summary, blocks) in by_stream {
        let at = entries.len();
        summary.first_block = (at / BLOCK_BYTES) as u64;
        for block in &blocks {
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
    /// Summary of zero blocks.
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

fn put_block(out: &mut Vec<u8>, block: &IndexedBlock) {
    for number in [block.offset, block.first_sequence, block.first_timestamp_ns, block.last_timestamp_ns] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&block.events.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// End of the blocks of a segment with a valid tail, independent of the journal.
pub(crate) fn sealed_bytes(file: &File) -> io::Result<Option<u64>> {
    let file_bytes = file.metadata()?.len();
    let ends = find_locator(file, file_bytes)?.map(|locator| locator.data_bytes);
    Ok(ends.filter(|end| *end < file_bytes))
}

/// The locator precedes the data end record, which precedes the summary section that the footer
/// names.
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

#[cfg(test)]
#[path = "lookup_tests.rs"]
mod tests;
