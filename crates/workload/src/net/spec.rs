//! What a network test does, as both ends are told it, and the flows that follow from it.
use std::time::Duration;

use keepup_sys::datagram::{DATAGRAM_BYTES_MAX, SEGMENTS_MAX};
use serde::{Deserialize, Serialize};

use super::flow::HEADER_BYTES;

/// Flows of one session at most.
pub(super) const FLOWS_MAX: u32 = 256;
/// Largest message over TCP, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Longest test.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Messages of a probe per second at most.
const PROBE_RATE_MAX: f64 = 100_000.0;
/// Longest name of a congestion control (TCP_CA_NAME_MAX of linux/tcp.h, without its end).
const CONGESTION_CHARS_MAX: usize = 15;

/// What flows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A stream of bytes without loss.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Which way the bytes go, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To the server.
    Send,
    /// From the server.
    Receive,
    /// Both ways at once, each over flows of its own.
    Both,
}

/// How datagrams are handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendBy {
    /// One with each call.
    Plain,
    /// Many with one call (`sendmmsg`).
    Batch,
    /// Trains that the kernel, or the card, cuts (`UDP_SEGMENT`), many with one call.
    Segments,
}

/// How datagrams are taken from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveBy {
    /// One with each call.
    Plain,
    /// Many with one call (`recvmmsg`).
    Batch,
    /// Joined by the kernel (`UDP_GRO`), many with one call.
    Joined,
    /// Put into buffers by the kernel without being asked for each (io_uring, multishot receive).
    Ring,
}

/// Small messages there and back, on a schedule of their own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Messages due each second.
    pub per_second: f64,
    /// Size of a message, at least [`HEADER_BYTES`].
    pub bytes: usize,
}

/// A network test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// What flows are made of.
    pub protocol: Protocol,
    /// Flows in each direction; none when only the probe is wanted.
    pub flows: u32,
    /// Which way.
    pub direction: Direction,
    /// Bytes handed over at a time; of datagrams, their size.
    pub message_bytes: usize,
    /// Send buffer asked for, bytes; the kernel's own choice without.
    pub send_buffer_bytes: Option<usize>,
    /// Receive buffer asked for, bytes; the kernel's own choice without.
    pub receive_buffer_bytes: Option<usize>,
    /// Congestion control asked for; the kernel's own choice without.
    pub congestion: Option<String>,
    /// Small messages are not held back to be sent together (TCP_NODELAY).
    pub no_delay: bool,
    /// Bytes are sent from the page cache, without a copy (`sendfile`).
    pub zero_copy: bool,
    /// The receiver drops bytes in the kernel instead of copying them (`MSG_TRUNC`).
    pub discard: bool,
    /// Rate of each flow, bytes of payload per second; as fast as it goes without.
    pub rate: Option<f64>,
    /// How datagrams are sent.
    pub send_by: SendBy,
    /// How datagrams are received.
    pub receive_by: ReceiveBy,
    /// Messages there and back beside the flows.
    pub probe: Option<Probe>,
    /// Before it counts.
    pub ramp: Duration,
    /// How long it counts.
    pub run: Duration,
}

/// What is wrong with a test, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

/// What a flow does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Bytes in one direction.
    Bulk {
        /// Whether the client sends.
        from_client: bool,
    },
    /// The client asks, the server answers.
    Probe,
}

impl Default for NetSpec {
    /// One flow of TCP to the server as fast as it goes, for ten seconds after one.
    fn default() -> Self {
        Self {
            protocol: Protocol::Tcp,
            flows: 1,
            direction: Direction::Send,
            message_bytes: 64 << 10,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            congestion: None,
            no_delay: false,
            zero_copy: false,
            discard: false,
            rate: None,
            send_by: SendBy::Batch,
            receive_by: ReceiveBy::Batch,
            probe: None,
            ramp: Duration::from_secs(1),
            run: Duration::from_secs(10),
        }
    }
}

impl NetSpec {
    /// Whether both ends can do it.
    ///
    /// # Errors
    /// The first thing that is out of bounds.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |what: String| Err(SpecError(what));
        let roles = self.roles().len();
        if roles == 0 || roles > FLOWS_MAX as usize {
            return wrong(format!("{roles} flows: from 1 to {FLOWS_MAX} are possible"));
        }
        let (least, most) = match self.protocol {
            Protocol::Tcp => (1, MESSAGE_BYTES_MAX),
            Protocol::Udp => (HEADER_BYTES, DATAGRAM_BYTES_MAX),
        };
        if !(least..=most).contains(&self.message_bytes) {
            return wrong(format!(
                "messages of {} bytes: {least} to {most} are possible",
                self.message_bytes
            ));
        }
        if self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return wrong("a rate of nothing".into());
        }
        if let Some(probe) = self.probe {
            if !(probe.per_second > 0.0 && probe.per_second <= PROBE_RATE_MAX) {
                return wrong(format!(
                    "a probe has more than 0 and up to {PROBE_RATE_MAX:.0} messages each second"
                ));
            }
            if !(HEADER_BYTES..=DATAGRAM_BYTES_MAX).contains(&probe.bytes) {
                return wrong(format!("a probe's message has {HEADER_BYTES} to {DATAGRAM_BYTES_MAX} bytes"));
            }
        }
        if self.run.is_zero() || self.run > TIME_MAX || self.ramp > TIME_MAX {
            return wrong("a test counts for some time, and for 7 days at most".into());
        }
        let named = |name: &String| name.len() <= CONGESTION_CHARS_MAX && name.is_ascii() && !name.is_empty();
        if !self.congestion.as_ref().is_none_or(named) {
            return wrong("congestion controls have names of 1 to 15 letters".into());
        }
        Ok(())
    }

    /// All flows, in the order of their numbers.
    pub(super) fn roles(&self) -> Vec<Role> {
        let sides: &[bool] = match self.direction {
            Direction::Send => &[true],
            Direction::Receive => &[false],
            Direction::Both => &[true, false],
        };
        let count = self.flows.min(FLOWS_MAX + 1) as usize;
        let bulk = sides.iter().flat_map(|&from_client| vec![Role::Bulk { from_client }; count]);
        bulk.chain(self.probe.map(|_| Role::Probe)).collect()
    }

    /// Datagrams of one train.
    pub(super) fn segments(&self) -> usize {
        match self.send_by {
            SendBy::Segments => (DATAGRAM_BYTES_MAX / self.message_bytes.max(1)).clamp(1, SEGMENTS_MAX),
            SendBy::Plain | SendBy::Batch => 1,
        }
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
