//! What a recording came to, thread by thread and stream by stream.
use std::fmt;
use std::path::PathBuf;

use keepup_measure::histogram::Latency;
use keepup_stream::ledger::Ledger;
use serde::{Deserialize, Serialize};

/// Incidents listed; later ones are only counted.
const INCIDENTS_MAX: usize = 1000;

/// Things that went wrong and did not end the recording, in the order in which they happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incidents {
    /// The first of them.
    pub listed: Vec<String>,
    /// All of them.
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

/// CPU of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadCpu {
    /// Its name.
    pub name: String,
    /// Time on a processor, in nanoseconds.
    pub cpu_ns: u64,
    /// Time it was ready to run and had no processor, in nanoseconds, where the kernel tells.
    pub run_delay_ns: Option<u64>,
}

/// The longest time that each stage of a recording held up what came behind it, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// The intake was at work, or without a processor, and did not look at the sockets.
    pub intake_ns: u64,
    /// A connection waited for a free block.
    pub pool_ns: u64,
    /// Every volume.
    pub volumes: Vec<VolumeStalls>,
}

/// The same for one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeStalls {
    /// Blocks waited for the next segment.
    pub segment_ns: u64,
    /// A write, from submission to confirmation.
    pub write_ns: u64,
    /// A flush to stable storage.
    pub flush_ns: u64,
}

/// How one volume did.
#[derive(Clone, Debug)]
pub struct VolumeReport {
    /// The recording's directory on it; nothing for the null target.
    pub directory: Option<PathBuf>,
    /// The engine that wrote: "io_uring", "pwrite" or "null".
    pub engine: String,
    /// What memory it wrote from.
    pub buffers: String,
    /// Whether direct I/O held ("direct"), or the file system refused it ("buffered").
    pub access: String,
    /// What is slower than it could be, and what helps.
    pub note: Option<String>,
    /// Why it was taken out of rotation, if it was.
    pub failure: Option<String>,
    /// Writes from submission to confirmation.
    pub write_latency: Latency,
    /// The writer's CPU.
    pub cpu: ThreadCpu,
}

/// What a recording came to.
#[derive(Clone, Debug)]
pub struct RecordReport {
    /// Identity of the recording, 32 hex digits.
    pub recording: String,
    /// The NeXus master over all volumes, when it could be written.
    pub master: Option<PathBuf>,
    /// Account of every stream.
    pub ledger: Ledger,
    /// Every volume, in the order given.
    pub volumes: Vec<VolumeReport>,
    /// Size of the block pool, in bytes.
    pub pool_bytes: u64,
    /// Most of it in use at a time, in bytes.
    pub pool_bytes_used_max: u64,
    /// What the pool is made of.
    pub pool_pages: String,
    /// The intake's CPU.
    pub intake_cpu: ThreadCpu,
    /// CPU of the threads that reduce; none where nothing is reduced.
    pub reducers_cpu: Vec<ThreadCpu>,
    /// Time in which some connection waited for a free block, in nanoseconds.
    pub pool_wait_ns: u64,
    /// The longest of each stage.
    pub stalls: Stalls,
    /// From the first event to the last durable byte, in nanoseconds; 0 when nothing came.
    pub elapsed_ns: u64,
    /// What went wrong on the way.
    pub incidents: Incidents,
    /// What the recording lacks to be whole though its events are durable: a journal that could not be
    /// written, a segment that could not be sealed, a ledger that does not add up.
    pub trouble: Vec<String>,
    /// Why it ended.
    pub ended: Ended,
    /// The limit that it was stopped for, when there was one, as in "1000 events".
    pub limit: Option<String>,
    /// Whether its directories were removed, because it was stopped before it had an event.
    pub removed: bool,
}

/// Why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every source said end.
    EndOfRun,
    /// It was asked to stop.
    Stopped,
    /// No volume took blocks any more, and why.
    VolumesFailed(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfRun => f.write_str("every source said end"),
            Self::Stopped => f.write_str("stopped on request"),
            Self::VolumesFailed(why) => write!(f, "no volume takes data any more: {why}"),
        }
    }
}

impl RecordReport {
    /// Why it ended, with the limit where it was one.
    pub fn why_ended(&self) -> String {
        match (&self.ended, &self.limit) {
            (Ended::Stopped, Some(limit)) => format!("stopped after {limit}, as asked"),
            (ended, _) => ended.to_string(),
        }
    }

    /// Whether everything received is durable, the recording lacks nothing, and it ended by itself or on
    /// request.
    pub fn is_whole(&self) -> bool {
        !matches!(self.ended, Ended::VolumesFailed(_)) && self.ledger.is_whole() && self.trouble.is_empty()
    }

    /// CPU of every thread of the data path.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadCpu> {
        let volumes = self.volumes.iter().map(|volume| &volume.cpu);
        std::iter::once(&self.intake_cpu).chain(&self.reducers_cpu).chain(volumes)
    }

    /// Events missing for other reasons than the source's own declared losses.
    pub fn lost_events(&self) -> u64 {
        let total = self.ledger.total();
        let missing: u64 = total.gap_events.values().sum();
        missing.saturating_sub(total.lost_at_source.events)
    }
}
