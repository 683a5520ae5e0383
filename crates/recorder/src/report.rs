//! Report of a finished recording, by thread and by stream.
use std::fmt;
use std::path::PathBuf;

use keepup_measure::histogram::Latency;
use keepup_stream::ledger::Ledger;
use serde::{Deserialize, Serialize};

/// Most listed incidents; later ones are only counted.
const INCIDENTS_MAX: usize = 1000;

/// Faults that did not end the recording, in the order in which they happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incidents {
    /// The first incidents.
    pub listed: Vec<String>,
    /// Number of all incidents.
    pub total: u64,
}

impl Incidents {
    pub(crate) fn push(&mut self, what: String) {
        self.total += 1;
        if self.listed.len() < INCIDENTS_MAX {
            self.listed.push(what);
        }
    }
}

/// CPU time of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadCpu {
    /// Its name.
    pub name: String,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Time that it was runnable without a CPU, in nanoseconds, if the kernel reports it.
    pub run_delay_ns: Option<u64>,
}

/// Longest stall of each stage of a recording, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// The intake was busy or had no CPU, and did not poll the sockets.
    pub intake_ns: u64,
    /// A connection waited for a free block.
    pub pool_ns: u64,
    /// One per volume.
    pub volumes: Vec<VolumeStalls>,
}

/// Longest stalls of one volume, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeStalls {
    /// Blocks waited for the next segment.
    pub segment_ns: u64,
    /// A write took this long from submission to confirmation.
    pub write_ns: u64,
    /// A flush to stable storage took this long.
    pub flush_ns: u64,
}

/// Report of one volume.
#[derive(Clone, Debug)]
pub struct VolumeReport {
    /// The recording's directory on it; `None` for the null target.
    pub directory: Option<PathBuf>,
    /// The engine that wrote: "io_uring", "pwrite" or "null".
    pub engine: String,
    /// Kind of memory it wrote from.
    pub buffers: String,
    /// Whether direct I/O worked ("direct"), or the file system refused it ("buffered").
    pub access: String,
    /// Setting that slows it down, and the fix.
    pub note: Option<String>,
    /// Reason why it was taken out of rotation for good.
    pub failure: Option<String>,
    /// Latency of writes, from submission to confirmation.
    pub write_latency: Latency,
    /// CPU time of the writer.
    pub cpu: ThreadCpu,
}

/// Report of a recording.
#[derive(Clone, Debug)]
pub struct RecordReport {
    /// Identity of the recording, 32 hex digits.
    pub recording: String,
    /// NeXus master over all volumes, if it could be written.
    pub master: Option<PathBuf>,
    /// Account of every stream.
    pub ledger: Ledger,
    /// Every volume, in the order given.
    pub volumes: Vec<VolumeReport>,
    /// Size of the block pool, in bytes.
    pub pool_bytes: u64,
    /// Most pool memory in use, in bytes.
    pub pool_bytes_used_max: u64,
    /// Page kind of the pool.
    pub pool_pages: String,
    /// CPU time of the intake.
    pub intake_cpu: ThreadCpu,
    /// CPU time of the reducers; empty without reductions.
    pub reducers_cpu: Vec<ThreadCpu>,
    /// Time in which at least one connection waited for a free block, in nanoseconds.
    pub pool_wait_ns: u64,
    /// Longest stall of each stage.
    pub stalls: Stalls,
    /// Time from the first event to the last durable byte, in nanoseconds; 0 without events.
    pub elapsed_ns: u64,
    /// Faults that did not end the recording.
    pub incidents: Incidents,
    /// Defects of the recording, though its events are durable: a journal that could not be
    /// written, a segment that could not be sealed, a ledger that does not balance.
    pub trouble: Vec<String>,
    /// Reason for the end.
    pub ended: Ended,
    /// The limit that stopped it, if any, as in "1000 events".
    pub limit: Option<String>,
    /// Whether its directories were removed, because it was stopped before the first event.
    pub removed: bool,
}

/// Reason why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All sources sent end.
    EndOfRun,
    /// A stop was requested.
    Stopped,
    /// No volume takes blocks any more, with the cause.
    VolumesFailed(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfRun => f.write_str("all sources have ended"),
            Self::Stopped => f.write_str("stopped on request"),
            Self::VolumesFailed(why) => write!(f, "no volume takes more data: {why}"),
        }
    }
}

impl RecordReport {
    /// Reason for the end, including the limit if there was one.
    pub fn why_ended(&self) -> String {
        match (&self.ended, &self.limit) {
            (Ended::Stopped, Some(limit)) => format!("stopped after {limit}, as asked"),
            (ended, _) => ended.to_string(),
        }
    }

    /// Whether everything received is durable, the recording has no defects, and it ended by
    /// itself or on request.
    pub fn is_whole(&self) -> bool {
        !matches!(self.ended, Ended::VolumesFailed(_)) && self.ledger.is_whole() && self.trouble.is_empty()
    }

    /// CPU time of every thread of the data path.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadCpu> {
        let volumes = self.volumes.iter().map(|volume| &volume.cpu);
        std::iter::once(&self.intake_cpu).chain(&self.reducers_cpu).chain(volumes)
    }

    /// Missing events, except for losses that the source declared itself.
    pub fn lost_events(&self) -> u64 {
        let total = self.ledger.total();
        let missing: u64 = total.gap_events.values().sum();
        missing.saturating_sub(total.lost_at_source.events)
    }
}
