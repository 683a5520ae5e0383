//! Account of a finished recording, as `record` prints it in text and JSON. The recorder fills it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_measure::histogram::LatencySummary;
use keepup_stream::ledger::{Count, Ledger, LossCause};
use keepup_stream::rejected::Rejected;
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
    /// Adds an incident.
    pub fn push(&mut self, what: String) {
        self.total += 1;
        if self.listed.len() < INCIDENTS_MAX {
            self.listed.push(what);
        }
    }

    /// Adds an incident unless it is listed: all volumes may report the same.
    pub fn push_new(&mut self, what: String) {
        if !self.listed.contains(&what) {
            self.push(what);
        }
    }

    /// Adds all incidents of `other`.
    pub fn append(&mut self, other: Self) {
        self.total += other.total;
        let left = INCIDENTS_MAX.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.into_iter().take(left));
    }
}

/// Runs of the command after sealed segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandCounts {
    /// Runs with exit status 0.
    pub succeeded: u64,
    /// Other runs.
    pub failed: u64,
    /// Segments for which the command was not run, because too many waited or the recording ended.
    pub skipped: u64,
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

/// Account of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordAccount {
    /// Identity of the recording, 32 hex digits.
    pub recording: String,
    /// Reason for the end.
    pub ended: String,
    /// NeXus master over all volumes, if it could be written.
    pub master: Option<PathBuf>,
    /// Whether everything that arrived is durable, no event is missing, and the recording has no defects and
    /// ended as requested.
    pub whole: bool,
    /// Whether its directories were removed, because it was stopped before the first event.
    pub removed: bool,
    /// Received events of all streams.
    pub received: Count,
    /// Written events.
    pub written: Count,
    /// Durable events.
    pub durable: Count,
    /// Missing events by cause.
    pub missing_events: BTreeMap<LossCause, u64>,
    /// Data that arrived and are not recorded.
    pub rejected: Vec<Rejected>,
    /// Account of every stream.
    pub ledger: Ledger,
    /// Time from the first event to the last durable byte; 0 without events.
    pub elapsed_seconds: f64,
    /// CPU time of the process, including kernel workers and the clearing of the pool.
    pub cpu_seconds: f64,
    /// CPU time of the data path threads.
    pub path_cpu_seconds: f64,
    /// CPU time of the intake that used most.
    pub intake_cpu: ThreadCpu,
    /// CPU time of every intake.
    pub intakes_cpu: Vec<ThreadCpu>,
    /// CPU time of the reducers; empty without reductions.
    pub reducers_cpu: Vec<ThreadCpu>,
    /// Stored events, reduced or not.
    pub stored: Count,
    /// Size of the block pool.
    pub pool_bytes: u64,
    /// Most pool memory in use.
    pub pool_bytes_used_max: u64,
    /// Time in which at least one connection waited for a free block.
    pub pool_wait_ns: u64,
    /// Longest stall of each stage.
    pub stalls: Stalls,
    /// Every volume, in the order given.
    pub volumes: Vec<VolumeAccount>,
    /// Runs of the command after sealed segments; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_seal: Option<CommandCounts>,
    /// Faults that did not end the recording.
    pub incidents: Incidents,
    /// Defects of the recording, though its events are durable.
    pub trouble: Vec<String>,
}

/// Account of one volume.
#[derive(Clone, Debug, Serialize)]
pub struct VolumeAccount {
    /// The recording's directory on it; `None` for the null target.
    pub directory: Option<PathBuf>,
    /// Engine that wrote: "io_uring", "pwrite" or "null".
    pub engine: String,
    /// Kind of memory it wrote from.
    pub buffers: String,
    /// Access to the files: "direct", "buffered" where the file system refused direct I/O, or "none" without
    /// files.
    pub access: String,
    /// Setting that slows it down, and the fix.
    pub note: Option<String>,
    /// Reason why it was taken out of rotation for good.
    pub failure: Option<String>,
    /// Latency of writes, from submission to confirmation.
    pub write_latency: LatencySummary,
    /// CPU time of the writer.
    pub cpu: ThreadCpu,
}
