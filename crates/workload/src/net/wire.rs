//! Protocol between client and server: length-prefixed JSON on the control connection, a fixed
//! preamble on flow connections.
//!
//! Invariant: a length is checked against a limit before memory is allocated; unauthenticated peers
//! get a small limit.
pub(super) mod source;

use std::io::{Read, Write};

use keepup_results::printable::{deserialize_line, deserialize_optional_line, one_line};
use keepup_results::{NetMoved, NetTransport};
use serde::{Deserialize, Serialize};

use self::source::{SourceAnswer, SourceRequest};
use super::spec::NetSpec;

/// Protocol version, which must match.
pub(super) const VERSION: u32 = 4;
/// First bytes of a control connection and of a flow connection.
pub(super) const CONTROL_MAGIC: [u8; 8] = *b"KU-NETc\n";
pub(super) const FLOW_MAGIC: [u8; 8] = *b"KU-NETf\n";
/// Message size limit for unauthenticated peers, bytes.
pub(super) const STRANGER_BYTES_MAX: u32 = 4 << 10;
/// Message size limit for authenticated peers, bytes: 256 flows with one hour of 0.1 s intervals
/// each.
pub(super) const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Message on a control connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Message {
    /// First message of the client, with its nonce.
    Hello { version: u32, nonce: String },
    /// The server's nonce, a request for the client's proof.
    Challenge { version: u32, nonce: String },
    /// The client's proof.
    Proof { proof: String },
    /// The server accepts, with its own proof.
    Welcome {
        proof: String,
        #[serde(deserialize_with = "deserialize_line")]
        host: String,
    },
    /// The server refuses or aborts.
    Refused {
        #[serde(deserialize_with = "deserialize_line")]
        why: String,
    },
    /// The client's test specification.
    Prepare { spec: Box<NetSpec> },
    /// The server is ready: the session secret and the port of each datagram flow.
    Ready { secret: String, ports: Vec<u16> },
    /// All flows are connected.
    Set,
    /// Start of the test, sent by the client; the server starts on receipt.
    Start,
    /// Keep-alive.
    Alive,
    /// The sender of this message has stopped all its flows.
    Quiet { sent: Vec<Sent> },
    /// The server's report.
    Done { report: Box<Report> },
    /// The client's request to the server's source.
    Source { request: Box<SourceRequest> },
    /// Answer of the server's source.
    SourceAnswer { answer: Box<SourceAnswer> },
}

/// Totals of a sending datagram flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    pub(super) number: u32,
    /// Datagrams that were due.
    pub(super) due: u64,
    /// Datagrams accepted by the kernel.
    pub(super) sent: u64,
    /// Datagrams refused because of a full queue.
    pub(super) refused: u64,
}

/// Report of one end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    pub(super) flows: Vec<FlowReport>,
    pub(super) end: keepup_results::NetEnd,
    /// Growth of the kernel's counters, from before the first datagram until after the last.
    pub(super) counters: Option<Counted>,
}

/// Report of one flow at one end.
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
    /// Error that ended the flow early.
    #[serde(default, deserialize_with = "deserialize_optional_line")]
    pub(super) failure: Option<String>,
}

/// Counters of a receiving datagram flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Datagrams {
    /// Distinct datagrams.
    pub(super) unique: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    /// Of these, those too late to distinguish from duplicates.
    pub(super) too_late: u64,
    /// Datagrams of another origin.
    pub(super) foreign: u64,
    /// Datagrams longer than the buffer.
    pub(super) truncated: u64,
    /// Datagrams in the longest message coalesced by the kernel; 1 without coalescing.
    pub(super) longest_train: u64,
    /// Messages, coalesced or not, dropped because the socket buffer was full.
    pub(super) dropped: u64,
    /// Longest time between two receive calls while data was queued, ns.
    pub(super) longest_pause_ns: u64,
}

/// Growth of the kernel counters that may explain losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    /// Counters of the interface that carried the traffic.
    pub(super) interface_dropped_out: u64,
    pub(super) interface_dropped_in: u64,
    /// Sum over all cores.
    pub(super) softirq_dropped: u64,
    /// Counters of the network namespace.
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

/// Reads one message of at most `bytes_max` bytes; none at an orderly end of stream.
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
        // The cause may quote names chosen by the peer.
        invalid(format!("not a message of keepup: {}", one_line(&why.to_string())))
    })
}

/// Number of valid messages at the start of `bytes`; entry point for fuzzing.
pub fn conversation(mut bytes: &[u8], is_authenticated: bool) -> usize {
    let bytes_max = if is_authenticated { MESSAGE_BYTES_MAX } else { STRANGER_BYTES_MAX };
    let mut messages = 0;
    while let Ok(Some(message)) = read(&mut bytes, bytes_max) {
        match message {
            // An accepted test must have countable flows.
            Message::Prepare { spec } => drop(spec.check().map(|()| spec.roles())),
            Message::Source { request } => drop(request.check()),
            Message::SourceAnswer { answer } => drop(answer.report(0)),
            _ => {}
        }
        messages += 1;
    }
    messages
}

/// Preamble of a flow connection.
pub(super) fn preamble(secret: &str, number: u32) -> Vec<u8> {
    let mut bytes = FLOW_MAGIC.to_vec();
    bytes.extend_from_slice(secret.as_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
