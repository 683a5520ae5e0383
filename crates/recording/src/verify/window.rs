//! Sliding window over a file, sized for the processor's second-level cache.

use std::fs::File;
use std::io;

use crate::files::read_fully_at;

/// Bytes per read: small enough to be in the cache for the checksum, large enough that the cost
/// of the calls is negligible. Measured with `verify_speed`: 128 KiB to 1 MiB differ by less than
/// the noise.
const READ_BYTES: usize = 256 << 10;

/// Space for the rest of one read before the next: at most a block's pad.
const CARRY_BYTES: usize = 8 << 10;

/// Largest request to [`Window::fill`].
pub(super) const FILL_BYTES_MAX: usize = CARRY_BYTES;

/// The part of a file that is in memory. A window is reused for one file after the other.
pub(super) struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// File offset of the first byte in memory.
    offset: u64,
    /// File offset of the end of reading.
    limit: u64,
}

impl Window {
    pub(super) fn new() -> Window {
        Window { buffer: vec![0; READ_BYTES + CARRY_BYTES], start: 0, end: 0, offset: 0, limit: 0 }
    }

    /// Starts a file, to be read up to `limit`.
    pub(super) fn begin(&mut self, limit: u64) {
        (self.start, self.end, self.offset, self.limit) = (0, 0, 0, limit);
    }

    /// File offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// All bytes in memory, after reading more if they are fewer than `want` (at most
    /// [`FILL_BYTES_MAX`]). Fewer than `want` only at the end of the file or at the limit.
    pub(super) fn fill(&mut self, file: &File, want: usize) -> io::Result<&[u8]> {
        if self.end - self.start < want {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            let at = self.offset + self.end as u64;
            let space = (self.buffer.len() - self.end).min(READ_BYTES);
            let space = space.min(usize::try_from(self.limit.saturating_sub(at)).unwrap_or(space));
            self.end += read_fully_at(file, &mut self.buffer[self.end..self.end + space], at)?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Consumes `bytes` that are in memory.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }
}
