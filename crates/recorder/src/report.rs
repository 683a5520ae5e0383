//! Report of a finished recording, by thread and by stream.
use std::fmt;
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_recording::account::{CommandCounts, Incidents, RecordAccount, Stalls, ThreadCpu, VolumeAccount};
use keepup_stream::ledger::Ledger;
use keepup_stream::rejected::{Rejected, makes_incomplete};

/// Report of a recording.
#[derive(Clone, Debug)]
pub struct RecordReport {
    /// Identity of the recording, 32 hex digits.
    pub recording: String,
    /// NeXus master over all volumes, if it could be written.
    pub master: Option<PathBuf>,
    /// Account of every stream.
    pub ledger: Ledger,
    /// Data that arrived and are not recorded.
    pub rejected: Vec<Rejected>,
    /// Every volume, in the order given.
    pub volumes: Vec<VolumeAccount>,
    /// Size of the block pool, in bytes.
    pub pool_bytes: u64,
    /// Most pool memory in use, in bytes.
    pub pool_bytes_used_max: u64,
    /// Page kind of the pool.
    pub pool_pages: String,
    /// CPU time of every intake.
    pub intakes_cpu: Vec<ThreadCpu>,
    /// CPU time of the reducers; empty without reductions.
    pub reducers_cpu: Vec<ThreadCpu>,
    /// Time in which at least one connection waited for a free block, in nanoseconds.
    pub pool_wait_ns: u64,
    /// Longest stall of each stage.
    pub stalls: Stalls,
    /// Time from the first event to the last durable byte, in nanoseconds; 0 without events.
    pub elapsed_ns: u64,
    /// Runs of the command after sealed segments; `None` without one.
    pub after_seal: Option<CommandCounts>,
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
    /// All sources have ended or a stop was requested, and data of a source could not be recorded, with the
    /// cause.
    SourceFailed(String),
    /// A thread of the recorder panicked, with thread and message; the others made durable what they had.
    InternalError(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfRun => f.write_str("all sources have ended"),
            Self::Stopped => f.write_str("stopped on request"),
            Self::VolumesFailed(why) => write!(f, "no volume takes more data: {why}"),
            Self::SourceFailed(why) => write!(f, "a source failed: {why}"),
            Self::InternalError(why) => f.write_str(why),
        }
    }
}

impl Ended {
    /// Why it ended, if neither by itself nor on request.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::EndOfRun | Self::Stopped => None,
            Self::VolumesFailed(why) | Self::SourceFailed(why) | Self::InternalError(why) => Some(why),
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

    /// Whether everything that arrived is durable, the recording has no defects, and it ended by
    /// itself or on request. Events may be missing that did not arrive.
    pub fn is_whole(&self) -> bool {
        self.ended.failure().is_none()
            && self.ledger.is_whole()
            && self.trouble.is_empty()
            && !self.has_rejected()
    }

    /// Whether it is whole, and no event is missing.
    pub fn is_complete(&self) -> bool {
        self.is_whole() && self.ledger.total().gap_events.values().all(|&events| events == 0)
    }

    /// Whether data that arrived are not recorded. Those of strangers count if nothing was recorded.
    pub fn has_rejected(&self) -> bool {
        makes_incomplete(&self.rejected, self.ledger.total().received.events)
    }

    /// Account for the user. `cpu_seconds` is the CPU time of the process.
    pub fn account(&self, cpu_seconds: f64) -> RecordAccount {
        let total = self.ledger.total();
        RecordAccount {
            recording: self.recording.clone(),
            ended: self.why_ended(),
            master: self.master.clone(),
            whole: self.is_complete(),
            removed: self.removed,
            received: total.received,
            written: total.written,
            durable: total.durable,
            missing_events: total.gap_events,
            rejected: self.rejected.clone(),
            elapsed_seconds: self.elapsed_ns as f64 / 1e9,
            cpu_seconds,
            path_cpu_seconds: self.threads().map(|thread| thread.cpu_ns).saturating_sum::<u64>() as f64 / 1e9,
            intake_cpu: self.busiest_intake(),
            intakes_cpu: self.intakes_cpu.clone(),
            reducers_cpu: self.reducers_cpu.clone(),
            stored: self.ledger.stored(),
            pool_bytes: self.pool_bytes,
            pool_bytes_used_max: self.pool_bytes_used_max,
            pool_wait_ns: self.pool_wait_ns,
            stalls: self.stalls.clone(),
            volumes: self.volumes.clone(),
            after_seal: self.after_seal,
            incidents: self.incidents.clone(),
            trouble: self.trouble.clone(),
            ledger: self.ledger.clone(),
        }
    }

    /// CPU time of every thread of the data path.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadCpu> {
        let volumes = self.volumes.iter().map(|volume| &volume.cpu);
        self.intakes_cpu.iter().chain(&self.reducers_cpu).chain(volumes)
    }

    /// CPU time of the intake that used most.
    pub fn busiest_intake(&self) -> ThreadCpu {
        self.intakes_cpu.iter().max_by_key(|intake| intake.cpu_ns).cloned().unwrap_or_default()
    }

    /// Missing events, except for losses that the source declared itself.
    pub fn lost_events(&self) -> u64 {
        let total = self.ledger.total();
        let missing: u64 = total.gap_events.values().saturating_sum();
        missing.saturating_sub(total.lost_at_source.events)
    }
}
