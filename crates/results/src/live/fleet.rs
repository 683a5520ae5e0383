//! Figures of a recording on several hosts at one moment.
//!
//! Totals count from the start of the run and never decrease; rates are over the time since the previous
//! sample. Unavailable figures are null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::Count;

/// Figures of a recording on several hosts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetNow {
    /// Time, ns since the Unix epoch.
    pub t_unix_ns: u64,
    /// Time since the start of the run, seconds.
    pub seconds: f64,
    /// Name of the fleet.
    pub fleet: String,
    /// Sum of all hosts, including lost ones.
    pub flow: FleetFlow,
    /// Recorders and spares, in the order of the fleet file.
    pub hosts: Vec<FleetHost>,
    /// Streams that moved, oldest first.
    pub moves: Vec<FleetMove>,
    /// What has failed: data may be missing, or a recorder no longer records.
    pub failures: Vec<String>,
    /// Current warnings, worst first; the failures are among them.
    pub warnings: Vec<String>,
}

/// Counts of all hosts, or of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFlow {
    /// Received completely and in order.
    pub received: Count,
    /// Durable.
    pub durable: Count,
    /// Rate of received data, bytes per second.
    pub received_bytes_per_second: f64,
    /// Rate of durable data, bytes per second.
    pub durable_bytes_per_second: f64,
    /// Rate of received events per second.
    pub received_events_per_second: f64,
    /// Missing events so far, by cause.
    pub missing: BTreeMap<String, u64>,
    /// Missing events so far.
    pub missing_events: u64,
    /// Data of sources that arrived and are not recorded so far, by reason.
    #[serde(default)]
    pub rejected: BTreeMap<String, u64>,
    /// The same for data of strangers, who were never admitted and not asked for.
    #[serde(default)]
    pub foreign: BTreeMap<String, u64>,
    /// Streams whose client is connected.
    pub connected_streams: u64,
    /// Streams whose client has sent end.
    pub ended_streams: u64,
}

/// State of a host in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetHostState {
    /// It has not joined the fleet.
    #[default]
    Missing,
    /// It has joined, and the run has not started.
    Preparing,
    /// A spare that has no streams.
    Reserve,
    /// It records streams.
    Recording,
    /// It ends its recording.
    Ending,
    /// It has ended its recording.
    Ended,
    /// It was lost: its streams moved.
    Lost,
    /// It failed.
    Failed,
}

impl FleetHostState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Missing,
        Self::Preparing,
        Self::Reserve,
        Self::Recording,
        Self::Ending,
        Self::Ended,
        Self::Lost,
        Self::Failed,
    ];

    /// Name in JSON and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Preparing => "preparing",
            Self::Reserve => "reserve",
            Self::Recording => "recording",
            Self::Ending => "ending",
            Self::Ended => "ended",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

/// A recorder or spare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetHost {
    /// Name.
    pub name: String,
    /// `recorder` or `spare`.
    pub role: String,
    /// State.
    pub state: FleetHostState,
    /// Why it is lost, failed or missing.
    pub why: Option<String>,
    /// Event counts and rates.
    pub flow: FleetFlow,
    /// Its pool; null before the first report.
    pub pool: Option<FleetPool>,
    /// Its volumes in the order of the fleet file; empty before the first report.
    pub volumes: Vec<FleetVolume>,
    /// The controller's clock less that of the host, seconds; null before the first exchange.
    pub clock_offset_seconds: Option<f64>,
    /// Largest error of the offset, seconds.
    pub clock_error_seconds: Option<f64>,
    /// Age of the latest heartbeat, seconds; null before the first.
    pub heartbeat_age_seconds: Option<f64>,
}

/// Block pool of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetPool {
    /// Size, bytes.
    pub bytes: u64,
    /// Used, bytes.
    pub used_bytes: u64,
    /// Stall that the free part bridges at the current rate, seconds; null without a rate.
    pub room_seconds: Option<f64>,
    /// Total time in which a connection waited for a free block, seconds.
    pub wait_seconds: f64,
}

/// Volume of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetVolume {
    /// Directory of the recording.
    pub path: String,
    /// Bytes written in whole blocks.
    pub written_bytes: u64,
    /// Age of the oldest write or flush in flight, seconds; 0 without one.
    pub stalled_seconds: f64,
    /// Longest write or flush so far, seconds.
    pub longest_seconds: f64,
    /// Whether it takes no more data.
    pub failed: bool,
    /// Free space of its file system, bytes.
    pub free_bytes: Option<u64>,
    /// Size of its file system, bytes.
    pub total_bytes: Option<u64>,
}

/// Streams that moved to another recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetMove {
    /// Host that had them.
    pub from: String,
    /// Host that took them; null: they are distributed over all recorders that are left.
    pub to: Option<String>,
    /// When, ns since the Unix epoch.
    pub at_unix_ns: u64,
}

impl std::fmt::Display for FleetMove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let to = self.to.as_deref().unwrap_or("the other recorders");
        write!(f, "the streams of {} moved to {to}", self.from)
    }
}
