//! What `keepup net` found: the flows of a test, what both ends paid for them, and where datagrams went.
//!
//! Rates are bytes of payload per second, MB = 10^6 bytes. `None` means "not measured" and is written as
//! null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyFigures;
use crate::load::LoadResult;
use crate::summary::Kind;
use crate::test::test_summary;

mod figures;

test_summary! {
    /// What one network test found.
    pub struct NetSummary: Kind::Net, version 2 {
        /// Every run, in the order in which they were made.
        pub runs: Vec<NetRun>,
        /// The highest rate without loss, where it was searched for.
        pub finding: Option<NetRateFinding>,
    }
}

/// One run of the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetRun {
    /// Its settings in words, unique among those that are compared.
    pub name: String,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// All flows, in the order in which they were opened.
    pub flows: Vec<NetFlow>,
    /// What each end says of itself: the client first, then every server that came to its end.
    pub ends: Vec<NetEnd>,
    /// Where the datagrams went; of datagrams only, and only when both ends came to their end.
    pub ledger: Option<NetLedger>,
    /// Time there and back beside the flows, or of the flow that does nothing else.
    pub latency: Option<NetLatency>,
    /// What the background loads did meanwhile.
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
    /// Whether the client sent; else the server did.
    pub from_client: bool,
    /// Rate asked for, bytes per second; `None` when it went as fast as it could.
    pub target_bytes_per_second: Option<f64>,
    /// What the sender handed to the kernel within its window.
    pub sent: Option<NetMoved>,
    /// What the receiver took from the kernel within its window: the goodput.
    pub received: Option<NetMoved>,
    /// The sender's side of the connection at the end; of TCP only.
    pub sender: Option<NetTransport>,
    /// Receive buffer in force at the receiver, as the kernel counts it, bytes.
    pub receive_buffer_bytes: Option<u64>,
}

/// Bytes that moved at one end within the window that counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetMoved {
    /// Bytes of payload.
    pub bytes: u64,
    /// Messages, or datagrams, begun or received.
    pub messages: u64,
    /// Length of the window at this end, seconds.
    pub seconds: f64,
    /// Bytes in each tenth of a second of the window, in order.
    pub tenths: Vec<u64>,
}

/// A connection as its sender's kernel knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetTransport {
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Smoothed time to the peer and back at the end, us.
    pub rtt_us: u32,
    /// Largest segment, bytes of payload.
    pub segment_bytes: u32,
    /// Largest packet of the path, bytes with its headers.
    pub path_mtu_bytes: Option<u32>,
    /// Congestion control in force.
    pub congestion: Option<String>,
    /// Send buffer in force, as the kernel counts it, bytes.
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
    /// CPU of the process within the window, seconds: of a server, for all whom it served meanwhile.
    pub cpu_seconds: f64,
    /// Sessions that the process had at the same time; the CPU is theirs together.
    pub sessions: u32,
    /// CPU of the whole machine meanwhile, seconds; in steps of a tick of each core.
    pub machine_cpu_seconds: Option<f64>,
    /// Of that, deferred interrupts, where the network's receive work is done; seconds.
    pub softirq_seconds: Option<f64>,
    /// What the hypervisor gave to others meanwhile, seconds.
    pub steal_seconds: Option<f64>,
    /// Cores of the machine.
    pub cores: Option<u32>,
    /// Name of the machine, to tell whether two ends share one.
    pub host: String,
    /// The interfaces that lead to the other ends, as they were set when the test began.
    pub interfaces: Vec<NetInterface>,
}

/// An interface and what it does for the kernel. `None`: it does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetInterface {
    /// Its name.
    pub name: String,
    /// Largest packet, bytes.
    pub mtu_bytes: Option<u64>,
    /// Speed of the link, Mbit/s.
    pub speed_mbit: Option<u64>,
    /// Whether it cuts what TCP sends (TSO).
    pub tso: Option<bool>,
    /// Whether what is sent is cut late in the kernel (GSO).
    pub gso: Option<bool>,
    /// Whether the kernel joins received packets of one flow early (GRO).
    pub gro: Option<bool>,
    /// Whether the card joins them (LRO).
    pub lro: Option<bool>,
    /// Whether it checks the checksums of what it receives.
    pub receive_checksum: Option<bool>,
}

/// Where the datagrams of a run went, warm-up and end included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetLedger {
    /// Datagrams that were due.
    pub due: u64,
    /// Of these, what the senders did not hand over: they were late, or it was refused.
    pub unsent: u64,
    /// Of what was not handed over, what a full queue of the sending machine refused.
    pub refused: u64,
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// Different datagrams that arrived whole.
    pub received: u64,
    /// Datagrams that arrived once more.
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Sent and not received.
    pub lost: u64,
    /// What is known of where they were lost, layer by layer; none twice.
    pub losses: Vec<NetLoss>,
    /// Lost, and counted by no layer of either machine: the network between them.
    pub unexplained: u64,
    /// Datagrams that were not of this test.
    pub foreign: u64,
    /// Longest time in which a receiver that was sent to took nothing from the kernel, ns.
    pub longest_pause_ns: u64,
    /// Buffer that bridges this pause at the rate of the fastest flow, bytes of payload.
    pub buffer_needed_bytes: u64,
}

/// Datagrams lost in one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetLoss {
    /// Which.
    pub layer: NetLayer,
    /// How many of the lost ones.
    pub datagrams: u64,
    /// What the layer's counters grew by in all, others' traffic included; where the kernel joins
    /// datagrams, it counts several as one.
    pub counted: u64,
}

/// Layers that lose datagrams, in the order in which a datagram passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetLayer {
    /// The sending machine's interface.
    SenderInterface,
    /// The receiving machine's interface: ring full, broken or thrown away.
    Interface,
    /// A core's queue of received packets was full.
    Softirq,
    /// Fragments that could not be put together.
    Ip,
    /// The socket's receive buffer was full.
    SocketBuffer,
    /// The receiver's own: longer than the room for it.
    Program,
}

/// Time there and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetLatency {
    /// Messages due each second.
    pub per_second: f64,
    /// Size of a message, bytes.
    pub bytes: u64,
    /// Messages sent.
    pub sent: u64,
    /// Answers that came.
    pub answered: u64,
    /// From when a message was due to its answer; `None` without an answer.
    pub figures: Option<LatencyFigures>,
}

/// What a search for the highest rate without loss found; bytes of payload per second, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetRateFinding {
    /// Highest rate tried: what the generator did by itself, or what was asked for.
    pub ceiling_bytes_per_second: f64,
    /// Highest rate without loss below every rate with loss.
    pub knee_lower_bytes_per_second: Option<f64>,
    /// Lowest rate with loss.
    pub knee_upper_bytes_per_second: Option<f64>,
    /// The rate that then held for the whole soak.
    pub safe_bytes_per_second: Option<f64>,
    /// Losses per second that the soak cannot exclude at 95 %: 3/T after T seconds without one.
    pub loss_events_per_second_max: Option<f64>,
    /// Longest pause of a receiver with datagrams waiting, in any trial, ns.
    pub longest_pause_ns: Option<u64>,
    /// Buffer that bridges it at the rate of that trial, bytes of payload.
    pub buffer_needed_bytes: Option<u64>,
    /// Why the search ended.
    pub end: String,
}

impl NetMoved {
    /// Bytes of payload per second; `None` when nothing moved.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }
}

impl NetRun {
    /// Goodput of all flows, or of those in one direction, bytes per second; `None` when nothing arrived.
    #[must_use]
    pub fn goodput(&self, from_client: Option<bool>) -> Option<f64> {
        let flows = self.flows.iter().filter(|flow| from_client.is_none_or(|side| flow.from_client == side));
        flows.filter_map(|flow| flow.received.as_ref()?.bytes_per_second()).reduce(|a, b| a + b)
    }

    /// Bytes that arrived within the window, all flows.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.flows.iter().filter_map(|flow| flow.received.as_ref()).map(|moved| moved.bytes).sum()
    }
}
