//! Reading at offsets from files, past the page cache where the offsets mostly ascend.

use std::fs::File;
use std::io;

use keepup_measure::clock::{Clock, SystemClock};
use keepup_sys::file::Access;
use keepup_sys::read_ahead::ReadAhead;

/// Bytes before the position that can be read again.
const RETAINED_BYTES: usize = 16 << 10;
/// Largest gap that is read and skipped.
const SKIPPED_BYTES: u64 = 2 << 20;

/// A file that is read ahead. Offsets may go back a little, and further at the cost of a new start.
pub(crate) struct Sequential {
    reader: ReadAhead,
    file: (File, Access),
    /// First offset that is not read.
    end: u64,
    /// Offset of the reader's next byte; `None` before the first read and after an error.
    position: Option<u64>,
    /// The bytes before it.
    retained: Vec<u8>,
}

impl Sequential {
    /// Reads `file` up to the offset `end`.
    pub(crate) fn new(file: (File, Access), end: u64) -> io::Result<Sequential> {
        let reader = ReadAhead::new(|| SystemClock.now_ns()).map_err(io::Error::other)?;
        Ok(Sequential { reader, file, end, position: None, retained: Vec::new() })
    }

    /// Moves the end, because the file has grown.
    pub(crate) fn extend(&mut self, end: u64) -> io::Result<()> {
        self.end = self.end.max(end);
        match self.position {
            Some(_) => self.reader.extend(self.end).map_err(io::Error::other),
            None => Ok(()),
        }
    }

    /// Moves to `offset`, unless that is among the bytes retained.
    fn seek(&mut self, offset: u64) -> io::Result<u64> {
        if let Some(position) = self.position {
            let first = position - self.retained.len() as u64;
            if (first..=position).contains(&offset) {
                return Ok(position);
            }
            if offset > position && offset - position <= SKIPPED_BYTES {
                self.take((offset - position) as usize, None)?;
                return Ok(self.position.unwrap_or(offset));
            }
        }
        self.position = None;
        self.retained.clear();
        let file = (self.file.0.try_clone()?, self.file.1);
        self.reader.begin(file, offset, self.end).map_err(io::Error::other)?;
        self.position = Some(offset);
        Ok(offset)
    }

    /// Takes `count` bytes from the reader, to `buffer` if given; fewer at the end of the file.
    fn take(&mut self, count: usize, mut buffer: Option<&mut [u8]>) -> io::Result<usize> {
        let Some(begin) = self.position.take() else { return Ok(0) };
        let mut taken = 0;
        while taken < count {
            if self.reader.bytes().is_empty() && !self.reader.advance()? {
                break;
            }
            let found = self.reader.bytes();
            let length = found.len().min(count - taken);
            if let Some(buffer) = &mut buffer {
                buffer[taken..taken + length].copy_from_slice(&found[..length]);
            }
            let kept = length.min(RETAINED_BYTES);
            let surplus = (self.retained.len() + kept).saturating_sub(RETAINED_BYTES);
            self.retained.drain(..surplus.min(self.retained.len()));
            self.retained.extend_from_slice(&found[length - kept..length]);
            self.reader.consume(length);
            taken += length;
        }
        self.position = Some(begin + taken as u64);
        Ok(taken)
    }

    /// Reads at `offset` until `buffer` is full or the file ends; returns the bytes read.
    pub(crate) fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let position = self.seek(offset)?;
        if position < offset {
            // The file ended in the gap.
            return Ok(0);
        }
        let back = (position - offset) as usize;
        let again = back.min(buffer.len());
        let from = self.retained.len() - back;
        buffer[..again].copy_from_slice(&self.retained[from..from + again]);
        let rest = &mut buffer[again..];
        let count = rest.len();
        Ok(again + self.take(count, Some(rest))?)
    }
}

#[cfg(test)]
#[path = "sequential_tests.rs"]
mod tests;
