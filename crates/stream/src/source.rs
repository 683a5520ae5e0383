//! The simulated source: sends streams of events open loop, on the detector's own clock, over TCP.
//!
//! Event `n` of all streams together is due at a moment that follows from the plan alone, whatever happened
//! before. What becomes due enters a front-end buffer of bounded size; what finds it full is lost at the
//! source and counted, its sequence number used up. `Rate::Max` is the other mode, closed loop: as fast as
//! accepted.
//!
//! Map: `plan` (what to send), `schedule` (when, which stream), `size` (how large), `frontend` (the buffer
//! and the counts), all pure; `fill` (the bytes), `clock`, `lane` (one connection, one thread), `run` (all).

use std::sync::atomic::AtomicU64;

use hdrhistogram::Histogram;

use crate::client::ClientError;
use crate::ledger::Count;
use crate::wire::Bye;

pub use plan::{Burst, EventSize, Rate, SourcePlan};
pub use run::run;

mod clock;
mod fill;
mod frontend;
mod lane;
mod plan;
mod run;
mod schedule;
mod size;

/// Counts of a running source, all connections together. Written with relaxed order, read at any time by
/// others; the final truth is the [`SourceReport`].
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
    /// Bytes in the front-end buffers now (payload plus 64 bytes for each event).
    pub backlog_bytes: AtomicU64,
    /// Time spent waiting for room in sockets, ns, sum over connections.
    pub blocked_ns: AtomicU64,
    /// CPU time of the sending threads, ns.
    pub cpu_ns: AtomicU64,
}

/// What one stream came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamReport {
    /// Stream id.
    pub id: u32,
    /// Events that became due; always sent + lost.
    pub due: Count,
    /// Events handed to the kernel.
    pub sent: Count,
    /// Events lost at the source.
    pub lost: Count,
    /// First sequence number of this run: where the recorder said the stream goes on.
    pub first_sequence: u64,
    /// One past the last sequence number assigned.
    pub next_sequence: u64,
}

/// What a run of the source came to.
#[derive(Debug, Clone)]
pub struct SourceReport {
    /// Whether the source waited for the recorder (`Rate::Max`) rather than for its own clock.
    pub closed_loop: bool,
    /// One entry for each stream, by id.
    pub streams: Vec<StreamReport>,
    /// The recorder's final counts, by stream id; streams of a connection that broke are missing.
    pub bye: Bye,
    /// Events durable as the recorder last said: its final count, or its watermark if there was none.
    pub durable_events: u64,
    /// Time from due to the beginning of the send, ns, for every event sent; empty in a closed loop.
    pub lateness_ns: Histogram<u64>,
    /// Longest single wait for room in a socket, ns.
    pub longest_blocked_ns: u64,
    /// Time spent waiting for room in sockets, ns, sum over connections.
    pub blocked_ns: u64,
    /// Time slept because nothing was due, ns, sum over connections.
    pub idle_ns: u64,
    /// CPU time of the sending threads, ns.
    pub cpu_ns: u64,
    /// Start of the schedule, ns since the Unix epoch.
    pub started_unix_ns: u64,
    /// When the last event had been handed to the kernel, ns since the Unix epoch.
    pub ended_unix_ns: u64,
    /// From start to end on the monotonic clock, ns.
    pub elapsed_ns: u64,
    /// Most bytes in the front-end buffers, sum of each connection's maximum.
    pub max_backlog_bytes: u64,
}

impl SourceReport {
    /// Sum over the streams of what `count` picks.
    pub fn total(&self, count: impl Fn(&StreamReport) -> Count) -> Count {
        self.streams.iter().fold(Count::default(), |sum, stream| sum + count(stream))
    }
}

/// Why a source did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The plan cannot be carried out.
    #[error("planning the source: {what}")]
    Plan {
        /// What is wrong, perhaps with a hint.
        what: String,
    },
    /// A connection could not be opened; nothing was sent.
    #[error("opening connection {connection} of the source: {error}")]
    Connect {
        /// Which, from 0.
        connection: u32,
        /// Why.
        error: ClientError,
    },
    /// The operating system refused a thread or its affinity.
    #[error("starting the source's thread for connection {connection}: {what}")]
    Thread {
        /// Which, from 0.
        connection: u32,
        /// Why.
        what: String,
    },
    /// A connection broke during the run; the other connections were ended early and in good order.
    #[error("sending on connection {connection} of the source: {error}")]
    Broken {
        /// Which, from 0.
        connection: u32,
        /// Why.
        error: ClientError,
        /// Counts up to then.
        report: Box<SourceReport>,
    },
}
