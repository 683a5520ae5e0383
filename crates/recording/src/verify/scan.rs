//! Reads one segment in a single pass and checks every byte.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use keepup_error::Cause;
use keepup_stream::ledger::Count;
use keepup_sys::file::Access;
use keepup_sys::regular::open_direct;
use serde::{Deserialize, Serialize};

use super::coverage::{Location, Run};
use super::report::{Fault, Faults};
use super::window::{FILL_BYTES_MAX, Window};
use crate::crc::Crc32;
use crate::duplicates::Duplicate;
use crate::error::RecordingError;
use crate::hdf5::is_superblock;
use crate::layout::{
    BlockHeader, BlockSector, CHUNK_START, ChannelBytes, FLAG_GAP_BEFORE, MESSAGE_HEADER, SECTOR,
    SUPERBLOCK_SPACE, SegmentIdentity, block_bytes, pad_opening, parse_block_sector, parse_preamble,
};
use crate::messages::MessageWalk;
use crate::seal::{EventMark, SEGMENT_EVENTS_MAX, SegmentIndex, put_tail};
use crate::volume::{Segment, SegmentState, Volume};

/// The longest pad is one sector plus less than a record header.
const _: () = assert!(SECTOR + MESSAGE_HEADER <= FILL_BYTES_MAX);

/// Most events of a segment's first block: this many fill 2 GiB with empty payloads.
const BLOCK_EVENTS_MAX: usize = (2 << 30) / MESSAGE_HEADER;

/// Results of one segment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SegmentScan {
    pub(super) blocks: u64,
    /// Of these, blocks that count on another volume.
    pub(super) duplicates: u64,
    pub(super) bytes: u64,
    pub(super) streams: BTreeMap<u32, StreamScan>,
    pub(super) faults: Faults,
}

/// Results of one stream in one segment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamScan {
    pub(super) recorded: Count,
    pub(super) damaged_events: u64,
    pub(super) runs: Vec<Run>,
}

impl SegmentScan {
    /// Whether figures from a file can be computed with.
    pub(super) fn is_consistent(&self) -> bool {
        const MOST: u64 = 1 << 48;
        if [self.blocks, self.duplicates, self.bytes, self.faults.count].iter().any(|figure| *figure > MOST) {
            return false;
        }
        let runs = self.streams.values().flat_map(|stream| &stream.runs);
        runs.into_iter().all(|run| run.events.start <= run.events.end && run.blocks.start <= run.blocks.end)
    }
}

/// Information about a recording that is available before a segment is read.
#[derive(Clone, Copy)]
pub(super) struct RecordingContext<'a> {
    /// All streams.
    pub(super) channels: &'a BTreeMap<u32, Arc<ChannelBytes>>,
    /// Blocks of this segment that count on another volume.
    pub(super) duplicates: &'a [Duplicate],
}

/// Scan of one segment in progress.
struct Scanner<'a> {
    volume: &'a Volume,
    segment: &'a Segment,
    known: RecordingContext<'a>,
    window: &'a mut Window,
    /// Progress callback with the number of processed bytes.
    done: &'a dyn Fn(u64),
    scan: SegmentScan,
    /// Expected number of the next block.
    next_block: u64,
    /// Header CRC that the next block should repeat; `None` after damage.
    previous_header_crc: Option<u32>,
    /// Content of the superblock's space in the first sector.
    superblock: Vec<u8>,
    /// Index of the intact blocks, from which an ended segment's tail is generated; `None` if it
    /// is not needed or would exceed a segment's limit.
    index: Option<SegmentIndex>,
    /// Events of the current block.
    events: Vec<EventMark>,
}

/// Scans the readable part of a segment. Faults, including read errors, are in the result.
pub(super) fn scan_segment(
    volume: &Volume,
    segment: &Segment,
    known: RecordingContext<'_>,
    window: &mut Window,
    done: &dyn Fn(u64),
) -> SegmentScan {
    let mut scan = SegmentScan::default();
    let is_empty = segment.readable_bytes() == 0;
    let (file, size) = match open_sized(segment) {
        Ok(opened) => opened,
        // A segment without durable data may be missing after a crash.
        Err(error) if is_empty && error.kind() == io::ErrorKind::NotFound => return scan,
        Err(error) => {
            let what = match RecordingError::open("open", &segment.path)(error) {
                RecordingError::File { what, .. } => what.to_owned(),
                RecordingError::Io { source, .. } => source.to_string(),
                other => Cause::of(&other).to_text(),
            };
            scan.faults.push(fault_at(segment, 0, format!("cannot open it: {what}")));
            return scan;
        }
    };
    if is_empty {
        return scan;
    }
    let end = match segment.state {
        SegmentState::Ended { bytes, .. } => bytes,
        SegmentState::Open { durable_bytes, .. } => durable_bytes,
    };
    if size < end || (segment.is_ended() && size > end) {
        let what = format!("the file has {size} bytes, the journal says {end}");
        scan.faults.push(fault_at(segment, end.min(size), what));
    }
    if let Err(error) = window.begin(file, end.min(size)) {
        scan.faults.push(fault_at(segment, 0, format!("cannot read it: {error}")));
        return scan;
    }
    let mut scanner = Scanner {
        volume,
        segment,
        known,
        window,
        done,
        scan,
        next_block: 0,
        previous_header_crc: Some(0),
        superblock: Vec::new(),
        index: segment.is_ended().then(SegmentIndex::default),
        events: Vec::new(),
    };
    let limit = segment.readable_bytes().min(size);
    if let Err(error) = scanner.run(limit) {
        let offset = scanner.window.offset();
        scanner.fault(offset, format!("cannot read it: {error}"));
    }
    scanner.scan.bytes = scanner.window.offset();
    scanner.scan
}

fn open_sized(segment: &Segment) -> io::Result<((File, Access), u64)> {
    let (file, access) = open_direct(&segment.path)?;
    let size = file.metadata()?.len();
    Ok(((file, access), size))
}

fn fault_at(segment: &Segment, offset: u64, what: String) -> Fault {
    Fault { file: segment.path.clone(), offset, stream: None, event: None, what }
}

impl Scanner<'_> {
    fn run(&mut self, limit: u64) -> io::Result<()> {
        self.preamble()?;
        while self.window.offset() < limit {
            let offset = self.window.offset();
            let sector = self.window.fill(SECTOR)?;
            let parsed = parse_block_sector(sector).map_err(|error| Cause::of(&error).to_text());
            match parsed.and_then(|parsed| self.check_identity(parsed, limit)) {
                Ok(sector) => self.block(offset, &sector)?,
                Err(what) => self.skip_sector(offset, what)?,
            }
        }
        if let SegmentState::Ended { bytes, .. } = self.segment.state {
            self.tail(bytes)?;
        }
        let (found, journalled) = (self.scan.blocks, self.segment.readable_blocks());
        // After damage the numbers differ anyway.
        if self.scan.faults.count == 0 && found != journalled {
            let offset = self.window.offset();
            self.fault(offset, format!("there are {found} blocks, the journal says {journalled}"));
        }
        Ok(())
    }

    fn preamble(&mut self) -> io::Result<()> {
        let sector = self.window.fill(SECTOR)?;
        let expected = self.volume.identity(self.segment.index, self.segment.id);
        let space = sector.get(SUPERBLOCK_SPACE).unwrap_or_default();
        // A crash while the segment was sealed, before the journal says so, leaves a superblock.
        let is_free = space.iter().all(|&byte| byte == 0);
        let is_sealing = is_superblock(space, SUPERBLOCK_SPACE.start as u64);
        let is_space_used = !self.segment.is_ended() && !is_free && !is_sealing;
        self.superblock = space.to_vec();
        let what = match parse_preamble(sector) {
            Err(error) => Some(Cause::of(&error).to_text()),
            Ok(found) if (SegmentIdentity { created_unix_ns: 0, ..found }) != expected => {
                Some("it is another segment than the journal says".to_owned())
            }
            Ok(_) if is_space_used => {
                Some("the superblock's reserved space is neither zero nor a superblock".to_owned())
            }
            Ok(_) => None,
        };
        let length = sector.len().min(SECTOR);
        self.consume(length);
        if let Some(what) = what {
            self.fault(0, what);
        }
        Ok(())
    }

    /// Checks that an intact header belongs to this segment, its stream is declared, and the
    /// block fits.
    fn check_identity(&self, sector: BlockSector, limit: u64) -> Result<BlockSector, String> {
        let header = &sector.header;
        let manifest = self.volume.manifest();
        let ids = (header.recording, header.segment, header.segment_index);
        if ids != (manifest.recording, self.segment.id, self.segment.index) {
            return Err("the block is of another segment".to_owned());
        }
        if !self.known.channels.contains_key(&header.stream) {
            return Err(format!("the block is of stream {}, which no journal declares", header.stream));
        }
        if block_bytes(header.chunk_records_bytes) > limit - self.window.offset() {
            return Err("the block reaches beyond the segment's durable end".to_owned());
        }
        Ok(sector)
    }

    /// Skips a sector that is no block of this segment; a block may start at the next one. Only
    /// the first skipped sector of a range is a fault.
    fn skip_sector(&mut self, offset: u64, what: String) -> io::Result<()> {
        if self.previous_header_crc.take().is_some() {
            self.fault(offset, what);
        }
        let step = self.window.fill(SECTOR)?.len().min(SECTOR);
        if step == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.consume(step);
        Ok(())
    }

    fn block(&mut self, offset: u64, sector: &BlockSector) -> io::Result<()> {
        let header = &sector.header;
        self.links(offset, sector)?;
        self.events.clear();
        self.bound_index(offset, header);
        let damage = self.chunk(offset, header)?;
        if let (None, Some(channel), Some(index)) =
            (&damage, self.known.channels.get(&header.stream), &mut self.index)
        {
            index.push(offset, header, channel, self.events.drain(..));
        }
        let pad_damage = self.pad(header)?;
        self.scan.blocks += 1;
        let is_duplicate = self.known.duplicates.iter().any(|duplicate| duplicate.offset == offset);
        self.scan.duplicates += u64::from(is_duplicate);
        if let Some(at) = pad_damage {
            self.fault(at, "the pad behind the block is not zero".to_owned());
        }
        if is_duplicate {
            damage.into_iter().for_each(|damage| self.scan.faults.push(damage));
            return Ok(());
        }
        let stream = self.scan.streams.entry(header.stream).or_default();
        stream.recorded += Count { events: u64::from(header.event_count), bytes: header.payload_bytes };
        let run = Run {
            events: header.first_sequence..header.first_sequence + u64::from(header.event_count),
            blocks: header.stream_block..header.stream_block.saturating_add(1),
            is_after_gap: header.flags & FLAG_GAP_BEFORE != 0,
            place: Location {
                volume: self.volume.manifest().volume_index,
                segment: self.segment.index,
                offset,
            },
        };
        match stream.runs.last_mut() {
            Some(last) if last.is_followed_by(&run) => last.extend(&run),
            _ => stream.runs.push(run),
        }
        if let Some(damage) = damage {
            stream.damaged_events += u64::from(header.event_count);
            self.scan.faults.push(damage);
        }
        Ok(())
    }

    /// The index holds at most as many events as a segment may have; a damaged file's first block
    /// may have more.
    fn bound_index(&mut self, offset: u64, header: &BlockHeader) {
        let events = |index: &SegmentIndex| index.events() + header.event_count as usize;
        let is_beyond = |index: &SegmentIndex| match index.blocks() {
            0 => events(index) > BLOCK_EVENTS_MAX,
            _ => events(index) > SEGMENT_EVENTS_MAX,
        };
        if self.index.take_if(|index| is_beyond(index)).is_some() {
            let what = "there are more events than a segment may have".to_owned();
            self.block_fault(offset, header, header.first_sequence, what);
        }
    }

    /// Checks the block's position in the segment and its channel record.
    fn links(&mut self, offset: u64, sector: &BlockSector) -> io::Result<()> {
        let header = &sector.header;
        let channel = self.known.channels.get(&header.stream).map(|channel| channel.as_slice());
        let found = self.window.fill(SECTOR)?.get(sector.channel.clone());
        let what = if found != channel {
            Some("the block's description of its stream differs from the journal's")
        } else if let Some(previous) = self.previous_header_crc {
            let follows = header.segment_block == self.next_block && header.previous_header_crc == previous;
            (!follows).then_some("the block does not follow the one before in its segment")
        } else {
            (header.segment_block < self.next_block).then_some("the block is older than the one before")
        };
        self.next_block = header.segment_block.saturating_add(1);
        self.previous_header_crc = Some(sector.header_crc);
        if let Some(what) = what {
            self.block_fault(offset, header, header.first_sequence, what.to_owned());
        }
        Ok(())
    }

    /// Reads the chunk's message records piece by piece; returns their defect.
    fn chunk(&mut self, offset: u64, header: &BlockHeader) -> io::Result<Option<Fault>> {
        self.consume(CHUNK_START);
        let mut walk = MessageWalk::new(header);
        let mut crc = Crc32::new();
        let mut damage = None;
        let mut left = header.chunk_records_bytes;
        // Payload bytes in the following pieces.
        let mut payload_left = 0;
        while left > 0 {
            let want = left.min(MESSAGE_HEADER as u64) as usize;
            let piece_at = self.window.offset();
            let piece = self.window.fill(want)?;
            if piece.len() < want {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = &piece[..length];
            let events = self.index.is_some().then_some(&mut self.events);
            let walked = match damage {
                None => walk_piece(&mut walk, piece, &mut payload_left, events),
                Some(_) => Ok(length),
            };
            let taken = walked.unwrap_or_else(|(at, what)| {
                damage = Some((piece_at + at as u64, walk.sequence, what));
                length
            });
            crc.update(&piece[..taken]);
            self.consume(taken);
            left -= taken as u64;
        }
        let (first, last) =
            (header.first_sequence, header.first_sequence + u64::from(header.event_count) - 1);
        let fault = |at, event, what| Some(self.fault_in(at, header, event, what));
        Ok(if crc.value() != header.chunk_crc {
            // A damaged length is detected only at the next message, so the offset is only a
            // hint.
            let hint = damage.map(|(at, ..)| format!("; it shows at offset {at}")).unwrap_or_default();
            let what =
                format!("the checksum of the block with events {first} to {last} does not match{hint}");
            fault(offset, first, what)
        } else if let Some((at, event, what)) = damage {
            fault(at, event, what.to_owned())
        } else {
            walk.finish(header).err().and_then(|what| fault(offset, first, what.to_owned()))
        })
    }

    /// Checks the pad after the chunk; returns the offset of the first wrong byte.
    fn pad(&mut self, header: &BlockHeader) -> io::Result<Option<u64>> {
        let chunk_end = CHUNK_START as u64 + header.chunk_records_bytes;
        let length = (block_bytes(header.chunk_records_bytes) - chunk_end) as usize;
        if length == 0 {
            return Ok(None);
        }
        let found = self.window.fill(length)?;
        let Some(found) = found.get(..length) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let opening = pad_opening(length as u64);
        let expected = opening.iter().copied().chain(std::iter::repeat(0));
        let wrong = found.iter().zip(expected).position(|(&found, expected)| found != expected);
        let at = wrong.map(|index| self.window.offset() + index as u64);
        self.consume(length);
        Ok(at)
    }

    /// Generates the tail from the blocks and compares it. Not possible after damage.
    fn tail(&mut self, segment_bytes: u64) -> io::Result<()> {
        let at = self.window.offset();
        let Some(index) = self.index.take().filter(|_| self.scan.faults.count == 0) else {
            return Ok(());
        };
        let mut compared = CompareWriter { window: self.window, difference: None };
        let tail = put_tail(&index, at, &mut compared)?;
        let difference = compared.difference;
        (self.done)(tail.bytes);
        if let Some(offset) = difference {
            self.fault(offset, "the tail is not that of the segment's blocks".to_owned());
        } else if at + tail.bytes != segment_bytes {
            let what = format!("the tail takes {} bytes, which differs from the journal", tail.bytes);
            self.fault(at, what);
        } else if tail.superblock != self.superblock {
            let what = "the superblock is not that of the segment's blocks".to_owned();
            self.fault(SUPERBLOCK_SPACE.start as u64, what);
        }
        Ok(())
    }

    fn consume(&mut self, bytes: usize) {
        self.window.consume(bytes);
        (self.done)(bytes as u64);
    }

    fn fault(&mut self, offset: u64, what: String) {
        self.scan.faults.push(fault_at(self.segment, offset, what));
    }

    fn fault_in(&self, offset: u64, header: &BlockHeader, event: u64, what: String) -> Fault {
        let place = fault_at(self.segment, offset, what);
        Fault { stream: Some(header.stream), event: Some(event), ..place }
    }

    fn block_fault(&mut self, offset: u64, header: &BlockHeader, event: u64, what: String) {
        let fault = self.fault_in(offset, header, event, what);
        self.scan.faults.push(fault);
    }
}

/// Walks the message headers in `piece`. Returns the number of processed bytes: all, except for a
/// header cut by the piece's end. The error contains the offset of the damage.
fn walk_piece(
    walk: &mut MessageWalk,
    piece: &[u8],
    payload_left: &mut u64,
    mut events: Option<&mut Vec<EventMark>>,
) -> Result<usize, (usize, &'static str)> {
    let mut at = 0;
    loop {
        let payload = usize::try_from(*payload_left).unwrap_or(usize::MAX).min(piece.len() - at);
        at += payload;
        *payload_left -= payload as u64;
        if at == piece.len() || (at > 0 && piece.len() - at < MESSAGE_HEADER) {
            return Ok(at);
        }
        let message = walk.take(&piece[at..]).map_err(|what| (at, what))?;
        *payload_left = message.payload_bytes;
        if let Some(events) = &mut events {
            let (timestamp_ns, payload_bytes) = (message.timestamp_ns, message.payload_bytes);
            events.push(EventMark { timestamp_ns, payload_bytes });
        }
        at += MESSAGE_HEADER;
    }
}

/// Writer that compares data with the next bytes of a file.
struct CompareWriter<'a> {
    window: &'a mut Window,
    /// Offset of the first difference.
    difference: Option<u64>,
}

impl io::Write for CompareWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.window.offset();
        let wanted = bytes.len().min(FILL_BYTES_MAX);
        let found = self.window.fill(wanted)?;
        let there = found.len().min(wanted);
        if found[..there] != bytes[..wanted] {
            let same = found.iter().zip(&bytes[..wanted]).take_while(|(a, b)| a == b).count();
            self.difference.get_or_insert(at + same as u64);
        }
        self.window.consume(there);
        Ok(wanted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
