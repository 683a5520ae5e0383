//! Result of `keepup net`: flows, cost at both ends, and datagram losses.
//!
//! Rates are payload bytes per second, MB = 10^6 bytes. `None` means "not measured" and is written
//! as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use keepup_measure::sum::Sums;

use crate::head::Kind;
use crate::latency::LatencyFigures;
use crate::load::LoadResult;
use crate::test::test_summary;

mod figures;

test_summary! {
    /// Result of a network test.
    pub struct NetSummary: Kind::Net, version 2 {
        /// All runs, in order.
        pub runs: Vec<NetRun>,
        /// Result of the search for the highest rate without loss, if any.
        pub finding: Option<NetRateFinding>,
    }
}

/// One run of the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetRun {
    /// Description of its settings, unique among compared runs.
    pub name: String,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// All flows, in the order of their numbers.
    pub flows: Vec<NetFlow>,
    /// Reports of the ends: the client first, then every server that completed.
    pub ends: Vec<NetEnd>,
    /// Datagram losses; only for datagrams with reports of all ends.
    pub ledger: Option<NetLedger>,
    /// Round-trip latency of the probe.
    pub latency: Option<NetLatency>,
    /// Results of the background loads.
    pub loads: Vec<LoadResult>,
}

/// One flow: bytes in one direction over one connection or pair of ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetFlow {
    /// Number within the run, from 0.
    pub number: u32,
    /// Address of the server.
    pub server: String,
    /// Whether the client sent; otherwise the server did.
    pub from_client: bool,
    /// Requested rate, bytes per second; `None` if unthrottled.
    pub target_bytes_per_second: Option<f64>,
    /// Data accepted by the sender's kernel in its window.
    pub sent: Option<NetMoved>,
    /// Data received in the receiver's window: the goodput.
    pub received: Option<NetMoved>,
    /// State of the sender's connection at the end; TCP only.
    pub sender: Option<NetTransport>,
    /// Effective receive buffer as counted by the kernel, bytes.
    pub receive_buffer_bytes: Option<u64>,
}

/// Data transferred at one end in the measurement window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetMoved {
    /// Payload bytes.
    pub bytes: u64,
    /// Messages or datagrams.
    pub messages: u64,
    /// Length of the window at this end, seconds.
    pub seconds: f64,
    /// Bytes in each 0.1 s of the window, in order.
    pub tenths: Vec<u64>,
}

/// Kernel statistics of a sender's connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetTransport {
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Smoothed round-trip time at the end, us.
    pub rtt_us: u32,
    /// Maximum segment size, bytes of payload.
    pub segment_bytes: u32,
    /// Path MTU, bytes with headers.
    pub path_mtu_bytes: Option<u32>,
    /// Active congestion control.
    pub congestion: Option<String>,
    /// Effective send buffer as counted by the kernel, bytes.
    pub send_buffer_bytes: u64,
}

/// One end of the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetEnd {
    /// `client`, or the address of a server.
    pub name: String,
    /// Length of its window, seconds.
    pub seconds: f64,
    /// CPU time of the process in the window, seconds; for a server over all its sessions.
    pub cpu_seconds: f64,
    /// Concurrent sessions of the process, which share the CPU time.
    pub sessions: u32,
    /// CPU time of the whole machine in the window, seconds, in ticks per core.
    pub machine_cpu_seconds: Option<f64>,
    /// Part of it in softirqs, which do the network receive work; seconds.
    pub softirq_seconds: Option<f64>,
    /// Time stolen by the hypervisor in the window, seconds.
    pub steal_seconds: Option<f64>,
    /// Cores of the machine.
    pub cores: Option<u32>,
    /// Host name, to recognize ends on the same machine.
    pub host: String,
    /// Interfaces towards the other ends, with their settings at the start.
    pub interfaces: Vec<NetInterface>,
}

/// Interface settings. `None`: unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetInterface {
    /// Name.
    pub name: String,
    /// MTU, bytes.
    pub mtu_bytes: Option<u64>,
    /// Link speed, Mbit/s.
    pub speed_mbit: Option<u64>,
    /// TCP segmentation offload (TSO).
    pub tso: Option<bool>,
    /// Generic segmentation offload (GSO).
    pub gso: Option<bool>,
    /// Generic receive offload (GRO).
    pub gro: Option<bool>,
    /// Large receive offload (LRO).
    pub lro: Option<bool>,
    /// Receive checksum offload.
    pub receive_checksum: Option<bool>,
}

/// Loss ledger of a run's datagrams, including warm-up and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetLedger {
    /// Datagrams that were due.
    pub due: u64,
    /// Of these, not sent: late, or refused by the kernel.
    pub unsent: u64,
    /// Of the unsent ones, refused by a full queue of the sending machine.
    pub refused: u64,
    /// Datagrams accepted by the kernel.
    pub sent: u64,
    /// Distinct datagrams received completely.
    pub received: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Reordered datagrams.
    pub reordered: u64,
    /// Sent but not received.
    pub lost: u64,
    /// Losses attributed to layers, each counted once.
    pub losses: Vec<NetLoss>,
    /// Losses not counted by any layer of either machine: the network between them.
    pub unexplained: u64,
    /// Datagrams of another origin.
    pub foreign: u64,
    /// Longest time in which a receiver with queued data read nothing, ns.
    pub longest_pause_ns: u64,
    /// Payload buffer for this pause at the rate of the fastest flow, bytes.
    pub buffer_needed_bytes: u64,
}

/// Datagrams lost in one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetLoss {
    /// Layer.
    pub layer: NetLayer,
    /// Lost datagrams attributed to it.
    pub datagrams: u64,
    /// Total growth of the layer's counters, including foreign traffic; coalesced datagrams count
    /// as one.
    pub counted: u64,
}

/// Layers that lose datagrams, in the order of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetLayer {
    /// Interface of the sending machine.
    SenderInterface,
    /// Interface of the receiving machine: ring overruns, errors and drops.
    Interface,
    /// Backlog queue of a core.
    Softirq,
    /// Fragment reassembly.
    Ip,
    /// Receive buffer of the socket.
    SocketBuffer,
    /// Receiver: longer than its buffer.
    Program,
}

/// Round-trip latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetLatency {
    /// Messages per second.
    pub per_second: f64,
    /// Message size, bytes.
    pub bytes: u64,
    /// Messages sent.
    pub sent: u64,
    /// Answers received.
    pub answered: u64,
    /// Latency from a message's due time to its answer; `None` without an answer.
    pub figures: Option<LatencyFigures>,
}

/// Result of the search for the highest rate without loss; payload bytes per second, all flows
/// together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetRateFinding {
    /// Highest rate tried: the generator's limit, or the requested one.
    pub ceiling_bytes_per_second: f64,
    /// Highest rate without loss below every rate with loss.
    pub knee_lower_bytes_per_second: Option<f64>,
    /// Lowest rate with loss.
    pub knee_upper_bytes_per_second: Option<f64>,
    /// Rate sustained for the whole soak.
    pub safe_bytes_per_second: Option<f64>,
    /// Losses per second that the soak cannot exclude at 95 % confidence: 3/T after T seconds
    /// without one.
    pub loss_events_per_second_max: Option<f64>,
    /// Longest pause of a receiver with queued datagrams in any trial, ns.
    pub longest_pause_ns: Option<u64>,
    /// Payload buffer for that pause at the rate of its trial, bytes.
    pub buffer_needed_bytes: Option<u64>,
    /// Reason for the end of the search.
    pub end: String,
}

impl NetMoved {
    /// Payload bytes per second; `None` if nothing was transferred.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl NetRun {
    /// Length of the shortest window of its receivers, seconds; `None` if nothing was received.
    pub(crate) fn window_seconds(&self) -> Option<f64> {
        let received = self.flows.iter().filter_map(|flow| flow.received.as_ref());
        received.map(|received| received.seconds).reduce(f64::min)
    }

    /// Goodput of all flows, or of one direction, bytes per second; `None` if nothing arrived.
    #[must_use]
    pub fn goodput(&self, from_client: Option<bool>) -> Option<f64> {
        let flows = self.flows.iter().filter(|flow| from_client.is_none_or(|side| flow.from_client == side));
        flows.filter_map(|flow| flow.received.as_ref()?.bytes_per_second()).reduce(|a, b| a + b)
    }

    /// Bytes received in the window, all flows.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.flows.iter().filter_map(|flow| flow.received.as_ref()).map(|moved| moved.bytes).saturating_sum()
    }
}
