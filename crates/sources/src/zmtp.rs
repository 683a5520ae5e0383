//! ZMTP 3, the wire protocol of ZeroMQ, as a PULL socket without security (<https://rfc.zeromq.org/spec/23/>
//! and <https://rfc.zeromq.org/spec/37/>).
//!
//! Invariant: a frame's length is checked before memory is allocated for it.
use keepup_stream::zmtp::{
    FLAG_COMMAND, FLAG_LONG, FLAG_MORE, GREETING_BYTES, HEADER_BYTES_MAX, command, greeting, ready,
};

use crate::error::DetectorError;
use crate::staging::Staging;

/// Most frames of a message.
const PARTS_MAX: usize = 16;
/// Longest command.
const COMMAND_BYTES_MAX: u64 = 4096;

/// Kind of the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Greeting,
    /// The peer's READY command.
    Ready,
    Header,
    /// The rest of a frame.
    Body {
        has_more: bool,
    },
    /// A command of this length.
    Command {
        bytes: usize,
    },
    /// A whole message is in memory.
    Message,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its frames, one behind the other.
    pub bytes: &'a [u8],
    /// Ends of the frames in `bytes`.
    pub ends: &'a [usize],
}

/// State of a PULL socket's connection.
#[derive(Debug)]
pub struct Zmtp {
    expect: Expect,
    has_peer: bool,
    bytes_max: usize,
    /// Its messages are frames, one behind the other.
    staging: Staging,
    /// Ends of the complete frames of the message.
    ends: Vec<usize>,
    outgoing: Vec<u8>,
}

impl Zmtp {
    /// A connection that has just been made, for messages of at most `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            expect: Expect::Greeting,
            has_peer: false,
            bytes_max,
            staging: Staging::new(0),
            ends: Vec::new(),
            outgoing: greeting().into(),
        }
    }

    /// Starts again on a new connection.
    pub fn reconnect(&mut self) {
        (self.expect, self.has_peer) = (Expect::Greeting, false);
        self.staging.reset();
        self.ends.clear();
        self.outgoing = greeting().into();
    }

    /// Memory for the next bytes of the connection.
    pub fn space(&mut self) -> &mut [u8] {
        self.staging.space()
    }

    /// Takes the first `bytes` of [`Zmtp::space`].
    pub fn received(&mut self, bytes: usize) {
        self.staging.received(bytes);
    }

    /// Bytes to send to the peer.
    pub fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// At least this many more bytes are needed for the next message, at least 1.
    pub fn bytes_due(&self) -> usize {
        match self.expect {
            Expect::Command { bytes } => bytes.saturating_sub(self.staging.staged().len()).max(1),
            _ => self.staging.bytes_due(),
        }
    }

    /// Whether the peer has sent its READY command, so that its socket sends to this one.
    pub fn is_ready(&self) -> bool {
        self.has_peer
    }

    /// Whether a message has arrived in part.
    pub fn is_within_message(&self) -> bool {
        let is_between =
            self.expect == Expect::Header && self.ends.is_empty() && self.staging.staged().is_empty();
        !is_between && self.expect != Expect::Message
    }

    /// Whether a part of a message has arrived that is not a part of the handshake or of a command.
    pub fn has_part(&self) -> bool {
        match self.expect {
            Expect::Header => !self.ends.is_empty() || !self.staging.staged().is_empty(),
            Expect::Body { .. } => true,
            Expect::Greeting | Expect::Ready | Expect::Command { .. } | Expect::Message => false,
        }
    }

    /// The next message, once all of it has arrived. It is the same one until [`Zmtp::take`].
    ///
    /// # Errors
    /// The peer has broken the protocol, or a message is too long.
    pub fn message(&mut self) -> Result<Option<Message<'_>>, DetectorError> {
        while self.expect != Expect::Message {
            let is_done = match self.expect {
                Expect::Greeting => self.greeting()?,
                Expect::Ready | Expect::Header => self.header()?,
                Expect::Body { has_more } => self.body(has_more),
                Expect::Command { bytes } => self.command(bytes)?,
                Expect::Message => true,
            };
            if !is_done {
                return Ok(None);
            }
        }
        Ok(Some(self.whole()))
    }

    /// The current message.
    pub fn whole(&self) -> Message<'_> {
        Message { bytes: self.bytes(), ends: &self.ends }
    }

    /// Overwrites bytes of the current message from `at` on.
    pub fn overwrite(&mut self, at: usize, with: &[u8]) {
        if let Some(to) = self.staging.bytes_mut().get_mut(at..).and_then(|to| to.get_mut(..with.len())) {
            to.copy_from_slice(with);
        }
    }

    /// The bytes of the current message.
    pub fn bytes(&self) -> &[u8] {
        self.staging.bytes()
    }

    /// Moves the bytes of the current message out; the message is empty from then on.
    pub fn detach(&mut self) -> Vec<u8> {
        self.ends.clear();
        self.staging.detach()
    }

    /// Takes the message.
    pub fn take(&mut self) {
        if self.expect == Expect::Message {
            self.expect = Expect::Header;
            self.staging.clear();
            self.ends.clear();
        }
    }

    /// Reads the peer's greeting and answers it; false if more bytes are needed.
    fn greeting(&mut self) -> Result<bool, DetectorError> {
        let found = self.staging.staged();
        let is_signature = |at: usize, byte: u8| found.get(at).is_none_or(|found| *found == byte);
        if !is_signature(0, 0xFF) || !is_signature(9, 0x7F) {
            return broken("the peer did not send a ZeroMQ greeting");
        }
        if let Some(major) = found.get(10).filter(|major| **major < 3) {
            return broken(format!("the peer speaks version {major} of ZMTP; version 3 is required"));
        }
        let Some(greeting) = found.get(..GREETING_BYTES) else { return Ok(false) };
        let mechanism = greeting[12..32].split(|byte| *byte == 0).next().unwrap_or_default();
        if mechanism != b"NULL" {
            let name = String::from_utf8_lossy(mechanism);
            return broken(format!("the peer requires security mechanism {name:?}, only NULL is supported"));
        }
        self.staging.skip(GREETING_BYTES);
        self.expect = Expect::Ready;
        self.outgoing.extend_from_slice(&ready("PULL"));
        Ok(true)
    }

    /// Reads a frame's header.
    fn header(&mut self) -> Result<bool, DetectorError> {
        let found = self.staging.staged();
        let Some(&flags) = found.first() else { return Ok(false) };
        if flags & !(FLAG_MORE | FLAG_LONG | FLAG_COMMAND) != 0 {
            return broken(format!("a frame has the flags {flags:#04x}"));
        }
        let (header_bytes, length) = match flags & FLAG_LONG {
            0 => (2, found.get(1).map(|length| u64::from(*length))),
            _ => (
                HEADER_BYTES_MAX,
                found.get(1..).and_then(|rest| rest.first_chunk()).map(|b| u64::from_be_bytes(*b)),
            ),
        };
        let Some(length) = length else { return Ok(false) };
        let is_command = flags & FLAG_COMMAND != 0;
        if self.expect == Expect::Ready && !is_command {
            return broken("the peer sends a message before it is ready");
        }
        if is_command && length > COMMAND_BYTES_MAX {
            return broken(format!("a command has {length} bytes"));
        }
        let before = if is_command { 0 } else { self.staging.len() };
        let bytes_max = self.bytes_max;
        let left = usize::try_from(length).ok().filter(|length| *length <= bytes_max.saturating_sub(before));
        let Some(left) = left else {
            return Err(DetectorError::TooLong { bytes: length.saturating_add(before as u64), bytes_max });
        };
        if !is_command && self.ends.len() == PARTS_MAX {
            return broken(format!("a message has more than {PARTS_MAX} frames"));
        }
        self.staging.skip(header_bytes);
        if is_command {
            self.expect = Expect::Command { bytes: left };
        } else {
            self.staging.begin_body(left);
            self.expect = Expect::Body { has_more: flags & FLAG_MORE != 0 };
        }
        Ok(true)
    }

    /// Takes what has arrived of a frame; false if more bytes are needed.
    fn body(&mut self, has_more: bool) -> bool {
        if !self.staging.fill() {
            return false;
        }
        self.ends.push(self.staging.len());
        self.expect = if has_more { Expect::Header } else { Expect::Message };
        true
    }

    /// Reads a command; false if more bytes are needed.
    fn command(&mut self, bytes: usize) -> Result<bool, DetectorError> {
        let Some(found) = self.staging.staged().get(..bytes) else { return Ok(false) };
        let found = found.to_vec();
        self.staging.skip(bytes);
        self.expect = Expect::Header;
        self.handle(&found).map(|()| true)
    }

    fn handle(&mut self, received: &[u8]) -> Result<(), DetectorError> {
        let (name, rest) = name_and_rest(received).unwrap_or_default();
        match name {
            b"READY" => {
                check_socket_type(rest)?;
                self.has_peer = true;
                Ok(())
            }
            b"ERROR" => {
                let reason =
                    name_and_rest(rest).map(|(reason, _)| String::from_utf8_lossy(reason).into_owned());
                broken(format!("the peer rejected the connection: {:?}", reason.unwrap_or_default()))
            }
            b"PING" => {
                // A PING has a 2-byte TTL and a context; the PONG returns the context.
                let context = rest.get(2..).unwrap_or_default();
                self.outgoing.extend_from_slice(&command(b"PONG", &context[..context.len().min(16)]));
                Ok(())
            }
            // Others are for sockets of other types.
            _ => Ok(()),
        }
    }
}

fn broken<T>(what: impl Into<String>) -> Result<T, DetectorError> {
    Err(DetectorError::Zmtp(what.into()))
}

/// A name with a byte of length in front, and what follows it.
fn name_and_rest(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Checks that the peer's socket sends to a PULL socket.
fn check_socket_type(mut properties: &[u8]) -> Result<(), DetectorError> {
    while let Some((name, rest)) = name_and_rest(properties) {
        let value = rest.split_first_chunk::<4>().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
        });
        let Some((value, rest)) = value else { return broken("a READY property is truncated") };
        if name.eq_ignore_ascii_case(b"Socket-Type") && value != b"PUSH" {
            let kind = String::from_utf8_lossy(value);
            return broken(format!("the peer is a {kind:?} socket, not PUSH"));
        }
        properties = rest;
    }
    Ok(())
}

#[cfg(test)]
#[path = "zmtp_tests.rs"]
mod tests;
