//! The native wire protocol, version 1: fixed 64-byte headers, JSON control frames, raw event payloads.
//!
//! `docs/wire-protocol.md` is the description for programmers of detectors; these modules are the one
//! implementation, used by the recorder, by the simulated source and by drains.
//! Invariant: nothing here does I/O or trusts a length before it was compared with a limit.

mod header;
mod index;
mod message;
mod session;

use keepup_results::printable::is_printable;

pub use header::{HEADER_BYTES, Header, Kind, MAGIC, VERSION};
pub(crate) use index::StreamIndex;
pub use message::{
    Ack, Bye, ByeStream, Compression, ControlMessage, ElementType, End, EndStream, ErrorReply, Hello,
    SentRecording, StreamInfo, Welcome, WelcomeStream,
};
pub use session::{Control, EventHead, Limits, Next, Session};

/// Largest payload of a control frame, in bytes: the table of 65535 streams with usual names fits.
pub const MAX_CONTROL_BYTES: u64 = 8 << 20;
/// Largest number of streams on one connection.
pub const MAX_STREAMS: usize = 65_535;
/// One more than the largest stream id: ids become 16-bit channel ids in the recording.
pub const STREAM_ID_END: u32 = 65_536;
/// One more than the largest sequence number: the sum of a sequence number and a count never overflows.
pub const SEQUENCE_END: u64 = 1 << 63;
/// One more than the largest count in an end message.
pub const COUNT_END: u64 = 1 << 63;

/// Why bytes from a peer, or a message that was to be sent, were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The first bytes are not a keepup frame; `looks_like` names what they seem to be.
    #[error(
        "reading a frame header: not a keepup client: {looks_like}\n\
         hint: send frames as described in docs/wire-protocol.md, or try `keepup source`"
    )]
    NotKeepup {
        /// What the bytes look like.
        looks_like: &'static str,
    },
    /// The peer speaks another version of the protocol.
    #[error(
        "reading a frame header: the peer speaks protocol version {found}, this keepup speaks version \
         {VERSION}\nhint: use the same release of keepup on both ends"
    )]
    Version {
        /// Version in the frame or in the hello.
        found: u32,
    },
    /// The header's own checksum does not fit.
    #[error("reading a frame header: checksum is {computed:08x}, header says {stated:08x}: damaged header")]
    HeaderChecksum {
        /// CRC-32 of bytes 0..60 as received.
        computed: u32,
        /// CRC-32 in bytes 60..64.
        stated: u32,
    },
    /// A header field holds a value that the protocol does not know.
    #[error("reading a frame header: {field} is {value}, allowed is {allowed}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What would be accepted.
        allowed: &'static str,
    },
    /// The sequence number of an event is too large.
    #[error("reading an event of stream {stream}: sequence {sequence} is not below 2^63")]
    Sequence {
        /// Stream id.
        stream: u32,
        /// Sequence number in the header.
        sequence: u64,
    },
    /// An event does not have the length that its stream's shape says.
    #[error(
        "reading event {sequence} of stream {stream}: it has {bytes} bytes, its shape says {expected}\n\
         hint: declare the shape that events have, or an empty shape for events of different sizes"
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
    /// A frame came at a time when the protocol does not allow it.
    #[error("reading a {kind} frame: {why}")]
    Unexpected {
        /// Kind of the frame.
        kind: Kind,
        /// Why it is not allowed now.
        why: &'static str,
    },
    /// A frame is longer than the receiver takes.
    #[error(
        "reading a {kind} frame: payload of {bytes} bytes, the limit is {bytes_max}\n\
         hint: the welcome message states the largest event (max_event_bytes); control frames end at 8 MiB"
    )]
    TooLong {
        /// Kind of the frame.
        kind: Kind,
        /// Payload length in the header, bytes.
        bytes: u64,
        /// Limit, bytes.
        bytes_max: u64,
    },
    /// An event of a stream that hello did not declare.
    #[error(
        "reading an event: stream {stream} was not declared in hello\n\
         hint: list every stream in the hello message before sending its events"
    )]
    UnknownStream {
        /// Stream id in the header.
        stream: u32,
    },
    /// A control payload does not have the length or checksum that its header states.
    #[error("reading the payload of a {kind} frame: {what}")]
    ControlPayload {
        /// Kind of the frame.
        kind: Kind,
        /// What does not fit.
        what: String,
    },
    /// A control payload is readable but says something impossible.
    #[error("checking a {kind} message: {what}")]
    Invalid {
        /// Kind of the message.
        kind: Kind,
        /// What is wrong.
        what: String,
    },
}

/// CRC-32 ISO-HDLC (the checksum of zlib, Ethernet and MCAP) of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Whether `text` is 1 to 256 bytes of visible characters: names are shown on terminals and in reports, so
/// control characters and characters that reorder or hide text are refused.
fn is_printable_name(text: &str) -> bool {
    (1..=256).contains(&text.len()) && text.chars().all(is_printable)
}
