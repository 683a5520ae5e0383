//! Read position in one volume of a recording, and how to skip what cannot be read.
//!
//! Invariant: everything skipped is entered in the marks, so that it never counts as durable
//! elsewhere.
use keepup_error::Cause;
use keepup_measure::sum::Sums;
use keepup_recording::error::RecordingError;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::{Block, SegmentReader};
use keepup_recording::volume::Volume;
use keepup_stream::wire::StreamInfo;

use super::marks::SegmentMarks;
use crate::RecorderError;

/// Largest block that a drain loads into memory, in bytes.
pub(super) const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Unreadable segments in a row after which the volume is given up.
const UNREADABLE_MAX: u32 = 3;

/// A block in memory.
pub(super) struct LoadedBlock {
    pub(super) info: StreamInfo,
    pub(super) header: BlockHeader,
    pub(super) records: Vec<u8>,
    pub(super) place: BlockLocation,
    /// When it was read, monotonic.
    pub(super) seen_ns: u64,
}

/// Location of a block.
#[derive(Clone, Copy)]
pub(super) struct BlockLocation {
    pub(super) volume: usize,
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// Read position in one volume.
#[derive(Default)]
pub(super) struct Cursor {
    pub(super) segment: u32,
    reader: Option<SegmentReader>,
    offset: u64,
    /// Bytes of segments before this position, without what was removed before it was read.
    pub(super) passed_bytes: u64,
    pub(super) head: Option<LoadedBlock>,
    pub(super) marks: SegmentMarks,
    unreadable: u32,
    is_dead: bool,
    /// Why part of this volume cannot be read.
    pub(super) impaired: Option<String>,
    /// The recorder took the volume out of rotation for good.
    pub(super) has_failed: bool,
    /// Its journal cannot be read.
    pub(super) is_silent: bool,
    /// The drain marks could not be written.
    pub(super) is_unmarked: bool,
}

impl Cursor {
    fn begin(&mut self, segment: u32) {
        (self.segment, self.reader, self.offset) = (segment, None, 0);
    }

    /// Moves to this offset of the segment.
    fn advance(&mut self, offset: u64) {
        self.passed_bytes += offset.saturating_sub(self.offset);
        self.offset = offset;
    }

    /// Restarts at the first segment that is not durable elsewhere.
    pub(super) fn rewind(&mut self, volume: &Volume) {
        self.head = None;
        let behind_bytes = self.behind_bytes(volume);
        self.begin(self.marks.first_open());
        let again = self.behind_bytes(volume).saturating_sub(behind_bytes);
        self.passed_bytes = self.passed_bytes.saturating_sub(again);
    }

    /// Whether nothing more can be read from this volume.
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// Loads the next durable block, if any, into the head.
    ///
    /// # Errors
    /// The block cannot be read. [`skip`](Self::skip) skips it.
    pub(super) fn load(&mut self, number: usize, volume: &Volume, now_ns: u64) -> Result<(), RecorderError> {
        if self.is_dead {
            return Ok(());
        }
        let first = volume.removed().first_segment;
        if self.segment < first {
            self.begin(first);
            self.impair(format!(
                "{}: segments below {first} were removed before they were read",
                volume.dir().display()
            ));
        }
        while let Some(segment) = volume.segment(self.segment) {
            if self.reader.is_none() {
                if segment.readable_blocks() == 0 && !segment.is_ended() {
                    return Ok(());
                }
                self.reader = Some(SegmentReader::open(volume, segment, BLOCK_BYTES_MAX)?);
            }
            let Some(reader) = &mut self.reader else { return Ok(()) };
            if let Some(block) = reader.next_block(segment.readable_bytes())? {
                let place = BlockLocation { volume: number, segment: segment.index, offset: block.offset };
                let held = copy_block(&block, place, now_ns)?;
                let end = held.header.first_sequence.saturating_add(held.header.event_count.into());
                self.marks.block(segment.index, held.header.stream, end);
                self.head = Some(held);
                let offset = reader.offset();
                self.advance(offset);
                self.unreadable = 0;
                return Ok(());
            }
            if !segment.is_ended() {
                return Ok(());
            }
            self.marks.read(segment.index);
            self.advance(segment.readable_bytes());
            self.begin(self.segment + 1);
        }
        Ok(())
    }

    /// Skips what could not be read because of `error`. Returns the damaged block's header if
    /// that is intact, and a description of the fault.
    pub(super) fn skip(&mut self, volume: &Volume, error: &RecorderError) -> (Option<BlockHeader>, String) {
        let limit = volume.segment(self.segment).map_or(0, |segment| segment.readable_bytes());
        self.marks.skipped(self.segment);
        let passed = self.reader.as_mut().map(|reader| reader.skip_damaged(limit));
        let what = error.to_string();
        let (header, what) = match passed {
            Some(Ok(header)) => {
                let offset = self.reader.as_ref().map_or(0, SegmentReader::offset);
                self.advance(offset);
                (header, what)
            }
            failed => {
                self.advance(limit);
                self.begin(self.segment + 1);
                let by_system = |error: &RecordingError| matches!(error, RecordingError::Io { .. });
                let io = match &failed {
                    Some(Err(next)) => by_system(next),
                    _ => matches!(error, RecorderError::Recording(error) if by_system(error)),
                };
                self.unreadable = if io { self.unreadable + 1 } else { 0 };
                self.is_dead = self.unreadable >= UNREADABLE_MAX;
                let rest = if self.is_dead { "volume" } else { "segment" };
                (None, format!("{what}; the rest of the {rest} is skipped"))
            }
        };
        self.impair(what.clone());
        (header, what)
    }

    /// Records why part of this volume is missing; the first reason stays, unless the whole
    /// volume fails.
    pub(super) fn impair(&mut self, why: String) {
        self.impaired.get_or_insert(why);
    }

    /// Durable bytes that have not been read.
    pub(super) fn behind_bytes(&self, volume: &Volume) -> u64 {
        if self.is_dead {
            return 0;
        }
        let unread = volume.segments().iter().filter(|segment| segment.index >= self.segment);
        let ahead = unread.map(|segment| segment.readable_bytes()).saturating_sum::<u64>();
        ahead.saturating_sub(self.offset)
    }
}

/// Copies a block out of its reader.
pub(super) fn copy_block(
    block: &Block<'_>,
    place: BlockLocation,
    now_ns: u64,
) -> Result<LoadedBlock, RecorderError> {
    let info = block.stream_info().map_err(|e| RecorderError::Config { what: Cause::of(&e) })?;
    let records = block.records().to_vec();
    Ok(LoadedBlock { info, header: block.header, records, place, seen_ns: now_ns })
}
