//! Specification of a network test, shared by both ends, and the flows derived from it.
use std::time::Duration;

use keepup_sys::datagram::{DATAGRAM_BYTES_MAX, SEGMENTS_MAX};
use serde::{Deserialize, Serialize};

use crate::error::SpecError;

/// Header of every datagram and probe message: magic, flow, sequence number, due time.
pub(super) const HEADER_BYTES: usize = 24;
/// Maximum number of flows per session.
pub(super) const FLOWS_MAX: u32 = 256;
/// Maximum TCP message, bytes.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Longest test.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum rate of a probe, messages per second.
const PROBE_RATE_MAX: f64 = 100_000.0;
/// Longest name of a congestion control (TCP_CA_NAME_MAX in linux/tcp.h, without the terminator).
const CONGESTION_CHARS_MAX: usize = 15;

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// TCP: lossless byte stream.
    Tcp,
    /// UDP datagrams.
    Udp,
}

/// Direction of the flows, as seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Client to server.
    Send,
    /// Server to client.
    Receive,
    /// Both directions at once, on separate flows.
    Both,
}

/// System call for sending datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendBy {
    /// One datagram per call.
    Plain,
    /// Many datagrams per call (`sendmmsg`).
    Batch,
    /// Segmentation offload (`UDP_SEGMENT`), many trains per call.
    Segments,
}

/// System call for receiving datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveBy {
    /// One datagram per call.
    Plain,
    /// Many datagrams per call (`recvmmsg`).
    Batch,
    /// Receive offload (`UDP_GRO`), many messages per call.
    Joined,
    /// io_uring multishot receive into provided buffers.
    Ring,
}

/// Open-loop latency probe of small echoed messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Messages per second.
    pub per_second: f64,
    /// Message size in bytes, at least [`HEADER_BYTES`].
    pub bytes: usize,
}

/// Specification of a network test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Flows per direction; 0 for a probe alone.
    pub flows: u32,
    /// Direction of the flows.
    pub direction: Direction,
    /// Bytes per send call, or the datagram size.
    pub message_bytes: usize,
    /// Requested send buffer, bytes; kernel default without.
    pub send_buffer_bytes: Option<usize>,
    /// Requested receive buffer, bytes; kernel default without.
    pub receive_buffer_bytes: Option<usize>,
    /// Requested congestion control; kernel default without.
    pub congestion: Option<String>,
    /// Disables Nagle's algorithm (TCP_NODELAY).
    pub no_delay: bool,
    /// Sends from the page cache without a copy (`sendfile`).
    pub zero_copy: bool,
    /// Discards received bytes in the kernel instead of copying them (`MSG_TRUNC`).
    pub discard: bool,
    /// Payload rate per flow, bytes per second; unlimited without.
    pub rate: Option<f64>,
    /// System call for sending datagrams.
    pub send_by: SendBy,
    /// System call for receiving datagrams.
    pub receive_by: ReceiveBy,
    /// Latency probe in parallel to the flows.
    pub probe: Option<Probe>,
    /// Warm-up time, not measured.
    pub ramp: Duration,
    /// Measurement time.
    pub run: Duration,
}

/// Role of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Bulk data in one direction.
    Bulk {
        /// Whether the client sends.
        from_client: bool,
    },
    /// Probe: the client sends, the server echoes.
    Probe,
}

impl Default for NetSpec {
    /// One TCP flow to the server at full rate for 10 s, after 1 s of warm-up.
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
    /// Checks the bounds that both ends support.
    ///
    /// # Errors
    /// The first violated bound.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |what: String| Err(SpecError(what));
        let roles = self.roles().len();
        if roles == 0 || roles > FLOWS_MAX as usize {
            return wrong(format!("{roles} flows: must be from 1 to {FLOWS_MAX}"));
        }
        let (least, most) = match self.protocol {
            Protocol::Tcp => (1, MESSAGE_BYTES_MAX),
            Protocol::Udp => (HEADER_BYTES, DATAGRAM_BYTES_MAX),
        };
        if !(least..=most).contains(&self.message_bytes) {
            return wrong(format!("messages of {} bytes: must be {least} to {most}", self.message_bytes));
        }
        if self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return wrong("the rate must be above 0".into());
        }
        if let Some(probe) = self.probe {
            if !(probe.per_second > 0.0 && probe.per_second <= PROBE_RATE_MAX) {
                return wrong(format!(
                    "the probe rate must be above 0 and at most {PROBE_RATE_MAX:.0} messages per second"
                ));
            }
            if !(HEADER_BYTES..=DATAGRAM_BYTES_MAX).contains(&probe.bytes) {
                return wrong(format!(
                    "probe messages must have {HEADER_BYTES} to {DATAGRAM_BYTES_MAX} bytes"
                ));
            }
        }
        if self.run.is_zero() || self.run > TIME_MAX || self.ramp > TIME_MAX {
            return wrong("the measurement time must be above 0 and at most 7 days".into());
        }
        let named = |name: &String| name.len() <= CONGESTION_CHARS_MAX && name.is_ascii() && !name.is_empty();
        if !self.congestion.as_ref().is_none_or(named) {
            return wrong("names of congestion controls have 1 to 15 letters".into());
        }
        Ok(())
    }

    /// All flows in the order of their numbers.
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

    /// Datagrams per segmentation-offload train.
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
