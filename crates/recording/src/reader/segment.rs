//! Reads the blocks of one segment in order, also while it is being written.
//!
//! Invariants: a block is returned only after its header, its checksum and all its message
//! headers are checked; memory is allocated only for blocks that fit below the limit, the file's
//! end and the reader's bound.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use keepup_stream::wire::StreamInfo;

use super::source::{Source, Way};
use crate::crc::crc32;
use crate::error::RecordingError;
use crate::layout::{
    BlockHeader, BlockSector, CHUNK_START, MESSAGE_HEADER, SECTOR, SegmentIdentity, block_bytes,
    parse_block_sector, parse_channel, parse_message_header, parse_preamble,
};
use crate::messages::MessageWalk;
use crate::volume::{Segment, Volume};

/// Reads one segment from its first block on.
pub struct SegmentReader {
    source: Source,
    path: PathBuf,
    expected: SegmentIdentity,
    /// Offset of the next block; 0 until the preamble is checked.
    offset: u64,
    next_block: u64,
    previous_header_crc: u32,
    block_bytes_max: u64,
}

/// A checked block.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// What its header says.
    pub header: BlockHeader,
    /// Offset in the file, bytes.
    pub offset: u64,
    sector: &'a [u8],
    channel: Range<usize>,
    records: &'a [u8],
}

/// One event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its sequence number.
    pub sequence: u64,
    /// Its time, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// The events of a block, in order.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    sequence: u64,
    records: &'a [u8],
}

impl fmt::Debug for SegmentReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentReader").field("path", &self.path).field("offset", &self.offset).finish()
    }
}

impl SegmentReader {
    /// Opens a segment. Blocks longer than `block_bytes_max` are refused.
    ///
    /// # Errors
    /// The file is missing, or is not a regular file.
    pub fn open(
        volume: &Volume,
        segment: &Segment,
        block_bytes_max: u64,
    ) -> Result<SegmentReader, RecordingError> {
        let path = segment.path.clone();
        let source = Source::open(&path, segment.is_ended())
            .map_err(RecordingError::open("open the segment", &path))?;
        let expected = volume.identity(segment.index, segment.id);
        Ok(SegmentReader {
            source,
            path,
            expected,
            offset: 0,
            next_block: 0,
            previous_header_crc: 0,
            block_bytes_max,
        })
    }

    /// Offset of the next block, bytes; 0 before the first call of
    /// [`next_block`](Self::next_block).
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Next block below `limit` (of [`Segment::readable_bytes`]), or `None` if there is none yet.
    ///
    /// # Errors
    /// The bytes are not the segment's next block, or it is damaged. The position does not
    /// change.
    pub fn next_block(&mut self, limit: u64) -> Result<Option<Block<'_>>, RecordingError> {
        if self.offset == 0 {
            if limit < SECTOR as u64 {
                return Ok(None);
            }
            self.check_preamble(Way::Ahead(limit))?;
            self.offset = SECTOR as u64;
        }
        let offset = self.offset;
        if offset >= limit {
            return Ok(None);
        }
        let sector = self.sector(offset, Way::Ahead(limit))?;
        self.check_place(&sector)?;
        let length = self.whole(&sector.header, offset, limit, Way::Ahead(limit))?;
        self.offset += length;
        self.next_block += 1;
        self.previous_header_crc = sector.header_crc;
        Ok(Some(self.block(sector, offset)))
    }

    /// Skips a block that [`next_block`](Self::next_block) refused. Returns its header if that is
    /// intact; otherwise blocks may be missing up to the next intact one.
    ///
    /// # Errors
    /// The file cannot be read, or its preamble belongs to another segment: it cannot be skipped.
    pub fn skip_damaged(&mut self, limit: u64) -> Result<Option<BlockHeader>, RecordingError> {
        if self.offset == 0 {
            self.check_preamble(Way::Once)?;
            self.offset = SECTOR as u64;
        }
        let begin = self.offset;
        while self.offset < limit {
            let offset = self.offset;
            let sector = match self.sector(offset, Way::Once) {
                Ok(sector) => Some(sector),
                Err(error @ RecordingError::Io { .. }) => return Err(error),
                Err(_) => None,
            };
            let is_later = |header: &BlockHeader| header.segment_block >= self.next_block;
            let own =
                sector.filter(|s| self.check_identity(&s.header, offset).is_ok() && is_later(&s.header));
            let Some(BlockSector { header, header_crc, .. }) = own else {
                self.offset += SECTOR as u64;
                continue;
            };
            if offset > begin {
                (self.next_block, self.previous_header_crc) =
                    (header.segment_block, header.previous_header_crc);
                return Ok(None);
            }
            let length = block_bytes(header.chunk_records_bytes);
            if length > limit - offset {
                self.offset += SECTOR as u64;
                continue;
            }
            self.offset += length;
            (self.next_block, self.previous_header_crc) = (header.segment_block + 1, header_crc);
            return Ok(Some(header));
        }
        Ok(None)
    }

    /// Reads the block at `offset`, found in an index; does not change the position of
    /// [`next_block`](Self::next_block).
    ///
    /// # Errors
    /// There is no intact block of this segment.
    pub fn block_at(&mut self, offset: u64, limit: u64) -> Result<Block<'_>, RecordingError> {
        let sector = self.sector(offset, Way::Once)?;
        self.check_identity(&sector.header, offset)?;
        self.whole(&sector.header, offset, limit, Way::Once)?;
        Ok(self.block(sector, offset))
    }

    fn sector(&mut self, offset: u64, way: Way) -> Result<BlockSector, RecordingError> {
        self.read(offset, 0..SECTOR, way)?;
        parse_block_sector(self.source.bytes()).map_err(RecordingError::layout(&self.path, offset))
    }

    /// Reads the rest of a block and checks it; returns its length.
    fn whole(
        &mut self,
        header: &BlockHeader,
        offset: u64,
        limit: u64,
        way: Way,
    ) -> Result<u64, RecordingError> {
        let length = block_bytes(header.chunk_records_bytes);
        self.check_length(length, offset, limit)?;
        self.read(offset, SECTOR..length as usize, way)?;
        self.check_records(header, offset)?;
        Ok(length)
    }

    /// The block in the buffer.
    fn block(&self, sector: BlockSector, offset: u64) -> Block<'_> {
        let BlockSector { header, channel, .. } = sector;
        let records = &self.source.bytes()[CHUNK_START..][..header.chunk_records_bytes as usize];
        Block { header, offset, sector: &self.source.bytes()[..SECTOR], channel, records }
    }

    fn check_preamble(&mut self, way: Way) -> Result<(), RecordingError> {
        self.read(0, 0..SECTOR, way)?;
        let found = parse_preamble(self.source.bytes()).map_err(RecordingError::layout(&self.path, 0))?;
        let expected = SegmentIdentity { created_unix_ns: found.created_unix_ns, ..self.expected };
        if found == expected {
            Ok(())
        } else {
            Err(self.fault(0, "it is another segment than the journal says"))
        }
    }

    fn check_place(&self, sector: &BlockSector) -> Result<(), RecordingError> {
        let (header, offset) = (&sector.header, self.offset);
        self.check_identity(header, offset)?;
        if header.segment_block != self.next_block {
            Err(self.fault(offset, "the block's number does not follow the one before"))
        } else if header.previous_header_crc != self.previous_header_crc {
            Err(self.fault(offset, "the block does not follow the one before"))
        } else {
            Ok(())
        }
    }

    fn check_identity(&self, header: &BlockHeader, offset: u64) -> Result<(), RecordingError> {
        let ids = (header.recording, header.segment, header.segment_index);
        if ids == (self.expected.recording, self.expected.segment, self.expected.segment_index) {
            Ok(())
        } else {
            Err(self.fault(offset, "the block is of another segment"))
        }
    }

    /// Checks a length from the file against the limits, before memory is allocated for it.
    fn check_length(&self, length: u64, offset: u64, limit: u64) -> Result<(), RecordingError> {
        let size = self.source.size().map_err(RecordingError::io("read the size of", &self.path))?;
        if length > limit.saturating_sub(offset) {
            Err(self.fault(offset, "the block reaches beyond what is durable"))
        } else if length > size.saturating_sub(offset) {
            Err(self.fault(offset, "the file ends in the block"))
        } else if length > self.block_bytes_max {
            Err(self.fault(offset, "the block is longer than this reader takes"))
        } else {
            Ok(())
        }
    }

    fn check_records(&self, header: &BlockHeader, offset: u64) -> Result<(), RecordingError> {
        let records = &self.source.bytes()[CHUNK_START..][..header.chunk_records_bytes as usize];
        if crc32(records) != header.chunk_crc {
            return Err(self.fault(offset, "the block's checksum does not match its events"));
        }
        let mut walk = MessageWalk::new(header);
        let mut at = 0;
        while at < records.len() {
            let message = walk.take(&records[at..]).map_err(|what| self.fault(offset, what))?;
            at += MESSAGE_HEADER + message.payload_bytes as usize;
        }
        walk.finish(header).map_err(|what| self.fault(offset, what))
    }

    /// Reads a part of the block at `offset` into the same part of the buffer.
    fn read(&mut self, offset: u64, part: Range<usize>, way: Way) -> Result<(), RecordingError> {
        let read = self.source.read(offset, part.clone(), way);
        if read.map_err(RecordingError::io("read", &self.path))? < part.len() {
            return Err(self.fault(offset, "the file ends here"));
        }
        Ok(())
    }

    fn fault(&self, offset: u64, what: &str) -> RecordingError {
        RecordingError::Segment { path: self.path.clone(), offset, what: what.into() }
    }
}

impl<'a> Block<'a> {
    /// Description of the stream in the block.
    ///
    /// # Errors
    /// Its channel record is not as the recorder writes it.
    pub fn stream_info(&self) -> Result<StreamInfo, crate::layout::LayoutError> {
        parse_channel(&self.sector[self.channel.clone()])
    }

    /// All message records, headers and payloads.
    pub fn records(&self) -> &'a [u8] {
        self.records
    }

    /// The events, in order.
    pub fn events(&self) -> Events<'a> {
        Events { sequence: self.header.first_sequence, records: self.records }
    }
}

impl<'a> Events<'a> {
    /// Events in `records`, from a block that was checked before; its first event is
    /// `first_sequence`.
    pub fn new(first_sequence: u64, records: &'a [u8]) -> Events<'a> {
        Events { sequence: first_sequence, records }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        // The reader has checked all headers: both calls succeed up to the block's end.
        let message = parse_message_header(self.records)?;
        let end = MESSAGE_HEADER + message.payload_bytes as usize;
        let payload = self.records.get(MESSAGE_HEADER..end)?;
        let event = Event { sequence: self.sequence, timestamp_ns: message.timestamp_ns, payload };
        self.records = &self.records[end..];
        self.sequence += 1;
        Some(event)
    }
}
