//! Control messages: JSON payloads of hello, end, welcome, bye and error frames, and the header-only ack.
//!
//! Invariant: a message from `ControlMessage::from_payload` has passed `check`.

use std::collections::{BTreeMap, BTreeSet};

use keepup_error::Cause;
use keepup_results::printable::{deserialize_line, one_line};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    COUNT_END, FrameKind, Header, MAX_CONTROL_BYTES, MAX_STREAMS, SEQUENCE_END, STREAM_ID_END, VERSION,
    WireError, check_ids, check_protocol, is_printable_name,
};

/// Longest resume identity, in bytes.
const RESUME_BYTES_MAX: usize = 128;
/// Longest name and identity of a recording in hello, in bytes.
const RECORDING_NAME_BYTES_MAX: usize = 200;
const RECORDING_ID_BYTES_MAX: usize = 64;
/// Most entries of metadata.
pub const METADATA_MAX: usize = 64;
/// Most bytes of an entry, key and value together.
pub const METADATA_BYTES_MAX: usize = 1024;

/// Type of one element of an event's array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are those of Rust's own types")]
pub enum ElementType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl ElementType {
    const ALL: [ElementType; 10] = [
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::I64,
        ElementType::F32,
        ElementType::F64,
    ];

    /// Name on the wire and in files: "u16".
    pub fn as_str(self) -> &'static str {
        match self {
            ElementType::U8 => "u8",
            ElementType::U16 => "u16",
            ElementType::U32 => "u32",
            ElementType::U64 => "u64",
            ElementType::I8 => "i8",
            ElementType::I16 => "i16",
            ElementType::I32 => "i32",
            ElementType::I64 => "i64",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
        }
    }

    /// Size of one element, bytes.
    pub fn bytes(self) -> u64 {
        match self {
            ElementType::U8 | ElementType::I8 => 1,
            ElementType::U16 | ElementType::I16 => 2,
            ElementType::U32 | ElementType::I32 | ElementType::F32 => 4,
            ElementType::U64 | ElementType::I64 | ElementType::F64 => 8,
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for ElementType {
    type Err = UnknownElement;

    fn from_str(text: &str) -> Result<ElementType, UnknownElement> {
        let found = ElementType::ALL.into_iter().find(|e| e.as_str() == text);
        found.ok_or_else(|| UnknownElement { text: text.to_owned() })
    }
}

/// Compression applied by the detector: format of each payload. The names are those of DECTRIS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// Bitshuffle, then LZ4, as HDF5's filter 32008 stores a chunk.
    #[serde(rename = "bslz4")]
    BitshuffleLz4,
    /// LZ4, as HDF5's filter 32004 stores a chunk.
    #[serde(rename = "lz4")]
    Lz4,
}

impl Compression {
    /// Name on the wire and in files: "bslz4".
    pub fn as_str(self) -> &'static str {
        match self {
            Compression::BitshuffleLz4 => "bslz4",
            Compression::Lz4 => "lz4",
        }
    }

    /// Compression with this name.
    pub fn parse(name: &str) -> Option<Compression> {
        [Compression::BitshuffleLz4, Compression::Lz4].into_iter().find(|c| c.as_str() == name)
    }
}

/// A text is not an element type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read element type {text:?}: it is not one of u8 u16 u32 u64 i8 i16 i32 i64 f32 f64")]
pub struct UnknownElement {
    text: String,
}

/// One stream, as declared in hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamInfo {
    /// Stream id, below 65536; it becomes the channel id in the recording.
    pub id: u32,
    /// Name, 1 to 256 bytes of visible characters.
    pub name: String,
    /// Type of the elements.
    pub element: ElementType,
    /// Elements of one event along each dimension, at most 8; empty: opaque bytes of variable size.
    pub shape: Vec<u64>,
    /// Compression of each event; element and shape then describe the uncompressed data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
}

impl StreamInfo {
    /// Bytes of one uncompressed event according to the shape; `None` when the shape is empty or
    /// the product overflows.
    pub fn event_bytes(&self) -> Option<u64> {
        if self.shape.is_empty() {
            return None;
        }
        self.shape.iter().try_fold(self.element.bytes(), |product, &n| product.checked_mul(n))
    }

    /// Whether it meets the limits of a hello.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    fn check(&self) -> Result<(), Cause> {
        if self.id >= STREAM_ID_END {
            let what = format!("stream id {} is above 65535", self.id);
            return Err(Cause::new(what).with_hint("stream ids from 0 to 65535"));
        }
        if !is_printable_name(&self.name) {
            let what = format!("the name of stream {} is not valid", self.id);
            return Err(Cause::new(what).with_hint("1 to 256 bytes of visible characters"));
        }
        Ok(self.check_shape()?)
    }

    /// Checks the shape.
    ///
    /// # Errors
    /// Too many dimensions, an empty dimension, a size that overflows, or compressed events
    /// without a shape.
    pub fn check_shape(&self) -> Result<(), String> {
        if self.shape.len() > 8 {
            return Err(format!("stream {}: shape has {} dimensions, at most 8", self.id, self.shape.len()));
        }
        if self.shape.contains(&0) || (!self.shape.is_empty() && self.event_bytes().is_none()) {
            return Err(format!("stream {}: shape {:?} is empty or overflows", self.id, self.shape));
        }
        if self.shape.is_empty() && self.compression.is_some() {
            return Err(format!("stream {}: compressed events need a shape", self.id));
        }
        Ok(())
    }
}

/// A control message: JSON in a frame of its own kind.
pub trait ControlMessage: Serialize + DeserializeOwned {
    /// Kind of its frame.
    const KIND: FrameKind;

    /// Checks ranges, counts and duplicates. The error describes the problem.
    fn check(&self) -> Result<(), Cause>;

    /// The whole frame, header and payload.
    ///
    /// # Errors
    /// The message is invalid or longer than [`MAX_CONTROL_BYTES`].
    fn to_frame(&self) -> Result<Vec<u8>, WireError> {
        self.check().map_err(|what| WireError::Invalid { kind: Self::KIND, what })?;
        let payload = serde_json::to_vec(self)
            .map_err(|e| WireError::Invalid { kind: Self::KIND, what: e.to_string().into() })?;
        let header = Header::control(Self::KIND, &payload);
        if header.length > MAX_CONTROL_BYTES {
            let (kind, bytes) = (Self::KIND, header.length);
            return Err(WireError::TooLong { kind, bytes, bytes_max: MAX_CONTROL_BYTES });
        }
        let mut frame = header.encode().to_vec();
        frame.extend_from_slice(&payload);
        Ok(frame)
    }

    /// Parses and checks a payload.
    ///
    /// # Errors
    /// Not the JSON of this message, or not valid.
    fn from_payload(payload: &[u8]) -> Result<Self, WireError> {
        let message: Self = serde_json::from_slice(payload)
            // Serde's error repeats names chosen by the peer.
            .map_err(|e| WireError::ControlPayload { kind: Self::KIND, what: one_line(&e.to_string()) })?;
        message.check().map_err(|what| WireError::Invalid { kind: Self::KIND, what })?;
        Ok(message)
    }
}

/// A drain's description of the recording that it sends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentRecording {
    /// Name of the recording; 1 to 200 bytes without control characters.
    pub name: String,
    /// Its identity; 1 to 64 bytes of visible characters.
    pub id: String,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Run number, where runs are numbered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Metadata: at most 64 entries, each with at most 1024 bytes of key and value together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl SentRecording {
    /// Whether it meets the limits of a hello.
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    fn check(&self) -> Result<(), Cause> {
        let is_text = |text: &str, bytes_max: usize| {
            (1..=bytes_max).contains(&text.len()) && !text.chars().any(char::is_control)
        };
        let is_value = |text: &str| !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        let fits = |(key, value): (&String, &String)| {
            is_text(key, METADATA_BYTES_MAX)
                && is_value(value)
                && key.len() + value.len() <= METADATA_BYTES_MAX
        };
        if !is_text(&self.name, RECORDING_NAME_BYTES_MAX) {
            return Err(
                format!("recording.name must be 1 to {RECORDING_NAME_BYTES_MAX} printable bytes").into()
            );
        }
        if !is_printable_name(&self.id) || self.id.len() > RECORDING_ID_BYTES_MAX {
            return Err(
                format!("recording.id must be 1 to {RECORDING_ID_BYTES_MAX} visible characters").into()
            );
        }
        if self.metadata.len() > METADATA_MAX || !self.metadata.iter().all(fits) {
            let what = format!(
                "recording.metadata may have {METADATA_MAX} printable texts of {METADATA_BYTES_MAX} bytes"
            );
            return Err(what.into());
        }
        Ok(())
    }
}

/// First message of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the protocol, 1.
    pub protocol: u32,
    /// Client name for logs and reports; 1 to 256 bytes of visible characters.
    pub client: String,
    /// Streams that this connection will send.
    pub streams: Vec<StreamInfo>,
    /// Identity of a client that keeps its events until they are acknowledged and can repeat
    /// them; 1 to 128 bytes of visible characters. A new connection with the same identity takes
    /// over the streams of the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The recording that a drain sends; a sink enters it in its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<SentRecording>,
    /// Streams that another recorder of the fleet has recorded before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<Continued>,
    /// Streams of this client on all its connections together, if it has several: a recorder without memory
    /// for them refuses the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_streams: Option<u32>,
}

impl Hello {
    /// A hello of this version of the protocol, without a resume identity.
    pub fn new(client: &str, streams: Vec<StreamInfo>) -> Hello {
        Hello {
            protocol: u32::from(VERSION),
            client: client.to_owned(),
            streams,
            resume: None,
            recording: None,
            continued: Vec::new(),
            client_streams: None,
        }
    }
}

/// Position of a stream that another recorder of the fleet has recorded up to here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continued {
    /// Stream id.
    pub id: u32,
    /// First sequence number that the client has no acknowledgement for. A recorder that does not know the
    /// stream starts there.
    pub next_sequence: u64,
}

impl Continued {
    /// Checks the positions in a hello that declares streams with the given ids.
    fn check_all(all: &[Continued], mut is_declared: impl FnMut(u32) -> bool) -> Result<(), Cause> {
        check_ids(all.iter().map(|continued| continued.id))?;
        for &Continued { id, next_sequence } in all {
            if !is_declared(id) {
                return Err(format!("stream {id} is continued but not declared").into());
            }
            if next_sequence >= SEQUENCE_END {
                return Err(format!("stream {id}: next_sequence {next_sequence} is not below 2^63").into());
            }
        }
        Ok(())
    }
}

impl ControlMessage for Hello {
    const KIND: FrameKind = FrameKind::Hello;

    fn check(&self) -> Result<(), Cause> {
        check_protocol(self.protocol)?;
        if !is_printable_name(&self.client) {
            let what = "the name of the client is not valid";
            return Err(Cause::new(what).with_hint("1 to 256 bytes of visible characters"));
        }
        let is_identity = |id: &String| is_printable_name(id) && id.len() <= RESUME_BYTES_MAX;
        if !self.resume.as_ref().is_none_or(is_identity) {
            return Err(format!("resume must be 1 to {RESUME_BYTES_MAX} bytes of visible characters").into());
        }
        self.recording.as_ref().map_or(Ok(()), SentRecording::check)?;
        if self.streams.is_empty() || self.streams.len() > MAX_STREAMS {
            return Err(
                format!("{} streams declared, allowed are 1 to {MAX_STREAMS}", self.streams.len()).into()
            );
        }
        let here = self.streams.len();
        if let Some(all) = self.client_streams
            && !(here..=MAX_STREAMS).contains(&(all as usize))
        {
            let what = format!("client_streams is {all}, allowed are {here} to {MAX_STREAMS}");
            return Err(Cause::new(what).with_hint("the streams of all connections of the client"));
        }
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for stream in &self.streams {
            stream.check()?;
            if !ids.insert(stream.id) {
                let what = format!("stream id {} is declared twice", stream.id);
                return Err(Cause::new(what).with_hint("give each stream an id of its own"));
            }
            if !names.insert(stream.name.as_str()) {
                let what = format!("stream name \"{}\" is declared twice", stream.name);
                return Err(Cause::new(what).with_hint("give each stream a name of its own"));
            }
        }
        Continued::check_all(&self.continued, |id| ids.contains(&id))
    }
}

/// Position from which one stream continues; all zero for a new stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WelcomeStream {
    /// Stream id.
    pub id: u32,
    /// Sequence number that the recorder expects next.
    pub next_sequence: u64,
    /// As [`Ack::durable_next`].
    pub durable_next: u64,
    /// As [`Ack::lost_events`].
    pub lost_events: u64,
}

/// The recorder's answer to hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// Name of the recording.
    pub recording: String,
    /// One entry for each declared stream.
    pub streams: Vec<WelcomeStream>,
    /// Largest event that is accepted, bytes.
    pub max_event_bytes: u64,
    /// Free memory in the recorder's pool, bytes; advisory.
    pub credit_bytes: u64,
}

impl ControlMessage for Welcome {
    const KIND: FrameKind = FrameKind::Welcome;

    fn check(&self) -> Result<(), Cause> {
        check_ids(self.streams.iter().map(|s| s.id))
    }
}

/// Final counts of one stream on this connection, according to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndStream {
    /// Stream id.
    pub id: u32,
    /// Events sent.
    pub events: u64,
    /// Payload bytes sent.
    pub bytes: u64,
    /// Events lost before they could be sent.
    pub lost_events: u64,
    /// Payload bytes of those.
    pub lost_bytes: u64,
    /// One past the last sequence number assigned, so that a lost tail is detected.
    pub next_sequence: u64,
}

/// Last message of a client; lists every declared stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// One entry for each declared stream.
    pub streams: Vec<EndStream>,
}

impl ControlMessage for End {
    const KIND: FrameKind = FrameKind::End;

    fn check(&self) -> Result<(), Cause> {
        for EndStream { id, events, bytes, lost_events, lost_bytes, next_sequence } in &self.streams {
            let counts = [events, bytes, lost_events, lost_bytes];
            if counts.into_iter().any(|&count| count >= COUNT_END) || *next_sequence > SEQUENCE_END {
                return Err(format!("stream {id}: a count is not below 2^63").into());
            }
            if events + lost_events > *next_sequence {
                let what = format!(
                    "stream {id}: {events} events sent and {lost_events} lost are more than the \
                     next_sequence {next_sequence} allows"
                );
                return Err(what.into());
            }
        }
        check_ids(self.streams.iter().map(|s| s.id))
    }
}

/// Final counts of one stream on this connection, according to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByeStream {
    /// Stream id.
    pub id: u32,
    /// Events received with a correct checksum.
    pub received_events: u64,
    /// Payload bytes of those.
    pub received_bytes: u64,
    /// Events that survive a power loss.
    pub durable_events: u64,
    /// Payload bytes of those.
    pub durable_bytes: u64,
    /// Events missing by sequence number, for any cause.
    pub lost_events: u64,
}

/// The recorder's answer to end, sent once everything received is durable or known to be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bye {
    /// One entry for each declared stream.
    pub streams: Vec<ByeStream>,
}

impl ControlMessage for Bye {
    const KIND: FrameKind = FrameKind::Bye;

    fn check(&self) -> Result<(), Cause> {
        check_ids(self.streams.iter().map(|s| s.id))
    }
}

/// The recorder refuses or ends the connection, and then closes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorReply {
    /// Error, one line.
    #[serde(deserialize_with = "deserialize_line")]
    pub error: String,
    /// Hint, one line; may be empty.
    #[serde(deserialize_with = "deserialize_line")]
    pub hint: String,
}

impl ErrorReply {
    /// Reply with a cause and its hint.
    pub fn of(cause: &Cause) -> ErrorReply {
        ErrorReply { error: cause.to_string(), hint: cause.hint().unwrap_or_default().into_owned() }
    }
}

impl ControlMessage for ErrorReply {
    const KIND: FrameKind = FrameKind::Error;

    fn check(&self) -> Result<(), Cause> {
        Ok(())
    }
}

/// Watermarks of one stream: a header without payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Stream id.
    pub stream: u32,
    /// First sequence number that is not yet durable; all below are durable or recorded as missing.
    pub durable_next: u64,
    /// Sequence number that the recorder expects next.
    pub received_next: u64,
    /// Free memory of the recorder's pool, bytes; advisory.
    pub credit_bytes: u64,
    /// Events below `durable_next` that reached the recorder and are not stored: they arrived
    /// damaged, or their volume failed. Counted since the start of the recording, over all
    /// connections.
    pub lost_events: u64,
}

impl Ack {
    /// Header with this ack.
    pub fn to_header(self) -> Header {
        Header {
            stream: self.stream,
            sequence: self.durable_next,
            timestamp_ns: self.lost_events,
            a: self.received_next,
            b: self.credit_bytes,
            ..Header::control(FrameKind::Ack, &[])
        }
    }

    /// Ack in a header of kind [`FrameKind::Ack`].
    pub fn from_header(header: &Header) -> Ack {
        Ack {
            stream: header.stream,
            durable_next: header.sequence,
            received_next: header.a,
            credit_bytes: header.b,
            lost_events: header.timestamp_ns,
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
