//! Messages of a pvAccess connection
//! (<https://docs.epics-controls.org/en/latest/pv-access/Protocol-Messages.html>).
//!
//! Invariants: the length of a message, with all its segments, is checked before memory is allocated for it;
//! memory grows only as data arrives; a long body is received directly into the message, without staging.
use std::ops::Range;

use crate::error::DetectorError;

/// Length of a message header.
const HEADER_BYTES: usize = 8;
/// Size of the buffer for headers and short bodies.
const STAGING_BYTES: usize = 64 << 10;
/// A body of at least this many missing bytes is received directly into the message.
const DIRECT_BYTES: usize = 8 << 10;
/// Most memory that grows at once.
const GROWTH_BYTES: usize = 8 << 20;
/// Unused bytes in front of a message; a header of a compressed image may extend into them.
pub(super) const HEADROOM: usize = 16;

const MAGIC: u8 = 0xCA;
const FLAG_CONTROL: u8 = 0x01;
const FLAG_LAST: u8 = 0x20;
const FLAG_SEGMENTS: u8 = 0x30;
const FLAG_SERVER: u8 = 0x40;
const FLAG_BIG_ENDIAN: u8 = 0x80;
/// Control message with the byte order that the server expects.
const SET_BYTE_ORDER: u8 = 2;
/// Version of the protocol in our headers.
const VERSION: u8 = 2;

/// Kind of the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Header,
    /// The rest of a segment, or of a message without segments.
    Body {
        left: usize,
        is_last: bool,
    },
    /// A whole message is in memory.
    Message,
}

/// State of a connection's framing.
#[derive(Debug)]
pub(super) struct Frames {
    expect: Expect,
    bytes_max: usize,
    staging: Box<[u8]>,
    /// Received and not decoded, in `staging`.
    staged: Range<usize>,
    /// [`HEADROOM`], then the current message. Longer than what is used: it is not cleared between messages.
    message: Vec<u8>,
    filled: usize,
    command: u8,
    is_big_endian: bool,
    /// Whether further segments of the message follow.
    is_segmented: bool,
    /// Byte order of what is sent to the server.
    sends_big_endian: bool,
}

impl Frames {
    /// Framing of a new connection, for messages of at most `bytes_max`.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            expect: Expect::Header,
            bytes_max,
            staging: vec![0; STAGING_BYTES].into(),
            staged: 0..0,
            message: vec![0; HEADROOM],
            filled: HEADROOM,
            command: 0,
            is_big_endian: false,
            is_segmented: false,
            sends_big_endian: false,
        }
    }

    /// Starts again on a new connection.
    pub(super) fn reconnect(&mut self) {
        (self.expect, self.staged, self.filled) = (Expect::Header, 0..0, HEADROOM);
        (self.is_segmented, self.sends_big_endian) = (false, false);
    }

    fn is_direct(&self) -> bool {
        matches!(self.expect, Expect::Body { left, .. } if left >= DIRECT_BYTES) && self.staged.is_empty()
    }

    /// Memory for the next bytes of the connection.
    pub(super) fn space(&mut self) -> &mut [u8] {
        match self.expect {
            Expect::Body { left, .. } if self.is_direct() => {
                let end = self.filled + left.min(GROWTH_BYTES);
                if self.message.len() < end {
                    self.message.resize(end, 0);
                }
                &mut self.message[self.filled..end]
            }
            _ => {
                if self.staged.start > 0 {
                    self.staging.copy_within(self.staged.clone(), 0);
                    self.staged = 0..self.staged.len();
                }
                &mut self.staging[self.staged.end..]
            }
        }
    }

    /// Takes the first `bytes` of [`Frames::space`].
    pub(super) fn received(&mut self, bytes: usize) {
        let is_direct = self.is_direct();
        match &mut self.expect {
            Expect::Body { left, .. } if is_direct => {
                self.filled += bytes.min(*left);
                *left -= bytes.min(*left);
            }
            _ => self.staged.end = (self.staged.end + bytes).min(STAGING_BYTES),
        }
    }

    /// At least this many more bytes are needed for the next message, at least 1.
    pub(super) fn bytes_due(&self) -> usize {
        match self.expect {
            Expect::Body { left, .. } => left.saturating_sub(self.staged.len()).max(1),
            Expect::Header | Expect::Message => 1,
        }
    }

    /// Whether a message has arrived in part.
    pub(super) fn is_within_message(&self) -> bool {
        let is_between = self.expect == Expect::Header && !self.is_segmented && self.staged.is_empty();
        !is_between && self.expect != Expect::Message
    }

    /// Whether a whole message has arrived. It stays the same one until [`Frames::take`].
    ///
    /// # Errors
    /// The peer has broken the protocol, or a message is too long.
    pub(super) fn has_message(&mut self) -> Result<bool, DetectorError> {
        loop {
            let is_done = match self.expect {
                Expect::Header => self.header()?,
                Expect::Body { left, is_last } => self.body(left, is_last),
                Expect::Message => return Ok(true),
            };
            if !is_done {
                return Ok(false);
            }
        }
    }

    /// Command of the message, and whether its numbers are big-endian.
    pub(super) fn head(&self) -> (u8, bool) {
        (self.command, self.is_big_endian)
    }

    /// [`HEADROOM`], then the message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.message[..self.filled]
    }

    /// The same, to change it in place.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.message[..self.filled]
    }

    /// Takes the message.
    pub(super) fn take(&mut self) {
        if self.expect == Expect::Message {
            (self.expect, self.filled) = (Expect::Header, HEADROOM);
        }
    }

    /// Reads a header; false if more bytes are needed.
    fn header(&mut self) -> Result<bool, DetectorError> {
        let found = &self.staging[self.staged.clone()];
        if found.first().is_some_and(|magic| *magic != MAGIC) || found.get(1) == Some(&0) {
            return broken("the peer did not send a pvAccess header");
        }
        let Some(&[_, _, flags, command, a, b, c, d]) = found.first_chunk::<HEADER_BYTES>() else {
            return Ok(false);
        };
        if flags & FLAG_SERVER == 0 {
            return broken("the peer is a pvAccess client, not a server");
        }
        self.staged.start += HEADER_BYTES;
        let is_big_endian = flags & FLAG_BIG_ENDIAN != 0;
        if flags & FLAG_CONTROL != 0 {
            if command == SET_BYTE_ORDER {
                self.sends_big_endian = is_big_endian;
            }
            return Ok(true);
        }
        let length = [a, b, c, d];
        let length = if is_big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
        let segment = flags & FLAG_SEGMENTS;
        let continues = segment & FLAG_LAST != 0;
        if continues != self.is_segmented || (continues && command != self.command) {
            return broken(format!("a message has the flags {flags:#04x} out of turn"));
        }
        let before = self.filled - HEADROOM;
        let bytes_max = self.bytes_max;
        let fits = |length: &usize| *length <= bytes_max.saturating_sub(before);
        let Some(left) = usize::try_from(length).ok().filter(fits) else {
            let bytes = u64::from(length).saturating_add(before as u64);
            return Err(DetectorError::TooLong { bytes, bytes_max });
        };
        let is_last = segment == 0 || segment == FLAG_LAST;
        (self.command, self.is_big_endian, self.is_segmented) = (command, is_big_endian, !is_last);
        self.expect = Expect::Body { left, is_last };
        Ok(true)
    }

    /// Takes what has arrived of a body; false if more bytes are needed.
    fn body(&mut self, left: usize, is_last: bool) -> bool {
        let count = left.min(self.staged.len());
        let end = self.filled + count;
        if self.message.len() < end {
            self.message.resize(end, 0);
        }
        let from = self.staged.start;
        self.message[self.filled..end].copy_from_slice(&self.staging[from..from + count]);
        (self.staged.start, self.filled) = (from + count, end);
        if count < left {
            self.expect = Expect::Body { left: left - count, is_last };
            return false;
        }
        self.expect = if is_last { Expect::Message } else { Expect::Header };
        true
    }

    /// A message to the server with this command. `put` appends its body in the byte order of the server.
    pub(super) fn outgoing(&self, command: u8, put: impl FnOnce(&mut Output)) -> Vec<u8> {
        let is_big_endian = self.sends_big_endian;
        let flags = if is_big_endian { FLAG_BIG_ENDIAN } else { 0 };
        let mut out = Output { bytes: vec![MAGIC, VERSION, flags, command, 0, 0, 0, 0], is_big_endian };
        put(&mut out);
        let length = (out.bytes.len() - HEADER_BYTES) as u32;
        let length = if is_big_endian { length.to_be_bytes() } else { length.to_le_bytes() };
        out.bytes[4..HEADER_BYTES].copy_from_slice(&length);
        out.bytes
    }
}

/// A message to the server.
pub(super) struct Output {
    bytes: Vec<u8>,
    is_big_endian: bool,
}

impl Output {
    pub(super) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    pub(super) fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend_from_slice(&bytes);
        self
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend_from_slice(&bytes);
        self
    }

    /// A text with its length in front.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        match u8::try_from(text.len()) {
            Ok(length) if length < 254 => self.u8(length),
            _ => self.u8(254).u32(text.len() as u32),
        };
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }
}

fn broken<T>(what: impl Into<String>) -> Result<T, DetectorError> {
    Err(DetectorError::PvAccess(what.into()))
}
