//! The native wire protocol, version 1: fixed 64-byte headers, JSON control frames, raw event payloads.
//!
//! `docs/wire-protocol.md` is the specification for detector software; these modules are the only
//! implementation, used by the recorder, the simulated source and drains. Invariant: no I/O, and
//! no length is trusted before it is checked against a limit.

mod header;
mod index;
mod locate;
mod message;
mod missing;
mod session;

use std::borrow::Cow;
use std::collections::BTreeSet;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_results::printable::is_printable;

pub use header::{FrameKind, HEADER_BYTES, Header, MAGIC, VERSION};
pub(crate) use index::StreamIndex;
pub use locate::{Locate, Located, LocatedStream};
pub use message::{
    Ack, Bye, ByeStream, Compression, Continued, ControlMessage, ElementType, End, EndStream, ErrorReply,
    Hello, METADATA_BYTES_MAX, METADATA_MAX, SentRecording, StreamInfo, Welcome, WelcomeStream,
};
pub use missing::{MISSING_GAPS_MAX, Missing};
pub use session::{Control, EventHead, Limits, Next, Session};

/// Largest payload of a control frame, in bytes: holds the table of 65535 streams with typical
/// names.
pub const MAX_CONTROL_BYTES: u64 = 8 << 20;
/// Largest number of streams on one connection.
pub const MAX_STREAMS: usize = 65_535;
/// One above the largest stream id: ids become 16-bit channel ids in the recording.
pub const STREAM_ID_END: u32 = 65_536;
/// One above the largest sequence number: the sum of a sequence number and a count never
/// overflows.
pub const SEQUENCE_END: u64 = 1 << 63;
/// One above the largest count in an end message.
pub const COUNT_END: u64 = 1 << 63;

/// Refusal of bytes from a peer, or of a message to be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The first bytes are not a keepup frame; `looks_like` names a likely protocol.
    #[error("cannot read a frame header: not a keepup client: {looks_like}")]
    NotKeepup {
        /// Likely protocol.
        looks_like: &'static str,
    },
    /// The peer speaks another version of the protocol.
    #[error(
        "cannot read a frame header: the peer speaks protocol version {found}, this keepup speaks version \
         {VERSION}"
    )]
    Version {
        /// Version in the frame or in the hello.
        found: u32,
    },
    /// Header checksum mismatch.
    #[error(
        "cannot read a frame header: checksum is {computed:08x}, header says {stated:08x}: damaged header"
    )]
    HeaderChecksum {
        /// CRC-32 of bytes 0..60 as received.
        computed: u32,
        /// CRC-32 in bytes 60..64.
        stated: u32,
    },
    /// A header field has an invalid value.
    #[error("cannot read a frame header: {field} is {value}, allowed is {allowed}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// Allowed values.
        allowed: &'static str,
    },
    /// The sequence number of an event is too large.
    #[error("cannot read an event of stream {stream}: sequence {sequence} is not below 2^63")]
    Sequence {
        /// Stream id.
        stream: u32,
        /// Sequence number in the header.
        sequence: u64,
    },
    /// An event's length does not match its stream's shape.
    #[error(
        "cannot read event {sequence} of stream {stream}: it has {bytes} bytes, its shape says {expected}"
    )]
    Shape {
        /// Stream id.
        stream: u32,
        /// Sequence number in the header.
        sequence: u64,
        /// Payload length in the header, bytes.
        bytes: u64,
        /// Bytes of an event of that shape.
        expected: u64,
    },
    /// The protocol does not allow this frame now.
    #[error("cannot read a {kind} frame: {why}")]
    Unexpected {
        /// Kind of the frame.
        kind: FrameKind,
        /// Reason.
        why: &'static str,
    },
    /// A frame is longer than the receiver's limit.
    #[error("cannot read a {kind} frame: payload of {bytes} bytes, the limit is {bytes_max}")]
    TooLong {
        /// Kind of the frame.
        kind: FrameKind,
        /// Payload length in the header, bytes.
        bytes: u64,
        /// Limit, bytes.
        bytes_max: u64,
    },
    /// An event of a stream that hello did not declare.
    #[error("cannot read an event: stream {stream} was not declared in hello")]
    UnknownStream {
        /// Stream id in the header.
        stream: u32,
    },
    /// A control payload does not match the length or checksum in its header.
    #[error("cannot read the payload of a {kind} frame: {what}")]
    ControlPayload {
        /// Kind of the frame.
        kind: FrameKind,
        /// Mismatch.
        what: String,
    },
    /// A control payload is readable but invalid.
    #[error("cannot accept a {kind} message: {what}")]
    Invalid {
        /// Kind of the message.
        kind: FrameKind,
        /// Problem.
        what: Cause,
    },
}

impl Diagnostic for WireError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotKeepup { .. }
            | Self::Version { .. }
            | Self::HeaderChecksum { .. }
            | Self::Field { .. }
            | Self::Sequence { .. }
            | Self::Shape { .. }
            | Self::Unexpected { .. }
            | Self::TooLong { .. }
            | Self::UnknownStream { .. }
            | Self::ControlPayload { .. }
            | Self::Invalid { .. } => ErrorClass::Failed,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::NotKeepup { .. } => {
                "send frames as described in docs/wire-protocol.md, or try `keepup source`"
            }
            Self::Version { .. } => SAME_RELEASE,
            Self::Shape { .. } => {
                "declare the shape that events have, or an empty shape for events of different sizes"
            }
            Self::TooLong { .. } => {
                "the welcome message states the largest event (max_event_bytes); control frames end at 8 MiB"
            }
            Self::UnknownStream { .. } => "list every stream in the hello message before sending its events",
            Self::Invalid { what, .. } => return what.hint(),
            Self::HeaderChecksum { .. }
            | Self::Field { .. }
            | Self::Sequence { .. }
            | Self::Unexpected { .. }
            | Self::ControlPayload { .. } => return None,
        };
        Some(hint.into())
    }
}

/// Hint for peers of different protocol versions.
const SAME_RELEASE: &str = "use the same release of keepup on both ends";

/// Checks the version of the protocol that a client states.
fn check_protocol(theirs: u32) -> Result<(), Cause> {
    if theirs == u32::from(VERSION) {
        return Ok(());
    }
    let what = format!("the peer speaks protocol version {theirs}, this keepup speaks version {VERSION}");
    Err(Cause::new(what).with_hint(SAME_RELEASE))
}

/// Checks that a table lists each stream at most once, with a valid id.
fn check_ids(ids: impl Iterator<Item = u32>) -> Result<(), Cause> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if id >= STREAM_ID_END {
            return Err(format!("stream id {id} is above 65535").into());
        }
        if !seen.insert(id) {
            return Err(format!("stream id {id} is listed twice").into());
        }
    }
    Ok(())
}

/// CRC-32 ISO-HDLC (the checksum of zlib, Ethernet and MCAP) of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Longest name of a client or a stream, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Whether `text` is 1 to 256 bytes of visible characters. Names appear on terminals and in
/// reports, so control characters and characters that reorder or hide text are refused.
fn is_printable_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_printable)
}

/// The end of `text` as a name that a hello accepts: at most `bytes_max` bytes, with `_` for each character
/// that is not visible.
#[must_use]
pub fn printable_end(text: &str, bytes_max: usize) -> String {
    let clean: String = text.chars().map(|c| if is_printable(c) { c } else { '_' }).collect();
    let start = (clean.len().saturating_sub(bytes_max)..clean.len()).find(|&at| clean.is_char_boundary(at));
    clean[start.unwrap_or(clean.len())..].to_owned()
}
