//! Receiving side of one connection as a pure state machine: takes header bytes, returns what
//! follows.
//!
//! Invariants: a length is returned only after it was checked against the limits; after the first
//! error everything is refused. The order of sequence numbers is checked by the recorder, because
//! a stream may outlive its connection.

use super::{
    ControlMessage, End, FrameKind, HEADER_BYTES, Header, Hello, Locate, MAX_CONTROL_BYTES, Missing,
    SEQUENCE_END, StreamIndex, StreamInfo, WireError, crc32,
};
use crate::ledger::Gap;

/// Largest end message without streams, bytes.
const END_BYTES_MIN: u64 = 64 << 10;
/// Further bytes of an end message for each stream; its counts take less than 200.
const END_STREAM_BYTES: u64 = 1 << 10;

/// Limits of a receiver for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest event payload, bytes.
    pub max_event_bytes: u64,
    /// Largest control payload, bytes; never more than [`MAX_CONTROL_BYTES`].
    pub max_control_bytes: u64,
    /// Most streams in one hello.
    pub max_streams: usize,
}

/// Payload that follows the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A control payload of exactly `length` bytes, to be passed to [`Session::control`].
    Control {
        /// Payload bytes.
        length: usize,
    },
    /// An event's payload.
    Event(EventHead),
}

/// Fields of an event from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHead {
    /// Index of the stream in this session's table.
    pub index: usize,
    /// Stream id.
    pub stream: u32,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// Due time of the event, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Payload bytes, at most `max_event_bytes`.
    pub length: u64,
    /// Expected CRC-32 of the payload; checked by the receiver.
    pub crc: u32,
}

/// A control message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// The stream table.
    Hello(Hello),
    /// Final counts.
    End(End),
    /// Which recorders take these streams? Hello, another question or nothing follows.
    Locate(Locate),
    /// Numbers of declared streams that no event will have. Events may follow.
    Missing(Missing),
}

/// Largest end message for this many streams, bytes: clients that declare few streams get little memory.
fn end_bytes_max(streams: usize) -> u64 {
    END_BYTES_MIN.saturating_add(END_STREAM_BYTES.saturating_mul(streams as u64))
}

/// State of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    ExpectHello,
    Payload { kind: FrameKind, length: usize, crc: u32 },
    Open,
    Ended,
    Refused,
}

/// Receiver's state of one connection.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    state: State,
    streams: Vec<StreamInfo>,
    /// Length of every event of a stream, if its shape determines it.
    event_bytes: Vec<Option<u64>>,
    index: StreamIndex,
}

impl Session {
    /// New connection, before hello.
    pub fn new(limits: Limits) -> Session {
        let max_control_bytes = limits.max_control_bytes.min(MAX_CONTROL_BYTES);
        Session {
            limits: Limits { max_control_bytes, ..limits },
            state: State::ExpectHello,
            streams: Vec::new(),
            event_bytes: Vec::new(),
            index: StreamIndex::default(),
        }
    }

    /// Takes the next header and returns what follows it.
    ///
    /// # Errors
    /// The header is damaged, not of this protocol, not allowed now, or exceeds the limits.
    pub fn header(&mut self, bytes: &[u8; HEADER_BYTES]) -> Result<Next, WireError> {
        let next = Header::decode(bytes).and_then(|header| self.admit(&header));
        match next {
            Ok(_) => {}
            Err(_) => self.state = State::Refused,
        }
        next
    }

    /// Takes the control payload announced by [`Session::header`].
    ///
    /// # Errors
    /// The payload has another length or checksum, is not the announced message, or is invalid.
    pub fn control(&mut self, payload: &[u8]) -> Result<Control, WireError> {
        let state = std::mem::replace(&mut self.state, State::Refused);
        let State::Payload { kind, length, crc } = state else {
            let what = "no control payload was announced".to_owned();
            return Err(WireError::ControlPayload { kind: FrameKind::Hello, what });
        };
        if payload.len() != length {
            let what = format!("{} bytes, the header has {length}", payload.len());
            return Err(WireError::ControlPayload { kind, what });
        }
        let computed = crc32(payload);
        if computed != crc {
            let what = format!("checksum is {computed:08x}, the header says {crc:08x}");
            return Err(WireError::ControlPayload { kind, what });
        }
        match kind {
            FrameKind::Hello => {
                let hello = self.hello(Hello::from_payload(payload)?)?;
                self.state = State::Open;
                Ok(Control::Hello(hello))
            }
            FrameKind::Locate => {
                let locate = Locate::from_payload(payload)?;
                self.state = State::ExpectHello;
                Ok(Control::Locate(locate))
            }
            FrameKind::Missing => {
                let missing = Missing::from_payload(payload)?;
                self.check_missing(&missing)?;
                self.state = State::Open;
                Ok(Control::Missing(missing))
            }
            _ => {
                let end = End::from_payload(payload)?;
                self.check_end(&end)?;
                self.state = State::Ended;
                Ok(Control::End(end))
            }
        }
    }

    /// Streams in the order in which hello declared them; empty before hello.
    pub fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }

    /// Index of a stream in this session's table.
    pub fn index_of(&self, stream: u32) -> Option<usize> {
        self.index.get(stream)
    }

    /// Index of the stream, and payload length, of a header that is about to be read. Nothing is checked: the
    /// header may be something else.
    pub fn glance(&self, bytes: &[u8; HEADER_BYTES]) -> Option<(usize, u64)> {
        let (stream, length) = Header::glance(bytes);
        Some((self.index.get(stream)?, length))
    }

    /// Whether the client has sent end: no frame may follow.
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Whether no complete hello has arrived yet.
    pub fn expects_hello(&self) -> bool {
        matches!(
            self.state,
            State::ExpectHello | State::Payload { kind: FrameKind::Hello | FrameKind::Locate, .. }
        )
    }

    fn admit(&mut self, header: &Header) -> Result<Next, WireError> {
        let kind = header.kind;
        match (self.state, kind) {
            (State::Open, FrameKind::Event) => self.event(header).map(Next::Event),
            (State::ExpectHello, FrameKind::Hello | FrameKind::Locate)
            | (State::Open, FrameKind::Missing | FrameKind::End) => self.announce(header),
            (
                _,
                FrameKind::Welcome | FrameKind::Ack | FrameKind::Bye | FrameKind::Error | FrameKind::Located,
            ) => Err(WireError::Unexpected { kind, why: "only a recorder sends this kind" }),
            (State::ExpectHello, _) => {
                Err(WireError::Unexpected { kind, why: "the first frame must be hello" })
            }
            (State::Open, _) => Err(WireError::Unexpected { kind, why: "hello was already received" }),
            (State::Payload { .. }, _) => {
                Err(WireError::Unexpected { kind, why: "a control payload was expected first" })
            }
            (State::Ended, _) => Err(WireError::Unexpected { kind, why: "nothing may follow end" }),
            (State::Refused, _) => Err(WireError::Unexpected { kind, why: "this connection was refused" }),
        }
    }

    #[inline]
    fn event(&self, header: &Header) -> Result<EventHead, WireError> {
        let Some(index) = self.index.get(header.stream) else {
            return Err(WireError::UnknownStream { stream: header.stream });
        };
        if header.length > self.limits.max_event_bytes {
            let (kind, bytes_max) = (FrameKind::Event, self.limits.max_event_bytes);
            return Err(WireError::TooLong { kind, bytes: header.length, bytes_max });
        }
        if header.sequence >= SEQUENCE_END {
            return Err(WireError::Sequence { stream: header.stream, sequence: header.sequence });
        }
        self.check_shape(index, header)?;
        Ok(EventHead {
            index,
            stream: header.stream,
            sequence: header.sequence,
            timestamp_ns: header.timestamp_ns,
            length: header.length,
            crc: header.crc,
        })
    }

    /// Checks that an uncompressed event has the length of its stream's shape.
    fn check_shape(&self, index: usize, header: &Header) -> Result<(), WireError> {
        match self.event_bytes[index] {
            Some(expected) if expected != header.length => {
                let (stream, sequence, bytes) = (header.stream, header.sequence, header.length);
                Err(WireError::Shape { stream, sequence, bytes, expected })
            }
            _ => Ok(()),
        }
    }

    fn announce(&mut self, header: &Header) -> Result<Next, WireError> {
        let (kind, mut bytes_max) = (header.kind, self.limits.max_control_bytes);
        if kind == FrameKind::End {
            bytes_max = bytes_max.min(end_bytes_max(self.streams.len()));
        }
        if header.stream != 0 {
            let value = u64::from(header.stream);
            return Err(WireError::Field { field: "stream of a control frame", value, allowed: "0" });
        }
        if header.length > bytes_max {
            return Err(WireError::TooLong { kind, bytes: header.length, bytes_max });
        }
        let length = header.length as usize;
        self.state = State::Payload { kind, length, crc: header.crc };
        Ok(Next::Control { length })
    }

    fn hello(&mut self, hello: Hello) -> Result<Hello, WireError> {
        if hello.streams.len() > self.limits.max_streams {
            let what = format!(
                "{} streams declared, this recorder takes {}",
                hello.streams.len(),
                self.limits.max_streams
            );
            return Err(WireError::Invalid { kind: FrameKind::Hello, what: what.into() });
        }
        self.index = StreamIndex::new(&hello.streams);
        self.streams.clone_from(&hello.streams);
        let is_fixed = |info: &&StreamInfo| info.compression.is_none();
        let fixed = |info: &StreamInfo| Some(info).filter(is_fixed).and_then(StreamInfo::event_bytes);
        self.event_bytes = hello.streams.iter().map(fixed).collect();
        Ok(hello)
    }

    fn check_missing(&self, missing: &Missing) -> Result<(), WireError> {
        let undeclared = missing.gaps.iter().find(|gap| self.index.get(gap.stream).is_none());
        let unknown = |gap: &Gap| {
            let what = format!("stream {} was not declared in hello", gap.stream);
            Err(WireError::Invalid { kind: FrameKind::Missing, what: what.into() })
        };
        undeclared.map_or(Ok(()), unknown)
    }

    /// Checks that end lists every declared stream once, and no other.
    fn check_end(&self, end: &End) -> Result<(), WireError> {
        let undeclared = end.streams.iter().find(|s| self.index.get(s.id).is_none());
        let what = match undeclared {
            Some(stream) => format!("stream {} was not declared in hello", stream.id),
            None if end.streams.len() != self.streams.len() => {
                format!("{} streams listed, {} were declared", end.streams.len(), self.streams.len())
            }
            None => return Ok(()),
        };
        Err(WireError::Invalid { kind: FrameKind::End, what: what.into() })
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
