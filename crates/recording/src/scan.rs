//! Finds the intact blocks of an unsealed segment and builds the index for sealing.
//!
//! Below the durable watermark only block headers and the headers of large events are read; above it every
//! byte, and a block counts only if its checksums, identities and position agree. The first invalid block
//! ends the segment. Blocks that are read whole are read ahead and past the page cache.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use keepup_error::Cause;
use keepup_stream::wire::StreamInfo;
use keepup_sys::regular::open_direct;

use crate::crc::Crc32;
use crate::error::RecordingError;
use crate::files::read_fully_at;
use crate::layout::{
    BlockHeader, BlockSector, CHUNK_START, ChannelBytes, FLAG_GAP_BEFORE, MESSAGE_HEADER, SECTOR,
    SegmentIdentity, block_bytes, parse_block_sector, parse_channel, put_block_tail,
};
use crate::messages::MessageWalk;
use crate::seal::{EventMark, SEGMENT_EVENTS_MAX, SegmentIndex};
use crate::sequential::Sequential;
use crate::volume::preamble;

/// Bytes per read where message headers are close together.
const PIECE_BYTES: usize = 256 << 10;
/// Headers of events of at least this many bytes are read one by one.
const FAR_APART_BYTES: u64 = 16 << 10;

/// Result of scanning a segment.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    pub(crate) index: SegmentIndex,
    /// End of its blocks, in bytes.
    pub(crate) data_bytes: u64,
    /// Blocks above the watermark.
    pub(crate) blocks_behind: u64,
    /// Blocks at the end that are also on another volume, and dropped here.
    pub(crate) duplicates: u64,
    /// Streams that its blocks describe.
    pub(crate) streams: BTreeMap<u32, StreamInfo>,
    /// First sequence numbers of streams with their first block here, if nothing is missing before it.
    pub(crate) starts: BTreeMap<u32, u64>,
}

/// Whether a block of any segment follows the preamble.
pub(crate) fn has_block(file: &File) -> io::Result<bool> {
    let mut sector = [0; SECTOR];
    let read = read_fully_at(file, &mut sector, SECTOR as u64)?;
    Ok(parse_block_sector(&sector[..read]).is_ok())
}

/// Extent of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOptions {
    /// Durable watermark: a defect below it is an error.
    pub(crate) durable_bytes: u64,
    /// Whether large events are read below the watermark too.
    pub(crate) reads_events: bool,
}

/// Scans a segment. `progress` is called with the length of each block.
///
/// # Errors
/// The file cannot be read, is another segment, or is damaged below the watermark.
pub(crate) fn scan(
    file: &File,
    path: &Path,
    expected: &SegmentIdentity,
    ScanOptions { durable_bytes, reads_events }: ScanOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<ScanResult, RecordingError> {
    let fault = |offset, what: Cause| RecordingError::Segment { path: path.into(), offset, what };
    let size = file.metadata().map_err(RecordingError::io("read the size of", path))?.len();
    match preamble(file).map_err(RecordingError::io("read", path))? {
        Ok(found) if (SegmentIdentity { created_unix_ns: 0, ..found }) == *expected => {}
        Ok(_) => return Err(fault(0, "it is another segment than the journal says".into())),
        Err(error) => return Err(fault(0, Cause::of(&error))),
    }
    let mut scanner = Scanner {
        reader: BlockReader { file, path, size, ahead: None, is_ahead: reads_events },
        size,
        expected,
        reads_events,
        blocks: 0,
        events: 0,
        previous_crc: 0,
        buffer: vec![0; PIECE_BYTES],
    };
    let mut found = ScanResult { data_bytes: SECTOR as u64, ..ScanResult::default() };
    let mut channels: BTreeMap<u32, Arc<ChannelBytes>> = BTreeMap::new();
    while found.data_bytes < size {
        let offset = found.data_bytes;
        let trusted = offset < durable_bytes;
        let block = match scanner.block(offset, trusted).map_err(RecordingError::io("read", path))? {
            Ok(block) => block,
            Err(what) if trusted => return Err(fault(offset, what)),
            Err(_) => break,
        };
        let (stream, events) = (block.stream.id, block.events);
        let channel = match channels.entry(stream) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let encoded =
                    ChannelBytes::new(&block.stream).map_err(RecordingError::layout(path, offset))?;
                place.insert(Arc::new(encoded))
            }
        };
        let BlockHeader { stream_block, first_sequence, flags, .. } = block.header;
        if stream_block == 0 && first_sequence > 0 && flags & FLAG_GAP_BEFORE == 0 {
            found.starts.insert(stream, first_sequence);
        }
        found.index.push(offset, &block.header, channel, events);
        found.streams.entry(stream).or_insert(block.stream);
        found.blocks_behind += u64::from(!trusted);
        let bytes = block_bytes(block.header.chunk_records_bytes);
        found.data_bytes += bytes;
        progress(bytes);
    }
    if found.data_bytes < durable_bytes {
        return Err(fault(found.data_bytes, "it ends before what the journal calls durable".into()));
    }
    Ok(found)
}

/// Reads what a scan needs of a segment.
struct BlockReader<'a> {
    file: &'a File,
    path: &'a Path,
    size: u64,
    /// Reads whole blocks; opened for the first of them.
    ahead: Option<Sequential>,
    /// Whether the last block was read whole. Then the next one, which follows it, is in memory.
    is_ahead: bool,
}

impl BlockReader<'_> {
    /// Reads few bytes.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.is_ahead {
            self.ahead()?.read_at(buffer, offset)
        } else {
            read_fully_at(self.file, buffer, offset)
        }
    }

    /// Reader of whole blocks.
    fn ahead(&mut self) -> io::Result<&mut Sequential> {
        match &mut self.ahead {
            Some(ahead) => Ok(ahead),
            none => Ok(none.insert(Sequential::new(open_direct(self.path)?, self.size)?)),
        }
    }
}

struct Scanner<'a> {
    reader: BlockReader<'a>,
    size: u64,
    expected: &'a SegmentIdentity,
    /// Whether large events are read below the watermark too.
    reads_events: bool,
    blocks: u64,
    events: u64,
    previous_crc: u32,
    buffer: Vec<u8>,
}

struct FoundBlock {
    header: BlockHeader,
    stream: StreamInfo,
    events: Vec<EventMark>,
}

impl Scanner<'_> {
    /// The block at `offset`, or its defect.
    fn block(&mut self, offset: u64, trusted: bool) -> io::Result<Result<FoundBlock, Cause>> {
        let mut sector = [0; SECTOR];
        if self.reader.read_at(&mut sector, offset)? < SECTOR {
            return Ok(Err("the file ends in a block's header".into()));
        }
        let BlockSector { header, header_crc, channel } = match parse_block_sector(&sector) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(Cause::of(&error))),
        };
        let ids = (header.recording, header.segment, header.segment_index);
        let place = (header.segment_block, header.previous_header_crc);
        if ids != (self.expected.recording, self.expected.segment, self.expected.segment_index) {
            return Ok(Err("the block is of another segment".into()));
        } else if place != (self.blocks, self.previous_crc) {
            return Ok(Err("the block does not follow the one before".into()));
        } else if block_bytes(header.chunk_records_bytes) > self.size - offset {
            return Ok(Err("the file ends in the block".into()));
        }
        let events = self.events + u64::from(header.event_count);
        if self.blocks > 0 && events > SEGMENT_EVENTS_MAX as u64 {
            return Ok(Err("the segment has more events than one may have".into()));
        }
        let stream = match parse_channel(&sector[channel]) {
            Ok(stream) => stream,
            Err(error) => return Ok(Err(Cause::of(&error))),
        };
        let far_apart = header.chunk_records_bytes / u64::from(header.event_count) >= FAR_APART_BYTES;
        self.reader.is_ahead = !(trusted && far_apart) || self.reads_events;
        let events = match self.reader.is_ahead {
            false => self.headers_alone(offset, &header)?,
            true => self.whole(offset, &header)?,
        };
        if !trusted && !self.is_padded(offset, &header)? {
            return Ok(Err("the pad behind the block is not zero".into()));
        }
        Ok(events.map(|events| {
            self.blocks += 1;
            self.events += u64::from(header.event_count);
            self.previous_crc = header_crc;
            FoundBlock { header, stream, events }
        }))
    }

    /// Whether the pad after a block is valid.
    fn is_padded(&mut self, offset: u64, header: &BlockHeader) -> io::Result<bool> {
        let end = CHUNK_START as u64 + header.chunk_records_bytes;
        let mut found = vec![0; (block_bytes(header.chunk_records_bytes) - end) as usize];
        let mut expected = found.clone();
        put_block_tail(&mut expected);
        Ok(self.reader.read_at(&mut found, offset + end)? == found.len() && found == expected)
    }

    /// Reads the message headers one by one.
    fn headers_alone(
        &mut self,
        offset: u64,
        header: &BlockHeader,
    ) -> io::Result<Result<Vec<EventMark>, Cause>> {
        let mut walk = MessageWalk::new(header);
        let mut events = Vec::new();
        let mut at = offset + CHUNK_START as u64;
        for _ in 0..header.event_count {
            let mut head = [0; MESSAGE_HEADER];
            let read = self.reader.read_at(&mut head, at)?;
            let message = match walk.take(&head[..read]) {
                Ok(message) => message,
                Err(what) => return Ok(Err(what.into())),
            };
            at += MESSAGE_HEADER as u64 + message.payload_bytes;
            events.push(mark(message.timestamp_ns, message.payload_bytes));
        }
        Ok(walk.finish(header).map(|()| events).map_err(Cause::from))
    }

    /// Reads all of a block's records and verifies their checksum.
    fn whole(&mut self, offset: u64, header: &BlockHeader) -> io::Result<Result<Vec<EventMark>, Cause>> {
        let mut walk = MessageWalk::new(header);
        let mut events = Vec::new();
        let mut crc = Crc32::new();
        let (mut at, end) = (0, header.chunk_records_bytes);
        // Offset of the next message from the first one.
        let mut message_at = 0;
        while at < end {
            let length = (end - at).min(PIECE_BYTES as u64) as usize;
            let piece = &mut self.buffer[..length];
            if self.reader.read_at(piece, offset + CHUNK_START as u64 + at)? < length {
                return Ok(Err("the file ends in the block".into()));
            }
            // A header cut by the piece's end is read again with the next piece.
            let mut done = length;
            while message_at < at + length as u64 {
                let begin = (message_at - at) as usize;
                if length - begin < MESSAGE_HEADER && at + (length as u64) < end {
                    done = begin;
                    break;
                }
                match walk.take(&piece[begin..]) {
                    Ok(message) => {
                        message_at += MESSAGE_HEADER as u64 + message.payload_bytes;
                        events.push(mark(message.timestamp_ns, message.payload_bytes));
                    }
                    Err(what) => return Ok(Err(what.into())),
                }
            }
            crc.update(&piece[..done]);
            at += done as u64;
        }
        if crc.value() != header.chunk_crc {
            return Ok(Err("the block's checksum does not match its events".into()));
        }
        Ok(walk.finish(header).map(|()| events).map_err(Cause::from))
    }
}

fn mark(timestamp_ns: u64, payload_bytes: u64) -> EventMark {
    EventMark { timestamp_ns, payload_bytes }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
