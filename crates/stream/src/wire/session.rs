//! The receiver's side of one connection as a pure state machine: header bytes in, what comes next out.
//!
//! Invariants: a length is handed out only after it was compared with the limits; after the first error
//! everything is refused. Sequence order is not judged here: the recorder does that, because a stream may
//! outlive its connection.

use super::{
    ControlMessage, End, HEADER_BYTES, Header, Hello, Kind, MAX_CONTROL_BYTES, SEQUENCE_END, StreamIndex,
    StreamInfo, WireError, crc32,
};

/// What a receiver is ready to take from one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest event payload, bytes.
    pub max_event_bytes: u64,
    /// Largest control payload, bytes; never more than [`MAX_CONTROL_BYTES`].
    pub max_control_bytes: u64,
    /// Most streams in one hello.
    pub max_streams: usize,
}

/// What follows the header that was just read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A control payload of exactly `length` bytes; hand it to [`Session::control`].
    Control {
        /// Payload bytes.
        length: usize,
    },
    /// An event's payload.
    Event(EventHead),
}

/// What is known of an event before its payload is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHead {
    /// Position of the stream in this session's table.
    pub index: usize,
    /// Stream id.
    pub stream: u32,
    /// Sequence number within the stream.
    pub sequence: u64,
    /// When the event was due, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Payload bytes, not above `max_event_bytes`.
    pub length: u64,
    /// CRC-32 that the payload must have; the receiver checks it.
    pub crc: u32,
}

/// A control message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// The stream table.
    Hello(Hello),
    /// Final counts.
    End(End),
}

/// Where the conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    ExpectHello,
    Payload { kind: Kind, length: usize, crc: u32 },
    Open,
    Ended,
    Refused,
}

/// One connection's conversation, seen by the receiver.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    state: State,
    streams: Vec<StreamInfo>,
    /// Length of every event of a stream, where its shape fixes it.
    event_bytes: Vec<Option<u64>>,
    index: StreamIndex,
}

impl Session {
    /// A connection that has said nothing yet.
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

    /// Takes the next header and says what follows it.
    ///
    /// # Errors
    /// The header is damaged, not of this protocol, not allowed now, or asks for more than the limits.
    pub fn header(&mut self, bytes: &[u8; HEADER_BYTES]) -> Result<Next, WireError> {
        let next = Header::decode(bytes).and_then(|header| self.admit(&header));
        match next {
            Ok(_) => {}
            Err(_) => self.state = State::Refused,
        }
        next
    }

    /// Takes the control payload that [`Session::header`] announced.
    ///
    /// # Errors
    /// The payload has another length or checksum, is not the announced message, or says what cannot be.
    pub fn control(&mut self, payload: &[u8]) -> Result<Control, WireError> {
        let state = std::mem::replace(&mut self.state, State::Refused);
        let State::Payload { kind, length, crc } = state else {
            let what = "no control payload was announced".to_owned();
            return Err(WireError::ControlPayload { kind: Kind::Hello, what });
        };
        if payload.len() != length {
            let what = format!("{} bytes, the header said {length}", payload.len());
            return Err(WireError::ControlPayload { kind, what });
        }
        let computed = crc32(payload);
        if computed != crc {
            let what = format!("checksum is {computed:08x}, the header says {crc:08x}");
            return Err(WireError::ControlPayload { kind, what });
        }
        if kind == Kind::Hello {
            let hello = self.hello(Hello::from_payload(payload)?)?;
            self.state = State::Open;
            Ok(Control::Hello(hello))
        } else {
            let end = End::from_payload(payload)?;
            self.check_end(&end)?;
            self.state = State::Ended;
            Ok(Control::End(end))
        }
    }

    /// Streams in the order in which hello declared them; empty before hello.
    pub fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }

    /// Whether the client has said end: nothing may follow.
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Whether the conversation has not begun: the only legal next frame is hello.
    pub fn expects_hello(&self) -> bool {
        self.state == State::ExpectHello
    }

    fn admit(&mut self, header: &Header) -> Result<Next, WireError> {
        let kind = header.kind;
        match (self.state, kind) {
            (State::Open, Kind::Event) => self.event(header).map(Next::Event),
            (State::ExpectHello, Kind::Hello) | (State::Open, Kind::End) => self.announce(header),
            (_, Kind::Welcome | Kind::Ack | Kind::Bye | Kind::Error) => {
                Err(WireError::Unexpected { kind, why: "only a recorder sends this kind" })
            }
            (State::ExpectHello, _) => {
                Err(WireError::Unexpected { kind, why: "the first frame must be hello" })
            }
            (State::Open, _) => Err(WireError::Unexpected { kind, why: "hello was already said" }),
            (State::Payload { .. }, _) => {
                Err(WireError::Unexpected { kind, why: "a control payload was to come first" })
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
            let (kind, bytes_max) = (Kind::Event, self.limits.max_event_bytes);
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

    /// An event that is not compressed has the bytes that its stream's shape says.
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
        let (kind, bytes_max) = (header.kind, self.limits.max_control_bytes);
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
            return Err(WireError::Invalid { kind: Kind::Hello, what });
        }
        self.index = StreamIndex::new(&hello.streams);
        self.streams.clone_from(&hello.streams);
        let is_fixed = |info: &&StreamInfo| info.compression.is_none();
        let fixed = |info: &StreamInfo| Some(info).filter(is_fixed).and_then(StreamInfo::event_bytes);
        self.event_bytes = hello.streams.iter().map(fixed).collect();
        Ok(hello)
    }

    /// End must account for every declared stream, once, and for no other.
    fn check_end(&self, end: &End) -> Result<(), WireError> {
        let undeclared = end.streams.iter().find(|s| self.index.get(s.id).is_none());
        let what = match undeclared {
            Some(stream) => format!("stream {} was not declared in hello", stream.id),
            None if end.streams.len() != self.streams.len() => {
                format!("{} streams listed, {} were declared", end.streams.len(), self.streams.len())
            }
            None => return Ok(()),
        };
        Err(WireError::Invalid { kind: Kind::End, what })
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
