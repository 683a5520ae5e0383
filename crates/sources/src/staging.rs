//! Memory for messages of a connection: headers and short bodies pass through a staging buffer, long bodies
//! are received directly into the message.
//!
//! Invariants: memory grows only as data arrives; the caller checks a length before it calls
//! [`Staging::begin_body`].
use std::ops::Range;

/// Size of the staging buffer.
const STAGING_BYTES: usize = 64 << 10;
/// A body of at least this many missing bytes is received directly into the message.
const DIRECT_BYTES: usize = 8 << 10;
/// Most memory that grows at once.
const GROWTH_BYTES: usize = 8 << 20;

/// What has arrived of a connection and was not taken.
#[derive(Debug)]
pub(crate) struct Staging {
    staging: Box<[u8]>,
    /// Received and not decoded, in `staging`.
    staged: Range<usize>,
    /// Unused bytes, then the current message. Longer than what is used: it is not cleared between messages.
    message: Vec<u8>,
    headroom: usize,
    filled: usize,
    /// Missing bytes of the current body.
    left: usize,
}

impl Staging {
    /// Memory for a new connection, with `headroom` unused bytes in front of each message.
    pub(crate) fn new(headroom: usize) -> Self {
        let (staging, message) = (vec![0; STAGING_BYTES].into(), vec![0; headroom]);
        Self { staging, staged: 0..0, message, headroom, filled: headroom, left: 0 }
    }

    /// Starts again on a new connection.
    pub(crate) fn reset(&mut self) {
        (self.staged, self.filled, self.left) = (0..0, self.headroom, 0);
    }

    fn is_direct(&self) -> bool {
        self.left >= DIRECT_BYTES && self.staged.is_empty()
    }

    /// Memory for the next bytes of the connection.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.is_direct() {
            let end = self.filled + self.left.min(GROWTH_BYTES);
            self.grow(end);
            return &mut self.message[self.filled..end];
        }
        if self.staged.start > 0 {
            self.staging.copy_within(self.staged.clone(), 0);
            self.staged = 0..self.staged.len();
        }
        &mut self.staging[self.staged.end..]
    }

    /// Takes the first `bytes` of [`Staging::space`].
    pub(crate) fn received(&mut self, bytes: usize) {
        if self.is_direct() {
            let count = bytes.min(self.left);
            (self.filled, self.left) = (self.filled + count, self.left - count);
        } else {
            self.staged.end = (self.staged.end + bytes).min(STAGING_BYTES);
        }
    }

    /// At least this many more bytes are needed for the rest of the body; at least 1.
    pub(crate) fn bytes_due(&self) -> usize {
        self.left.saturating_sub(self.staged.len()).max(1)
    }

    /// What has arrived behind everything that was taken.
    pub(crate) fn staged(&self) -> &[u8] {
        &self.staging[self.staged.clone()]
    }

    /// Takes the first `bytes` of [`Staging::staged`].
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.staged.start = (self.staged.start + bytes).min(self.staged.end);
    }

    /// The next `bytes` of the connection are a part of the message.
    pub(crate) fn begin_body(&mut self, bytes: usize) {
        self.left = bytes;
    }

    /// Moves what has arrived of the body to the message; whether the body is complete.
    pub(crate) fn fill(&mut self) -> bool {
        let count = self.left.min(self.staged.len());
        let end = self.filled + count;
        self.grow(end);
        let from = self.staged.start;
        self.message[self.filled..end].copy_from_slice(&self.staging[from..from + count]);
        (self.staged.start, self.filled, self.left) = (from + count, end, self.left - count);
        self.left == 0
    }

    fn grow(&mut self, end: usize) {
        if self.message.len() < end {
            self.message.resize(end, 0);
        }
    }

    /// Length of the message so far.
    pub(crate) fn len(&self) -> usize {
        self.filled - self.headroom
    }

    /// The headroom, then the message.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.message[..self.filled]
    }

    /// The same, to change it in place.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.message[..self.filled]
    }

    /// Moves the headroom and the message out; the message is empty from then on, and its memory is given up.
    pub(crate) fn detach(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::replace(&mut self.message, vec![0; self.headroom]);
        bytes.truncate(self.filled);
        self.clear();
        bytes
    }

    /// Memory for messages, bytes.
    #[cfg(test)]
    pub(crate) fn message_memory(&self) -> usize {
        self.message.len()
    }

    /// Removes the message.
    pub(crate) fn clear(&mut self) {
        self.filled = self.headroom;
    }
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod tests;
