//! Messages between hosts and the controller.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::clock::Offset;
pub use crate::placement::HostId;
use crate::placement::Update;

/// Version of the messages. Hosts of another version are refused.
pub const VERSION: u32 = 4;

/// What a host does in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Records streams.
    Recorder,
    /// Sends streams.
    Source,
    /// A recorder that waits until another is lost.
    Spare,
    /// Receives copies of what recorders have recorded.
    Drain,
}

impl Role {
    /// Whether the host records, or may have to.
    #[must_use]
    pub const fn records(self) -> bool {
        matches!(self, Self::Recorder | Self::Spare)
    }
}

/// State of a host, with the number of its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum HostState {
    /// In no run.
    Idle,
    /// Prepares.
    Preparing {
        /// Number of the run.
        run: u64,
    },
    /// Prepared.
    Ready {
        /// Number of the run.
        run: u64,
        /// Where sources reach it, if it is a recorder.
        address: Option<SocketAddr>,
    },
    /// Takes part, from the time of the start on.
    Running {
        /// Number of the run.
        run: u64,
    },
    /// Ends its part.
    Finishing {
        /// Number of the run.
        run: u64,
    },
    /// Has ended its part.
    Finished {
        /// Number of the run.
        run: u64,
        /// Its result, as the run defines it.
        outcome: String,
    },
    /// Could not prepare, or failed later.
    Failed {
        /// Number of the run.
        run: u64,
        /// Cause.
        why: String,
    },
}

impl HostState {
    /// Number of the run; none if idle.
    #[must_use]
    pub const fn run(&self) -> Option<u64> {
        match self {
            Self::Idle => None,
            Self::Preparing { run }
            | Self::Ready { run, .. }
            | Self::Running { run }
            | Self::Finishing { run }
            | Self::Finished { run, .. }
            | Self::Failed { run, .. } => Some(*run),
        }
    }

    /// Whether its part of the run is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Failed { .. })
    }
}

/// What a host counts during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Events sent or received.
    pub events: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events acknowledged as durable: to the source, or by the recorder.
    pub durable_events: u64,
    /// Streams whose client is connected to this recorder.
    pub connected_streams: u32,
    /// Streams whose client has sent end to this recorder.
    pub ended_streams: u32,
    /// Bytes of segments that the recorder has sent to its drain host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drained_bytes: u64,
    /// Events that are durable on the drain host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_events: u64,
    /// Bytes of durable segments that were not sent to the drain host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub behind_bytes: u64,
}

/// What a recorder reports beside its counters: about once per second, to keep heartbeats short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Payload on stable storage, bytes.
    pub durable_bytes: u64,
    /// Missing events by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, u64>,
    /// Data of sources that arrived and are not recorded, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, u64>,
    /// The same for data of strangers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub foreign: BTreeMap<String, u64>,
    /// Size of the pool, bytes.
    pub pool_bytes: u64,
    /// Used, bytes.
    pub pool_used_bytes: u64,
    /// Time for which sources have waited for a free block, ns.
    pub pool_wait_ns: u64,
    /// Volumes in the order of the recorder's plan.
    pub volumes: Vec<VolumeHealth>,
    /// Current warnings of the recorder, worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// State of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeHealth {
    /// Bytes written in whole blocks.
    #[serde(rename = "written")]
    pub written_bytes: u64,
    /// Free space of its file system, bytes; none if unknown.
    #[serde(rename = "free", default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Size of its file system, bytes; none if unknown.
    #[serde(rename = "size", default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Age of the oldest write or flush in flight, ns.
    #[serde(rename = "oldest", default, skip_serializing_if = "is_zero")]
    pub oldest_ns: u64,
    /// Longest write or flush so far, ns.
    #[serde(rename = "longest")]
    pub longest_ns: u64,
    /// Whether it takes no more data.
    #[serde(rename = "failed", default, skip_serializing_if = "std::ops::Not::not")]
    pub has_failed: bool,
}

/// For serde, which passes a reference.
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// From a host: its whole state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// [`VERSION`] of the host.
    pub version: u32,
    /// The host.
    pub host: HostId,
    /// Differs for each start of the host's program.
    pub incarnation: u64,
    /// Number of this heartbeat, from 1 for each incarnation.
    pub number: u64,
    /// When it was sent, by the host's clock, ns.
    pub sent_ns: u64,
    /// State of the host.
    pub state: HostState,
    /// Epoch of the host's view; 0 without one.
    pub epoch: u64,
    /// The controller's clock as the host knows it.
    pub clock: Option<Offset>,
    /// Counters of the run.
    pub counters: Counters,
    /// More figures of a recorder, about once per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Box<Health>>,
}

/// What a host should do. A host that is in another run ends that first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "do")]
pub enum Goal {
    /// Nothing.
    Idle,
    /// Prepare.
    Prepare {
        /// Number of the run.
        run: u64,
        /// Part of the host, as the run defines it.
        plan: String,
    },
    /// Start.
    Run {
        /// Number of the run.
        run: u64,
        /// When to start, by the controller's clock, ns.
        start_ns: u64,
    },
    /// End its part.
    Finish {
        /// Number of the run.
        run: u64,
        /// Without what is only copied: a recorder does not wait for its drain.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_once: bool,
    },
    /// End its part and exit.
    Leave {
        /// Why.
        why: String,
    },
}

/// From the controller: what a host should do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Differs for each start of a controller.
    pub controller: u64,
    /// The host.
    pub host: HostId,
    /// Its incarnation.
    pub incarnation: u64,
    /// Number of this order, from 1 for each controller.
    pub number: u64,
    /// `sent_ns` of the host's latest heartbeat, ns.
    pub echo_ns: u64,
    /// When that heartbeat arrived, by the controller's clock, ns.
    pub received_ns: u64,
    /// When this order was sent, by the controller's clock, ns.
    pub sent_ns: u64,
    /// What to do.
    pub goal: Goal,
    /// Epoch of the controller's view. The order renews the lease of a host that has this view.
    pub epoch: u64,
    /// What the host's view lacks.
    pub view: Option<Update>,
}
