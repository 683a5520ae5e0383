//! What client and server say to each other: lengths and JSON on the control connection, a fixed preamble on
//! the connections that carry bytes.
//!
//! Invariant: a length is compared with a limit before memory is taken; who has not shown the token gets a
//! small limit and nothing else.
use std::fmt;
use std::io::{Read, Write};

use keepup_results::printable::{deserialize_line, deserialize_optional_line, one_line};
use keepup_results::{NetMoved, NetTransport};
use serde::{Deserialize, Serialize};

use super::spec::NetSpec;

/// Version of the conversation; both ends must have the same.
pub(super) const VERSION: u32 = 2;
/// First bytes of a control connection and of a flow.
pub(super) const CONTROL_MAGIC: [u8; 8] = *b"KU-NETc\n";
pub(super) const FLOW_MAGIC: [u8; 8] = *b"KU-NETf\n";
/// Largest message of one who has shown no token, in bytes.
pub(super) const STRANGER_BYTES_MAX: u32 = 4 << 10;
/// Largest message of one who has, in bytes: 256 flows with an hour of tenths of a second each.
pub(super) const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// What a client must know to be served: 128 random bits in hexadecimal digits, or what the user chose.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token(pub String);

impl Token {
    /// Longest token, in bytes.
    pub const BYTES_MAX: usize = 256;

    /// Whether they are the same; how long it takes says nothing of where they differ.
    pub(super) fn is(&self, other: &Self) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
        a.len() == b.len() && differ == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(…)")
    }
}

/// One thing said on a control connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Message {
    /// The client begins.
    Hello { version: u32, token: Token },
    /// The server is willing.
    Welcome {
        version: u32,
        #[serde(deserialize_with = "deserialize_line")]
        host: String,
    },
    /// The server is not, or can not go on.
    Refused {
        #[serde(deserialize_with = "deserialize_line")]
        why: String,
    },
    /// The client wants this test.
    Prepare { spec: Box<NetSpec> },
    /// The server has made room: what a flow must show, and the port of each flow of datagrams.
    Ready { secret: String, ports: Vec<u16> },
    /// All flows are there.
    Set,
    /// The client begins, and so does the server on hearing it.
    Start,
    /// Still there.
    Alive,
    /// Whoever says it sends no more.
    Quiet { sent: Vec<Sent> },
    /// The server's account.
    Done { report: Box<Report> },
}

/// What one flow of datagrams handed over in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    pub(super) number: u32,
    /// Datagrams that were due.
    pub(super) due: u64,
    /// Datagrams that the kernel took.
    pub(super) sent: u64,
    /// Datagrams that a full queue refused.
    pub(super) refused: u64,
}

/// One end's account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    pub(super) flows: Vec<FlowReport>,
    pub(super) end: keepup_results::NetEnd,
    /// What the kernel's counters grew by, from before the first datagram until after the last.
    pub(super) counters: Option<Counted>,
}

/// One flow as one end saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowReport {
    pub(super) number: u32,
    pub(super) moved: Option<NetMoved>,
    pub(super) transport: Option<NetTransport>,
    pub(super) receive_buffer_bytes: Option<u64>,
    pub(super) sent: Option<Sent>,
    pub(super) received: Option<Datagrams>,
    pub(super) latency: Option<keepup_results::NetLatency>,
    /// What ended it before its time.
    #[serde(default, deserialize_with = "deserialize_optional_line")]
    pub(super) failure: Option<String>,
}

/// Datagrams of one flow as they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Datagrams {
    /// Different ones.
    pub(super) unique: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    /// Of these, how many came too late to tell whether they had come before.
    pub(super) too_late: u64,
    /// Not of this flow.
    pub(super) foreign: u64,
    /// Longer than the room for them.
    pub(super) truncated: u64,
    /// Datagrams of the longest message that the kernel had joined; 1 without that.
    pub(super) longest_train: u64,
    /// Messages, joined or not, that were thrown away because the socket's buffer was full.
    pub(super) dropped: u64,
    /// Longest time between two calls that took something, while there was more to come, ns.
    pub(super) longest_pause_ns: u64,
}

/// What matters of the kernel's counters, as they grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    /// Of the interface that the traffic went through.
    pub(super) interface_dropped_out: u64,
    pub(super) interface_dropped_in: u64,
    /// Of all cores.
    pub(super) softirq_dropped: u64,
    /// Of the name space.
    pub(super) reassembly_failed: u64,
    pub(super) buffer_full: u64,
}

/// Writes one message.
pub(super) fn write(to: &mut impl Write, message: &Message) -> std::io::Result<()> {
    let text = serde_json::to_vec(message).map_err(std::io::Error::other)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MESSAGE_BYTES_MAX);
    let length = length.ok_or_else(|| std::io::Error::other("a message that is too long"))?;
    let mut frame = Vec::with_capacity(4 + text.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&text);
    to.write_all(&frame)
}

/// Reads one message of at most `bytes_max`; none when the other side has ended in order.
pub(super) fn read(from: &mut impl Read, bytes_max: u32) -> std::io::Result<Option<Message>> {
    let mut head = [0; 4];
    match from.read(&mut head[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut head[1..])?,
    }
    let length = u32::from_le_bytes(head);
    let invalid = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    if length > bytes_max {
        return Err(invalid(format!("a message of {length} bytes, more than {bytes_max}")));
    }
    let mut text = Vec::new();
    from.take(length.into()).read_to_end(&mut text)?;
    if text.len() < length as usize {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text).map(Some).map_err(|why| {
        // It repeats names that the peer chose.
        invalid(format!("not a message of keepup: {}", one_line(&why.to_string())))
    })
}

/// What the bytes of a stranger, or of a friend, come to: messages up to the first that is not one.
pub fn conversation(mut bytes: &[u8], is_friend: bool) -> usize {
    let bytes_max = if is_friend { MESSAGE_BYTES_MAX } else { STRANGER_BYTES_MAX };
    let mut messages = 0;
    while let Ok(Some(message)) = read(&mut bytes, bytes_max) {
        if let Message::Prepare { spec } = message {
            // A test that is accepted has flows that can be counted.
            drop(spec.check().map(|()| spec.roles()));
        }
        messages += 1;
    }
    messages
}

/// First bytes of a connection that carries a flow.
pub(super) fn preamble(secret: &str, number: u32) -> Vec<u8> {
    let mut bytes = FLOW_MAGIC.to_vec();
    bytes.extend_from_slice(secret.as_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes
}

/// Length of a session's secret, in bytes.
pub(super) const SECRET_BYTES: usize = 32;

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
