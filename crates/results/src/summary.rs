//! The summary of a result: what `result.json` holds and `--json` prints.
//!
//! Rates are bytes per second, MB = 10^6 bytes. `None` means "not measured" and is written as null.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::SessionLoad;
use crate::stored::{Head, Headed};

mod figures;

/// Version of the layout of `result.json`; rises whenever a reader of the old one could misread the new one.
pub const SCHEMA_VERSION: u32 = 2;

/// What one run of the tool found out about one machine and one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultSummary {
    /// Version of this layout.
    pub schema_version: u32,
    /// Version of keepup that measured.
    pub tool_version: String,
    /// Identity of the result.
    pub id: String,
    /// Start of the measurement, RFC 3339, UTC.
    pub created: String,
    /// Exact command that repeats the measurement.
    pub command: String,
    /// What was done.
    pub kind: Kind,
    /// The answer.
    pub verdict: Verdict,
    /// Why the verdict is what it is, most important first.
    pub verdict_reasons: Vec<String>,
    /// Name of the detector profile.
    pub profile: String,
    /// The plan as it was run, after flags.
    pub plan: serde_json::Value,
    /// Environment record of the machine.
    pub environment: serde_json::Value,
    /// Short hash over what does not vary from minute to minute in the environment.
    pub environment_hash: String,
    /// Rate that the profile requires, mean over time.
    pub required_bytes_per_second: f64,
    /// How long the profile's detector runs without a break, seconds.
    pub required_run_seconds: Option<f64>,
    /// Qualified rate over required rate that the profile asks for, for example 1.3.
    pub headroom_wanted: f64,
    /// Highest rate found with no loss and no growing backlog.
    pub knee_bytes_per_second: Option<f64>,
    /// Bounds of the knee.
    pub knee_interval: Option<KneeInterval>,
    /// Rate that held for the whole soak.
    pub qualified_bytes_per_second: Option<f64>,
    /// Qualified rate over required rate.
    pub headroom: Option<f64>,
    /// The soak that held, if one did.
    pub soak: Option<Soak>,
    /// What limits the rate, if it could be named.
    pub bottleneck: Option<Bottleneck>,
    /// The most that each component alone did.
    pub ceilings: Ceilings,
    /// Where each event went, in the soak that the verdict rests on, or in the last trial without a soak.
    pub ledger: LedgerSummary,
    /// The whole CPU bill of the same run as the ledger.
    pub cpu: CpuCost,
    /// What ran beside it on purpose.
    pub loads: Vec<SessionLoad>,
    /// Every trial in the order it was run, the failed ones too.
    pub trials: Vec<TrialResult>,
    /// Space and wear.
    pub storage: StorageCost,
    /// How bytes were written.
    pub engine: Engine,
    /// What was not tested, one sentence each.
    pub limits: Vec<String>,
    /// Whether the measurement was stopped before its end.
    pub interrupted: bool,
    /// Directory that holds this result.
    pub result_directory: String,
}

impl Headed for ResultSummary {
    fn head(&self) -> Head<'_> {
        Head {
            kind: self.kind,
            id: &self.id,
            tool_version: &self.tool_version,
            created: &self.created,
            command: &self.command,
            workload: &self.profile,
            plan: &self.plan,
            environment: &self.environment,
            failure: None,
            interrupted: self.interrupted,
        }
    }
}

/// What was done to get a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The highest safe rate of this machine for a profile.
    Qualify,
    /// A test of disks alone.
    Disk,
    /// A test of the network alone.
    Net,
    /// A test of register access.
    Register,
    /// A replay of traces.
    Replay,
    /// The path that records, at one rate.
    Record,
    /// A test for bit errors.
    Soak,
    /// A matrix of other results.
    Campaign,
    /// Results beside each other.
    Compare,
    /// What the capacity model says.
    Predict,
}

/// The answer to "can this machine keep up with this detector?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// The required rate held with the wanted head-room and no loss.
    #[serde(rename = "FIT")]
    Fit,
    /// It did not hold.
    #[serde(rename = "NOT FIT")]
    NotFit,
    /// The required rate held, with reservations that the reasons name.
    #[serde(rename = "FIT WITH LIMITS")]
    FitWithLimits,
    /// The measurement cannot tell.
    #[serde(rename = "INCONCLUSIVE")]
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fit => "FIT",
            Self::NotFit => "NOT FIT",
            Self::FitWithLimits => "FIT WITH LIMITS",
            Self::Inconclusive => "INCONCLUSIVE",
        })
    }
}

/// Bounds between which the knee lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KneeInterval {
    /// Highest rate that is known to hold.
    pub lower_bytes_per_second: f64,
    /// Lowest rate that is known to fail; null when none failed.
    pub upper_bytes_per_second: Option<f64>,
}

/// The soak that proved the qualified rate: no loss is tolerated in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    /// Length of one pass, seconds.
    pub seconds: f64,
    /// Bytes made durable over all passes.
    pub bytes: u64,
    /// Passes that held in a row.
    pub passes: u32,
    /// With 95 % confidence fewer losses per second than this: 3 / total seconds (the rule of three).
    pub upper_bound_loss_per_second: f64,
    /// Main memory of the machine, bytes: a soak that wrote less may have been helped by caches.
    pub memory_bytes: Option<u64>,
}

/// What limits the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Stage that limits, in words.
    pub stage: String,
    /// The figures that show it, one sentence.
    pub evidence: String,
    /// What would limit once this stage were faster.
    pub next: Option<NextLimit>,
}

/// The limit that follows the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextLimit {
    /// Stage, in words.
    pub stage: String,
    /// Rate at which it would limit.
    pub bytes_per_second: Option<f64>,
    /// The figures that show it, one sentence.
    pub evidence: String,
}

/// The most that each component alone did on this machine, bytes per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// The source alone, sending to a receiver that discards.
    pub source_bytes_per_second: Option<f64>,
    /// The network path alone.
    pub network_bytes_per_second: Option<f64>,
    /// Copying in memory.
    pub memory_bytes_per_second: Option<f64>,
    /// Each volume alone.
    pub volumes: Vec<VolumeCeiling>,
}

/// The most that one volume alone did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCeiling {
    /// Directory of the volume.
    pub path: String,
    /// Durable write rate.
    pub bytes_per_second: Option<f64>,
}

/// A number of events and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Events.
    pub events: u64,
    /// Payload bytes of these events.
    pub bytes: u64,
}

/// Where each event went: sent + lost at source = durable + lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerSummary {
    /// Given to the network by the source.
    pub sent: Count,
    /// Due, but dropped by the source because its own buffer was full.
    pub lost_at_source: Count,
    /// Taken in by the recorder.
    pub received: Count,
    /// Confirmed by the kernel.
    pub written: Count,
    /// Flushed to stable storage.
    pub durable: Count,
    /// What lies on the volumes, where events are reduced before they are written; left out where they lie
    /// there as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Count>,
    /// Read back from the volumes and found intact; null when not read back.
    pub verified: Option<Count>,
    /// Moved elsewhere by the drain; null when there was no drain.
    pub drained: Option<Count>,
    /// Everything lost, at the source and after it.
    pub lost: Count,
    /// The same losses by cause; their events add up to `lost`.
    pub lost_by_cause: BTreeMap<String, Count>,
}

impl LedgerSummary {
    /// What lies on the volumes when everything durable is there.
    pub fn on_volumes(&self) -> Count {
        self.stored.unwrap_or(self.durable)
    }
}

/// The CPU bill. 1 GB = 10^9 bytes of payload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuCost {
    /// CPU seconds of the recorder, its kernel workers included, per GB recorded.
    pub seconds_per_gb: Option<f64>,
    /// CPU seconds of the drain per GB recorded; null when there was no drain.
    #[serde(default)]
    pub drain_seconds_per_gb: Option<f64>,
    /// CPU seconds of the source per GB sent; a detector would not spend these on this machine.
    pub source_seconds_per_gb: Option<f64>,
    /// Busy share of each core in per cent, core 0 first; empty when not measured.
    pub per_core_percent: Vec<f64>,
    /// Share of all cores spent in soft interrupts, per cent.
    pub softirq_percent: Option<f64>,
    /// Share of all cores taken by the hypervisor, per cent.
    pub steal_percent: Option<f64>,
    /// Threads of the recorder.
    pub recorder_threads: Vec<ThreadCpu>,
}

/// CPU of one thread, or of threads of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadCpu {
    /// Name of the thread.
    pub name: String,
    /// Seconds on a core.
    pub seconds: f64,
    /// Seconds ready to run, but waiting for a core.
    pub run_delay_seconds: Option<f64>,
}

/// One run at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialResult {
    /// What the trial was for, for example "search" or "soak".
    pub phase: String,
    /// Rate asked of the source.
    pub asked_bytes_per_second: f64,
    /// Length, seconds.
    pub seconds: f64,
    /// Rate that got into the recorder.
    pub achieved_bytes_per_second: f64,
    /// Rate that became durable, the last flush inside the timed window.
    pub durable_bytes_per_second: f64,
    /// Events lost, at the source and after it.
    pub lost_events: u64,
    /// Whether the backlog grew.
    pub backlog_growing: bool,
    /// Whether every condition held.
    pub passed: bool,
    /// The first condition that failed, in words.
    pub failed_condition: Option<String>,
    /// Largest backlog between source and volumes, bytes.
    pub backlog_bytes_max: Option<u64>,
    /// Longest stall of a write, milliseconds.
    pub stall_ms_max: Option<f64>,
    /// How long the buffer could bridge a stall at this rate, seconds.
    pub buffer_seconds: Option<f64>,
    /// CPU seconds of the recorder per GB.
    pub cpu_seconds_per_gb: Option<f64>,
    /// Rate that each of the session's loads achieved meanwhile, in their order and units; null for a time
    /// too short to tell.
    pub load_rates: Vec<Option<f64>>,
}

/// Space and wear.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageCost {
    /// Bytes that the whole measurement wrote to the volumes.
    pub bytes_written: u64,
    /// Hours until the volumes are full at the required rate.
    pub hours_of_storage_left_at_required: Option<f64>,
    /// Bytes written in a year of recording at the required rate without a break.
    pub bytes_per_year: Option<u64>,
}

/// How bytes were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// System interface that wrote.
    pub io: IoEngine,
    /// Memory that blocks lived in, in words, for example "huge pages, registered".
    pub buffers: String,
}

/// System interface that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoEngine {
    /// The kernel's submission ring.
    IoUring,
    /// Plain positioned writes, the fallback.
    Pwrite,
}

impl fmt::Display for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IoUring => "io_uring",
            Self::Pwrite => "pwrite",
        })
    }
}
