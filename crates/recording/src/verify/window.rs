//! Sliding window over a file that is read ahead.

use std::fs::File;
use std::io;
use std::ops::Range;

use keepup_measure::clock::{Clock, SystemClock};
use keepup_sys::file::Access;
use keepup_sys::read_ahead::ReadAhead;

/// Largest request to [`Window::fill`].
pub(super) const FILL_BYTES_MAX: usize = 8 << 10;

/// The part of a file that is in memory. A window is reused for one file after the other, in one thread.
#[derive(Default)]
pub(super) struct Window {
    reader: Option<ReadAhead>,
    /// Copy of bytes on both sides of a boundary of two pieces, before those of the reader.
    carry: Vec<u8>,
    carried: Range<usize>,
    /// File offset of the next byte.
    offset: u64,
}

impl Window {
    /// Starts a file, to be read up to `limit`.
    pub(super) fn begin(&mut self, file: (File, Access), limit: u64) -> io::Result<()> {
        (self.carried, self.offset) = (0..0, 0);
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(ReadAhead::new(|| SystemClock.now_ns()).map_err(io::Error::other)?),
        };
        reader.begin(file, 0, limit).map_err(io::Error::other)
    }

    /// Share of the file's pieces for which the disk had to be waited for.
    pub(super) fn waited(&self) -> f64 {
        self.reader.as_ref().map_or(1.0, ReadAhead::waited)
    }

    /// File offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes in memory, after reading more if they are fewer than `want` (at most [`FILL_BYTES_MAX`]). Fewer
    /// than `want` only at the end of the file or at the limit.
    pub(super) fn fill(&mut self, want: usize) -> io::Result<&[u8]> {
        let Some(reader) = &mut self.reader else { return Ok(&[]) };
        if self.carried.is_empty() {
            if reader.bytes().is_empty() {
                reader.advance()?;
            }
            if reader.bytes().len() >= want {
                return Ok(reader.bytes());
            }
        }
        if self.carried.len() < want {
            self.carry.copy_within(self.carried.clone(), 0);
            self.carried = 0..self.carried.len();
            self.carry.resize(2 * FILL_BYTES_MAX, 0);
        }
        while self.carried.len() < want {
            if reader.bytes().is_empty() && !reader.advance()? {
                break;
            }
            let (found, end) = (reader.bytes(), self.carried.end);
            let taken = found.len().min(self.carry.len() - end);
            self.carry[end..end + taken].copy_from_slice(&found[..taken]);
            self.carried.end += taken;
            reader.consume(taken);
        }
        Ok(&self.carry[self.carried.clone()])
    }

    /// Consumes `bytes` that are in memory.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.offset += bytes as u64;
        match &mut self.reader {
            Some(reader) if self.carried.is_empty() => reader.consume(bytes),
            _ => self.carried.start += bytes,
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
