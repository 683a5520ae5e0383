//! Where one volume of a recording is being read, and how a reader gets over what cannot be read.
//!
//! Invariant: what is left out is entered in the marks, so that it is never taken for something that is
//! durable elsewhere.
use keepup_recording::error::RecordingError;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::{Block, SegmentReader};
use keepup_recording::volume::Volume;
use keepup_stream::wire::StreamInfo;

use super::marks::SegmentMarks;
use crate::RecorderError;

/// Largest block that a drain takes into memory, in bytes.
pub(super) const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Segments in a row that the system cannot read, after which the volume is not tried any more.
const UNREADABLE_MAX: u32 = 3;

/// A block in memory.
pub(super) struct Held {
    pub(super) info: StreamInfo,
    pub(super) header: BlockHeader,
    pub(super) records: Vec<u8>,
    pub(super) place: Place,
    /// When it was read, monotonic.
    pub(super) seen_ns: u64,
}

/// Where a block lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) volume: usize,
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// Where one volume is being read.
#[derive(Default)]
pub(super) struct Cursor {
    pub(super) segment: u32,
    reader: Option<SegmentReader>,
    offset: u64,
    pub(super) head: Option<Held>,
    pub(super) marks: SegmentMarks,
    unreadable: u32,
    is_dead: bool,
    /// What cannot be read here, once there is something, for people.
    pub(super) impaired: Option<String>,
    /// The recorder gave the volume up.
    pub(super) has_failed: bool,
    /// Its journal cannot be read.
    pub(super) is_silent: bool,
    /// What is durable elsewhere could not be entered.
    pub(super) is_unmarked: bool,
}

impl Cursor {
    fn begin(&mut self, segment: u32) {
        (self.segment, self.reader, self.offset) = (segment, None, 0);
    }

    /// Begins again with the first segment that is not durable elsewhere.
    pub(super) fn rewind(&mut self) {
        self.head = None;
        self.begin(self.marks.first_open());
    }

    /// Whether nothing more is read here, whatever there is.
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// Reads the next block into the head, when there is one that is durable.
    ///
    /// # Errors
    /// When it cannot be read. [`pass`](Self::pass) goes on behind it.
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
                let place = Place { volume: number, segment: segment.index, offset: block.offset };
                let held = hold(&block, place, now_ns)?;
                let end = held.header.first_sequence.saturating_add(held.header.event_count.into());
                self.marks.block(segment.index, held.header.stream, end);
                self.head = Some(held);
                (self.offset, self.unreadable) = (reader.offset(), 0);
                return Ok(());
            }
            if !segment.is_ended() {
                return Ok(());
            }
            self.marks.read(segment.index);
            self.begin(self.segment + 1);
        }
        Ok(())
    }

    /// Goes on behind what could not be read because of `error`. Returns the damaged block's header where
    /// that is whole, and what is wrong, for people.
    pub(super) fn pass(&mut self, volume: &Volume, error: &RecorderError) -> (Option<BlockHeader>, String) {
        let limit = volume.segment(self.segment).map_or(0, |segment| segment.readable_bytes());
        self.marks.left_out(self.segment);
        let passed = self.reader.as_mut().map(|reader| reader.skip_damaged(limit));
        let what = without_hint(error);
        let (header, what) = match passed {
            Some(Ok(header)) => {
                self.offset = self.reader.as_ref().map_or(0, SegmentReader::offset);
                (header, what)
            }
            failed => {
                self.begin(self.segment + 1);
                let by_system = |error: &RecordingError| matches!(error, RecordingError::Io { .. });
                let io = match &failed {
                    Some(Err(next)) => by_system(next),
                    _ => matches!(error, RecorderError::Recording(error) if by_system(error)),
                };
                self.unreadable = if io { self.unreadable + 1 } else { 0 };
                self.is_dead = self.unreadable >= UNREADABLE_MAX;
                let rest = if self.is_dead { "volume" } else { "segment" };
                (None, format!("{what}; the rest of the {rest} is left out"))
            }
        };
        self.impair(what.clone());
        (header, what)
    }

    /// Enters why something of this volume is missing; the first reason stays, unless the volume
    /// as a whole fails.
    pub(super) fn impair(&mut self, why: String) {
        self.impaired.get_or_insert(why);
    }

    /// Durable bytes that were not read yet.
    pub(super) fn behind_bytes(&self, volume: &Volume) -> u64 {
        if self.is_dead {
            return 0;
        }
        let unread = volume.segments().iter().filter(|segment| segment.index >= self.segment);
        let ahead = unread.map(|segment| segment.readable_bytes()).sum::<u64>();
        ahead.saturating_sub(self.offset)
    }
}

/// The text of an error without what helps.
pub(super) fn without_hint(error: &RecorderError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Copies a block out of its reader.
pub(super) fn hold(block: &Block<'_>, place: Place, now_ns: u64) -> Result<Held, RecorderError> {
    let info = block.stream_info().map_err(|e| RecorderError::Config { what: e.to_string() })?;
    let records = block.records().to_vec();
    Ok(Held { info, header: block.header, records, place, seen_ns: now_ns })
}
