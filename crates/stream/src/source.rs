//! Simulated source: sends streams of events over TCP in an open loop, on the detector's own
//! clock.
//!
//! Event `n` of all streams is due at a time that depends on the plan alone, whatever happened
//! before. A due event enters a front-end buffer of bounded size; if the buffer is full, the
//! event is lost at the source and counted, and its sequence number is used up. `Rate::Max` is
//! the closed loop: as fast as the recorder accepts.
//!
//! Modules: `plan` (what to send), `schedule` (when, which stream), `size` (how large), `event`
//! (one event with all of these), `frontend` (buffer and counts), all pure; `fill` (bytes),
//! `images` (bytes of compressed images), `clock`, `link` (how events reach the recorder), `lane`
//! (one connection, one thread), `fleet` (the same over several recorders), `run` (all connections).

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

use hdrhistogram::Histogram;
use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_measure::sum::Sums;
use keepup_peer::Endpoint;
use serde::{Deserialize, Serialize};

use crate::client::ClientError;
use crate::ledger::Count;
use crate::wire::Bye;

pub use fleet::Fleet;
pub use link::{Door, Folder, subscription};
pub use plan::{Burst, DectrisVersion, EventSize, Protocol, Rate, SourcePlan};
pub use run::run;

mod clock;
mod event;
mod fill;
mod fleet;
mod frontend;
mod images;
mod lane;
mod link;
mod plan;
mod run;
mod schedule;
mod size;

/// Name of the PV of a simulated areaDetector IOC.
pub const PV_NAME: &str = "SIM:Pva1:Image";

/// Where a source sends.
#[derive(Debug, Clone)]
pub enum Destination {
    /// Address of the recorder.
    Recorder(Endpoint),
    /// Several recorders, each of which takes some of the streams.
    Fleet(Fleet),
    /// A recorder that connects to the source.
    Accept(Door),
    /// A directory from which a recorder takes files.
    Directory(Folder),
}

impl From<Endpoint> for Destination {
    fn from(endpoint: Endpoint) -> Self {
        Self::Recorder(endpoint)
    }
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Self {
        Self::Recorder(address.into())
    }
}

/// Live counters of a running source, over all connections. Written with relaxed order and read
/// at any time; the final counts are in the [`SourceReport`].
#[derive(Debug, Default)]
pub struct SourceCounters {
    /// Events that have become due.
    pub due_events: AtomicU64,
    /// Their payload, bytes.
    pub due_bytes: AtomicU64,
    /// Events handed to the kernel.
    pub sent_events: AtomicU64,
    /// Their payload, bytes.
    pub sent_bytes: AtomicU64,
    /// Events lost at the source.
    pub lost_events: AtomicU64,
    /// Their payload, bytes.
    pub lost_bytes: AtomicU64,
    /// Bytes in the front-end buffers now (payload plus 64 bytes per event).
    pub backlog_bytes: AtomicU64,
    /// Time spent waiting for space in sockets, ns, sum over connections.
    pub blocked_ns: AtomicU64,
    /// CPU time of the sending threads, ns.
    pub cpu_ns: AtomicU64,
}

/// Counts of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamReport {
    /// Stream id.
    pub id: u32,
    /// Events that became due; always sent + lost.
    pub due: Count,
    /// Events handed to the kernel.
    pub sent: Count,
    /// Events lost at the source.
    pub lost: Count,
    /// First sequence number of this run, from the recorder's welcome.
    pub first_sequence: u64,
    /// One past the last sequence number assigned.
    pub next_sequence: u64,
}

/// What a source of a fleet reports in addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetReport {
    /// Events that a recorder has acknowledged, each counted once.
    pub acknowledged: Count,
    /// Acknowledged events that the recorders have lost, with a failed volume for example.
    pub lost_at_recorders: u64,
    /// Repeated transmissions of events, which `sent` does not count.
    pub sent_again: Count,
    /// Moves of a stream to another recorder.
    pub moved_streams: u64,
    /// Longest time for which a stream had no recorder, ns.
    pub longest_without_recorder_ns: u64,
}

impl FleetReport {
    /// Durable events.
    #[must_use]
    pub fn durable_events(&self) -> u64 {
        self.acknowledged.events.saturating_sub(self.lost_at_recorders)
    }

    /// Durable bytes; `None` if recorders have lost events, because acknowledgements count events only.
    #[must_use]
    pub fn durable_bytes(&self) -> Option<u64> {
        (self.lost_at_recorders == 0).then_some(self.acknowledged.bytes)
    }

    /// Adds the report of another connection.
    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.lost_at_recorders = self.lost_at_recorders.saturating_add(other.lost_at_recorders);
        self.sent_again += other.sent_again;
        self.moved_streams += other.moved_streams;
        self.longest_without_recorder_ns =
            self.longest_without_recorder_ns.max(other.longest_without_recorder_ns);
    }
}

/// Report of a source's run.
#[derive(Debug, Clone)]
pub struct SourceReport {
    /// Whether the recorder set the pace (`Rate::Max`), not the schedule.
    pub closed_loop: bool,
    /// One entry per stream, by id.
    pub streams: Vec<StreamReport>,
    /// The recorder's final counts, by stream id; streams of a broken connection are missing.
    pub bye: Bye,
    /// Durable events: the recorder's final count, or its last watermark without one. 0 if the protocol has
    /// no acknowledgements.
    pub durable_events: u64,
    /// Whether the recorder acknowledges events.
    pub is_acknowledged: bool,
    /// Time from due to the start of the send, ns, for every event sent; empty in a closed loop.
    pub lateness_ns: Histogram<u64>,
    /// Longest single wait for space in a socket, ns.
    pub longest_blocked_ns: u64,
    /// Time spent waiting for space in sockets, ns, sum over connections.
    pub blocked_ns: u64,
    /// Time slept with no event due, ns, sum over connections.
    pub idle_ns: u64,
    /// CPU time of the sending threads, ns.
    pub cpu_ns: u64,
    /// Start of the schedule, ns since the Unix epoch.
    pub started_unix_ns: u64,
    /// Time at which the last event was handed to the kernel, ns since the Unix epoch.
    pub ended_unix_ns: u64,
    /// Elapsed time on the monotonic clock, ns.
    pub elapsed_ns: u64,
    /// Most bytes in the front-end buffers, sum of the connections' maxima.
    pub max_backlog_bytes: u64,
    /// Of a source of a fleet. It keeps events until they are acknowledged, so its backlog contains these.
    pub fleet: Option<FleetReport>,
}

impl SourceReport {
    /// Sum over the streams of the count selected by `count`.
    pub fn total(&self, count: impl Fn(&StreamReport) -> Count) -> Count {
        self.streams.iter().fold(Count::default(), |sum, stream| sum + count(stream))
    }

    /// Durable bytes; `None` without the recorder's final counts, because acknowledgements count events only.
    pub fn durable_bytes(&self) -> Option<u64> {
        if let Some(fleet) = &self.fleet {
            return fleet.durable_bytes();
        }
        let is_complete = self.bye.streams.len() == self.streams.len();
        is_complete.then(|| self.bye.streams.iter().map(|stream| stream.durable_bytes).saturating_sum())
    }

    /// The report as `source --json` prints it.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let (due, sent, lost) = (self.total(|s| s.due), self.total(|s| s.sent), self.total(|s| s.lost));
        let seconds = self.elapsed_ns.max(1) as f64 / 1e9;
        let lateness = |quantile: f64| self.lateness_ns.value_at_quantile(quantile);
        let mut report = serde_json::json!({
            "closed_loop": self.closed_loop,
            "due": due, "sent": sent, "lost_at_source": lost,
            "durable": self.is_acknowledged.then(|| {
                serde_json::json!({"events": self.durable_events, "bytes": self.durable_bytes()})
            }),
            "seconds": seconds,
            "bytes_per_second": sent.bytes as f64 / seconds,
            "lateness_ns": {
                "p50": lateness(0.5), "p99": lateness(0.99), "p99_9": lateness(0.999),
                "max": self.lateness_ns.max(),
            },
            "blocked_seconds": self.blocked_ns as f64 / 1e9,
            "longest_blocked_ns": self.longest_blocked_ns,
            "backlog_bytes_max": self.max_backlog_bytes,
            "cpu_seconds": self.cpu_ns as f64 / 1e9,
            "streams": self.streams.iter().map(|s| serde_json::json!({
                "id": s.id, "due": s.due, "sent": s.sent, "lost": s.lost,
                "first_sequence": s.first_sequence, "next_sequence": s.next_sequence,
            })).collect::<Vec<_>>(),
        });
        if let Some(fleet) = &self.fleet {
            report["fleet"] = serde_json::json!({
                "sent_again": fleet.sent_again,
                "moved_streams": fleet.moved_streams,
                "longest_without_recorder_seconds": fleet.longest_without_recorder_ns as f64 / 1e9,
                "lost_at_recorders": fleet.lost_at_recorders,
            });
        }
        report
    }
}

/// Error of a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Invalid plan.
    #[error("cannot plan the source: {what}")]
    Plan {
        /// Problem.
        what: Cause,
    },
    /// A connection could not be opened; nothing was sent.
    #[error("cannot open connection {connection} of the source: {error}")]
    Connect {
        /// Connection, from 0.
        connection: u32,
        /// Cause.
        error: ClientError,
    },
    /// The operating system refused a thread or its affinity.
    #[error("cannot start the source's thread for connection {connection}: {what}")]
    Thread {
        /// Connection, from 0.
        connection: u32,
        /// Cause.
        what: Cause,
    },
    /// A connection broke during the run; the others were ended early and in order.
    #[error("cannot send on connection {connection} of the source: {error}")]
    Broken {
        /// Connection, from 0.
        connection: u32,
        /// Cause.
        error: ClientError,
        /// Counts up to then.
        report: Box<SourceReport>,
    },
}

impl Diagnostic for SourceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Plan { .. } => ErrorClass::Usage,
            Self::Broken { .. } => ErrorClass::Failed,
            Self::Connect { .. } | Self::Thread { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Plan { what } | Self::Thread { what, .. } => what.hint(),
            Self::Connect { error, .. } | Self::Broken { error, .. } => error.hint(),
        }
    }
}
