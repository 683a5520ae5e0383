//! Messages of a pvAccess connection, which may arrive in segments.
//!
//! Invariant: the length of a message, with all its segments, is checked before memory is allocated for it.
use keepup_stream::pvaccess::{
    FLAG_CONTROL, FLAG_LAST, FLAG_SEGMENTS, FLAG_SERVER, HEADER_BYTES, Head, Malformed, Output,
    SET_BYTE_ORDER,
};

use crate::error::DetectorError;
use crate::staging::Staging;

/// Unused bytes in front of a message; a header of a compressed image may extend into them.
pub(super) const HEADROOM: usize = 16;

/// Kind of the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Header,
    /// The rest of a segment, or of a message without segments.
    Body {
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
    /// Its messages follow [`HEADROOM`] bytes.
    staging: Staging,
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
            staging: Staging::new(HEADROOM),
            command: 0,
            is_big_endian: false,
            is_segmented: false,
            sends_big_endian: false,
        }
    }

    /// Starts again on a new connection.
    pub(super) fn reconnect(&mut self) {
        self.expect = Expect::Header;
        self.staging.reset();
        (self.is_segmented, self.sends_big_endian) = (false, false);
    }

    /// Memory for the next bytes of the connection.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.staging.space()
    }

    /// Takes the first `bytes` of [`Frames::space`].
    pub(super) fn received(&mut self, bytes: usize) {
        self.staging.received(bytes);
    }

    /// At least this many more bytes are needed for the next message, at least 1.
    pub(super) fn bytes_due(&self) -> usize {
        self.staging.bytes_due()
    }

    /// Whether a message has arrived in part.
    pub(super) fn is_within_message(&self) -> bool {
        let is_between =
            self.expect == Expect::Header && !self.is_segmented && self.staging.staged().is_empty();
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
                Expect::Body { is_last } => self.body(is_last),
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
        self.staging.bytes()
    }

    /// The same, to change it in place.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.staging.bytes_mut()
    }

    /// Moves the bytes of the message out, with the [`HEADROOM`].
    pub(super) fn detach(&mut self) -> Vec<u8> {
        self.staging.detach()
    }

    /// Whether a part of a message has arrived.
    pub(super) fn has_part(&self) -> bool {
        self.is_segmented || matches!(self.expect, Expect::Body { .. }) || !self.staging.staged().is_empty()
    }

    /// Takes the message.
    pub(super) fn take(&mut self) {
        if self.expect == Expect::Message {
            self.expect = Expect::Header;
            self.staging.clear();
        }
    }

    /// Reads a header; false if more bytes are needed.
    fn header(&mut self) -> Result<bool, DetectorError> {
        let head =
            Head::read(self.staging.staged()).map_err(|Malformed(why)| DetectorError::PvAccess(why))?;
        let Some(head) = head else { return Ok(false) };
        let Head { flags, command, length } = head;
        if flags & FLAG_SERVER == 0 {
            return broken("the peer is a pvAccess client, not a server");
        }
        self.staging.skip(HEADER_BYTES);
        if flags & FLAG_CONTROL != 0 {
            if command == SET_BYTE_ORDER {
                self.sends_big_endian = head.is_big_endian();
            }
            return Ok(true);
        }
        let segment = flags & FLAG_SEGMENTS;
        let continues = segment & FLAG_LAST != 0;
        if continues != self.is_segmented || (continues && command != self.command) {
            return broken(format!("a message has the flags {flags:#04x} out of turn"));
        }
        let before = self.staging.len();
        let bytes_max = self.bytes_max;
        let fits = |length: &usize| *length <= bytes_max.saturating_sub(before);
        let Some(left) = usize::try_from(length).ok().filter(fits) else {
            let bytes = u64::from(length).saturating_add(before as u64);
            return Err(DetectorError::TooLong { bytes, bytes_max });
        };
        let is_last = segment == 0 || segment == FLAG_LAST;
        (self.command, self.is_big_endian, self.is_segmented) = (command, head.is_big_endian(), !is_last);
        self.staging.begin_body(left);
        self.expect = Expect::Body { is_last };
        Ok(true)
    }

    /// Takes what has arrived of a body; false if more bytes are needed.
    fn body(&mut self, is_last: bool) -> bool {
        let is_whole = self.staging.fill();
        if is_whole {
            self.expect = if is_last { Expect::Message } else { Expect::Header };
        }
        is_whole
    }

    /// Appends a message to the server with this command to `out`. `put` appends its body.
    pub(super) fn put(&self, out: &mut Vec<u8>, command: u8, put: impl FnOnce(&mut Output<'_>)) {
        Output::new(out, self.sends_big_endian).message(0, command, put);
    }
}

fn broken<T>(what: impl Into<String>) -> Result<T, DetectorError> {
    Err(DetectorError::PvAccess(what.into()))
}
