//! blktrace's binary events: one file per processor, merged by time here, or the output of `blkparse -d`.
//!
//! Layout: `struct blk_io_trace` of linux/blktrace_api.h, 48 bytes in the byte order of the recording
//! machine, then `pdu_len` bytes, which are skipped. Queue events are requests, issue events give the times
//! of dispatch to the driver, completion events give completion times. Sectors have 512 bytes, times are in
//! ns. Lost: processes, merges, plugs, remaps, messages.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use super::pending::{Pending, request};
use crate::batch::{BATCH, Batch, Reader, TimeBase};
use crate::error::{FilePosition, ParseError, ReadError};
use crate::record::{Flags, Operation};
use crate::text::read_some;

const EVENT_BYTES: usize = 48;
/// `BLK_IO_TRACE_MAGIC`, without the version in the low byte.
const MAGIC: u32 = 0x6561_7400;
/// `BLK_IO_TRACE_VERSION`.
const VERSION: u32 = 7;
/// Total size of the buffers of all files, bytes.
const BUFFERS_BYTES: usize = 16 << 20;
/// Minimum and maximum buffer of a file, bytes. An event with its data always fits.
const BUFFER_BYTES_MIN: usize = 68 << 10;
const BUFFER_BYTES_MAX: usize = 256 << 10;
const SECTOR: u64 = 512;

/// `__BLK_TA_QUEUE`, `__BLK_TA_ISSUE` and `__BLK_TA_COMPLETE`; `__BLK_TA_CGROUP` is a bit beside them.
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const ACTION_BITS: u32 = 0xff;
/// `blktrace_cat`, in the upper 16 bits of the action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const COMMAND: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const AHEAD: u32 = 1 << 11;
const META: u32 = 1 << 12;
const DISCARD: u32 = 1 << 13;
const DRIVER: u32 = 1 << 14;
const FUA: u32 = 1 << 15;

/// Reader of the files of a trace.
pub(super) struct Blktrace<R> {
    files: Vec<File<R>>,
    /// Time of the next event in each file but the current one.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
    base: TimeBase,
    pending: Pending,
    /// Number and index of the last device.
    device: Option<(u32, u16)>,
}

struct File<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the file of the byte at `start`.
    offset: u64,
    is_big: Option<bool>,
    next: Option<Event>,
}

/// The relevant fields of an event.
#[derive(Clone, Copy)]
struct Event {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    /// Offset in its file, bytes.
    position: u64,
}

impl<R: Read + Send> Blktrace<R> {
    pub(super) fn new(readers: Vec<R>) -> Result<Self, ReadError> {
        let each = BUFFERS_BYTES / readers.len().max(1);
        let buffer_bytes = each.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let mut files: Vec<File<R>> =
            readers.into_iter().map(|reader| File::new(reader, buffer_bytes)).collect();
        let mut waiting = BinaryHeap::new();
        for (number, file) in files.iter_mut().enumerate() {
            file.advance().map_err(|error| error.in_file(number))?;
            waiting.extend(file.next.map(|event| Reverse((event.time, number))));
        }
        let current = waiting.pop().map(|Reverse((_, number))| number);
        Ok(Self {
            files,
            waiting,
            current,
            base: TimeBase::default(),
            pending: Pending::default(),
            device: None,
        })
    }

    /// The earliest event of all files.
    #[inline]
    fn next(&mut self) -> Result<Option<Event>, ReadError> {
        let Some(number) = self.current else { return Ok(None) };
        let file = &mut self.files[number];
        let event = file.next;
        file.advance().map_err(|error| error.in_file(number))?;
        let next = file.next.map(|event| event.time);
        let other = self.waiting.peek().map(|Reverse((time, _))| *time);
        match (next, other) {
            (Some(next), Some(other)) if next > other => {
                self.current = self.waiting.pop().map(|Reverse((_, number))| number);
                self.waiting.push(Reverse((next, number)));
            }
            (None, _) => self.current = self.waiting.pop().map(|Reverse((_, number))| number),
            _ => {}
        }
        Ok(event)
    }

    #[inline]
    fn take(&mut self, event: &Event, batch: &mut Batch) -> Result<(), ParseError> {
        let (action, category) = (event.action & ACTION_BITS, event.action >> 16);
        let is_queued = action == QUEUE;
        if category & (NOTIFY | DRIVER) != 0 || !matches!(action, QUEUE | ISSUE | COMPLETE) {
            batch.corrections.other_events += 1;
            return Ok(());
        }
        let Some((operation, flags)) = kind(category, event.bytes) else {
            batch.corrections.other_operations += u64::from(is_queued);
            return Ok(());
        };
        let device = match self.device {
            Some((number, position)) if number == event.device => position,
            _ => {
                let position = batch.device(device_name(event.device).as_bytes())?;
                self.device = Some((event.device, position));
                position
            }
        };
        let time_ns = self.base.relative_ns(event.time, 1);
        let mut raw = request(time_ns, event.position, device, operation);
        raw.flags = flags;
        raw.bytes = u64::from(event.bytes);
        let Some(offset) = event.sector.checked_mul(SECTOR) else {
            // A pure flush may have sector -1.
            batch.corrections.too_large += u64::from(is_queued && operation != Operation::Flush);
            return Ok(());
        };
        raw.offset = if operation == Operation::Flush { 0 } else { offset };
        match action {
            QUEUE => self.pending.issue(raw, batch),
            ISSUE => self.pending.dispatch(raw),
            _ => self.pending.complete(raw, batch),
        }
        Ok(())
    }
}

impl<R: Read + Send> Reader for Blktrace<R> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        for _ in 0..BATCH {
            let file = self.current.unwrap_or_default();
            let Some(event) = self.next()? else {
                self.pending.finish(batch);
                return Ok(false);
            };
            self.take(&event, batch).map_err(|c| c.at(FilePosition::Byte(event.position)).in_file(file))?;
        }
        Ok(true)
    }

    fn has_lines(&self) -> bool {
        false
    }
}

impl<R: Read> File<R> {
    fn new(reader: R, buffer_bytes: usize) -> Self {
        let buffer = vec![0; buffer_bytes];
        Self { reader, buffer, start: 0, end: 0, offset: 0, is_big: None, next: None }
    }

    /// Reads the next event; `None` at the end.
    #[inline]
    fn advance(&mut self) -> Result<(), ReadError> {
        self.next = None;
        if self.end - self.start < EVENT_BYTES && self.have(EVENT_BYTES)? == 0 {
            return Ok(());
        }
        let Some((bytes, _)) = self.buffer[self.start..self.end].split_first_chunk::<EVENT_BYTES>() else {
            return Err(self.cut());
        };
        let is_big = match self.is_big {
            Some(is_big) if has_magic(bytes, is_big) => is_big,
            _ => byte_order(bytes, self.is_big).map_err(|c| c.at(FilePosition::Byte(self.offset)))?,
        };
        self.is_big = Some(is_big);
        let (mut event, data_bytes) = if is_big { decode::<true>(bytes) } else { decode::<false>(bytes) };
        event.position = self.offset;
        let whole = EVENT_BYTES + usize::from(data_bytes);
        if self.end - self.start < whole && self.have(whole)? < whole {
            return Err(self.cut());
        }
        self.start += whole;
        self.offset += whole as u64;
        self.next = Some(event);
        Ok(())
    }

    /// Reads until `bytes` are buffered, or to the end. Returns the number of buffered bytes.
    #[cold]
    fn have(&mut self, bytes: usize) -> Result<usize, ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= std::mem::take(&mut self.start);
        while self.end < bytes {
            let read =
                read_some(&mut self.reader, &mut self.buffer[self.end..]).map_err(|e| ReadError::Io(0, e))?;
            if read == 0 {
                break;
            }
            self.end += read;
        }
        Ok(self.end)
    }

    #[cold]
    fn cut(&self) -> ReadError {
        let left = self.end - self.start;
        let what = format!("the file is truncated: it ends after {left} bytes of an event");
        ParseError::new(what)
            .help("copy the file again, or remove the incomplete event: truncate -s BYTE FILE")
            .at(FilePosition::Byte(self.offset))
    }
}

#[inline]
fn has_magic(bytes: &[u8; EVENT_BYTES], is_big: bool) -> bool {
    let magic = [bytes[0], bytes[1], bytes[2], bytes[3]];
    let magic = if is_big { u32::from_be_bytes(magic) } else { u32::from_le_bytes(magic) };
    magic == MAGIC | VERSION
}

/// Detects the byte order of the first event, and explains an unexpected magic number.
#[cold]
fn byte_order(bytes: &[u8; EVENT_BYTES], so_far: Option<bool>) -> Result<bool, ParseError> {
    let fitting = [false, true].into_iter().find(|is_big| has_magic(bytes, *is_big));
    if let Some(is_big) = fitting.filter(|_| so_far.is_none()) {
        return Ok(is_big);
    }
    let start = &bytes[..4];
    let [a, b, c, d] = [start[0], start[1], start[2], start[3]];
    let version = match [a, b, c, d] {
        [version, 0x74, 0x61, 0x65] | [0x65, 0x61, 0x74, version] => Some(version),
        _ => None,
    };
    Err(match version {
        Some(version) if u32::from(version) != VERSION => {
            ParseError::new(format!("event version {version} is not supported, only {VERSION}"))
        }
        Some(_) => ParseError::new("the byte order changes")
            .help("if the file joins those of two machines, read them one by one"),
        None => {
            let what = format!("{:02x?} is not the magic number of an event", start);
            ParseError::new(what).help("the file is damaged at or before this position")
        }
    })
}

#[inline]
fn decode<const BIG: bool>(bytes: &[u8; EVENT_BYTES]) -> (Event, u16) {
    let four = |at: usize| {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if BIG { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    let eight = |at: usize| {
        let (low, high) = if BIG { (four(at + 4), four(at)) } else { (four(at), four(at + 4)) };
        u64::from(high) << 32 | u64::from(low)
    };
    let event = Event {
        time: eight(8),
        sector: eight(16),
        bytes: four(24),
        action: four(28),
        device: four(36),
        position: 0,
    };
    let data = [bytes[46], bytes[47]];
    (event, if BIG { u16::from_be_bytes(data) } else { u16::from_le_bytes(data) })
}

/// Operation and flags of an event; `None` if it is not a storage access.
#[inline]
fn kind(category: u32, bytes: u32) -> Option<(Operation, Flags)> {
    if category & COMMAND != 0 {
        return None;
    }
    let mut flags = Flags::NONE;
    for (bit, flag) in [(SYNC, Flags::SYNC), (FUA, Flags::FUA), (AHEAD, Flags::AHEAD), (META, Flags::META)] {
        if category & bit != 0 {
            flags = flags.with(flag);
        }
    }
    let is_flush = category & FLUSH != 0;
    if is_flush && bytes == 0 {
        return Some((Operation::Flush, flags));
    }
    if is_flush {
        flags = flags.with(Flags::PREFLUSH);
    }
    let operation = match category {
        _ if category & DISCARD != 0 => Operation::Discard,
        _ if category & WRITE != 0 => Operation::Write,
        _ => Operation::Read,
    };
    Some((operation, flags))
}

/// Major and minor number, as blkparse prints them (the kernel's `MAJOR` and `MINOR`).
#[cold]
fn device_name(device: u32) -> String {
    format!("{},{}", device >> 20, device & 0xf_ffff)
}

/// Whether a file begins with an event.
pub(super) fn begins(head: &[u8]) -> bool {
    matches!(head, [_, 0x74, 0x61, 0x65, ..] | [0x65, 0x61, 0x74, _, ..])
}

#[cfg(test)]
#[path = "blktrace_tests.rs"]
mod tests;
