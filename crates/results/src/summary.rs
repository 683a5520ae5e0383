//! Summary of a qualification: content of `result.json` and of `--json`.
//!
//! Rates are bytes per second, MB = 10^6 bytes. `None` means "not measured" and is written as null.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counter::CounterTrial;
use crate::format;
use crate::head::{Head, Headed, Kind};
use crate::load::SessionLoad;

mod figures;
mod wear;

pub use wear::{DiskWear, Endurance};

/// Version of the layout of `result.json`; incremented when an older reader could misread a newer
/// file.
pub const SCHEMA_VERSION: u32 = 2;

/// Result of qualifying one machine for one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultSummary {
    /// Layout version.
    pub schema_version: u32,
    /// Version of keepup that measured.
    pub tool_version: String,
    /// Identity of the result.
    pub id: String,
    /// Start of the measurement, RFC 3339, UTC.
    pub created: String,
    /// Command that repeats the measurement.
    pub command: String,
    /// Kind of result.
    pub kind: Kind,
    /// Verdict.
    pub verdict: Verdict,
    /// Reasons for the verdict, most important first.
    pub verdict_reasons: Vec<String>,
    /// Name of the detector profile.
    pub profile: String,
    /// Plan of the measurement, including flags.
    pub plan: serde_json::Value,
    /// Environment record of the machine.
    pub environment: serde_json::Value,
    /// Fingerprint of the lasting items of the environment.
    pub environment_hash: String,
    /// Required rate of the profile, mean over time.
    pub required_bytes_per_second: f64,
    /// Length of the detector's runs, seconds.
    pub required_run_seconds: Option<f64>,
    /// Required headroom (qualified over required rate), for example 1.3.
    pub headroom_wanted: f64,
    /// Highest rate found with no loss and no growing backlog.
    pub knee_bytes_per_second: Option<f64>,
    /// Bounds of the knee.
    pub knee_interval: Option<KneeInterval>,
    /// Rate sustained for the whole soak.
    pub qualified_bytes_per_second: Option<f64>,
    /// Qualified rate over required rate.
    pub headroom: Option<f64>,
    /// Lowest rate above the qualified one that failed because of the machine; null if none did.
    #[serde(default)]
    pub failed_above: Option<FailedRate>,
    /// The passed soak, if any.
    pub soak: Option<Soak>,
    /// Rounds before the search until the write rate was steady; omitted if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyState>,
    /// Bottleneck, if identified.
    pub bottleneck: Option<Bottleneck>,
    /// Machine of the source; omitted if the source ran on the recorder's machine, in the same process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_host: Option<SourceHost>,
    /// Ceilings of the components.
    pub ceilings: Ceilings,
    /// Ledger of the soak that decides the verdict, or of the last trial without a soak.
    pub ledger: LedgerSummary,
    /// CPU cost of the same run.
    pub cpu: CpuCost,
    /// Background loads.
    pub loads: Vec<SessionLoad>,
    /// All trials in order, including failed ones.
    pub trials: Vec<TrialResult>,
    /// Space and wear.
    pub storage: StorageCost,
    /// I/O engine and memory.
    pub engine: Engine,
    /// Limits of validity, one sentence each.
    pub limits: Vec<String>,
    /// Whether the measurement was interrupted.
    pub interrupted: bool,
    /// Directory of this result.
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

/// Verdict on whether a machine can keep up with a detector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// The required rate was sustained with the required headroom and without loss.
    #[serde(rename = "FIT")]
    Fit,
    /// The required rate was not sustained.
    #[serde(rename = "NOT FIT")]
    NotFit,
    /// The required rate was sustained, with limits given in the reasons.
    #[serde(rename = "FIT WITH LIMITS")]
    FitWithLimits,
    /// No conclusion is possible.
    #[default]
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

/// Bounds of the knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KneeInterval {
    /// Highest rate known to hold.
    pub lower_bytes_per_second: f64,
    /// Lowest rate known to fail; null if none failed.
    pub upper_bytes_per_second: Option<f64>,
}

/// A rate that failed, in a trial or a soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedRate {
    /// Requested rate.
    pub bytes_per_second: f64,
    /// Length of the run, seconds.
    pub seconds: f64,
    /// Events lost.
    pub lost_events: u64,
    /// First condition that failed, in words.
    pub condition: String,
}

impl fmt::Display for FailedRate {
    /// Rate and loss: "1.61 GB/s lost 51 events".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", format::rate(self.bytes_per_second), self.outcome())
    }
}

impl FailedRate {
    /// Above this multiple of the rate that held, a rate that failed leaves the limit between them open.
    pub const FAR_ABOVE: f64 = 1.5;

    /// Whether the rates between `held` bytes per second and this one are not resolved.
    pub fn is_far_above(&self, held: f64) -> bool {
        self.bytes_per_second > Self::FAR_ABOVE * held
    }

    /// How it failed: "lost 51 events".
    pub fn outcome(&self) -> String {
        match self.lost_events {
            0 => "failed".to_owned(),
            lost => format!("lost {}", format::plural(lost, "event")),
        }
    }
}

/// The soak that proved the qualified rate, without tolerance for loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    /// Length of one pass, seconds.
    pub seconds: f64,
    /// Bytes made durable over all passes.
    pub bytes: u64,
    /// Consecutive passes.
    pub passes: u32,
    /// Soaks at higher rates that failed before; 0 in results of earlier versions.
    #[serde(default)]
    pub failed: u32,
    /// Time of all soaks at this rate or above, up to the first loss of each, seconds; the passes alone in
    /// results of earlier versions.
    #[serde(default)]
    pub exposed_seconds: Option<f64>,
    /// Upper bound of loss incidents per second with 95 % confidence: 3 (failed + 1) / exposed seconds.
    pub upper_bound_loss_per_second: f64,
    /// Main memory of the machine, bytes: caches may have helped a soak that wrote less.
    pub memory_bytes: Option<u64>,
}

impl Soak {
    /// Seconds that the bound on losses rests on.
    #[must_use]
    pub fn exposed(&self) -> f64 {
        self.exposed_seconds.unwrap_or(self.seconds * f64::from(self.passes))
    }
}

/// Rounds at full speed before the search, until the rate was steady by the rule of SNIA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// Whether the last five rounds are steady.
    pub reached: bool,
    /// Length of a round, seconds.
    pub round_seconds: f64,
    /// Bytes written by all rounds.
    pub bytes: u64,
    /// Durable rate of each round.
    pub bytes_per_second: Vec<f64>,
}

/// Machine that ran the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceHost {
    /// Address and port.
    pub address: String,
    /// Host name.
    pub host: String,
    /// Model of its processor.
    pub cpu: Option<String>,
    /// Its online logical cores.
    pub cores: Option<u64>,
    /// Its version of keepup.
    pub tool_version: String,
    /// Longest time between two reports of the source's counters in the soak, or in the last trial without
    /// one, seconds; backlogs in between are interpolated.
    pub counters_gap_seconds_max: Option<f64>,
}

/// Bottleneck of the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Limiting stage, in words.
    pub stage: String,
    /// Supporting figures, one sentence.
    pub evidence: String,
    /// Next limit after this one.
    pub next: Option<NextLimit>,
    /// Counter-trials, in order; empty in results of earlier versions.
    #[serde(default)]
    pub counter_trials: Vec<CounterTrial>,
}

impl Bottleneck {
    /// Stage of a bottleneck whose evidence does not single one out; the evidence names candidates.
    pub const NOT_RESOLVED: &'static str = "not resolved";

    /// Whether a counter-trial confirmed the stage.
    pub fn is_confirmed(&self) -> bool {
        self.counter_trials.iter().any(|counter| counter.confirmed)
    }
}

/// The limit after the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextLimit {
    /// Stage, in words.
    pub stage: String,
    /// Its rate.
    pub bytes_per_second: Option<f64>,
    /// Supporting figures, one sentence.
    pub evidence: String,
}

/// Ceilings of the components of this machine, bytes per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// Source, sending to a receiver that discards.
    pub source_bytes_per_second: Option<f64>,
    /// Network path.
    pub network_bytes_per_second: Option<f64>,
    /// Memory copy.
    pub memory_bytes_per_second: Option<f64>,
    /// Volumes.
    pub volumes: Vec<VolumeCeiling>,
}

/// Ceiling of one volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCeiling {
    /// Directory of the volume.
    pub path: String,
    /// Durable write rate.
    pub bytes_per_second: Option<f64>,
}

/// Events and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Events.
    pub events: u64,
    /// Payload bytes.
    pub bytes: u64,
}

/// Ledger of all events: sent + lost at source = durable + lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerSummary {
    /// Sent by the source.
    pub sent: Count,
    /// Due, but dropped by the source because its buffer was full.
    pub lost_at_source: Count,
    /// Received by the recorder.
    pub received: Count,
    /// Written (completed by the kernel).
    pub written: Count,
    /// Durable.
    pub durable: Count,
    /// Stored on the volumes if events are reduced before writing; omitted otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Count>,
    /// Read back and found intact; null if not verified.
    pub verified: Option<Count>,
    /// Segments that were not read back, because the time for it was limited; omitted if none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread_segments: u64,
    /// Moved by the drain; null without a drain.
    pub drained: Option<Count>,
    /// All losses, at the source and later.
    pub lost: Count,
    /// Losses by cause; they sum to `lost`.
    pub lost_by_cause: BTreeMap<String, Count>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl LedgerSummary {
    /// Stored amount of the durable data.
    pub fn on_volumes(&self) -> Count {
        self.stored.unwrap_or(self.durable)
    }
}

/// CPU cost. 1 GB = 10^9 bytes of payload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuCost {
    /// CPU seconds of the recorder including its kernel workers, per GB recorded.
    pub seconds_per_gb: Option<f64>,
    /// CPU seconds of the drain per GB recorded; null without a drain.
    #[serde(default)]
    pub drain_seconds_per_gb: Option<f64>,
    /// CPU seconds of the source per GB sent; not needed on this machine with a real detector.
    pub source_seconds_per_gb: Option<f64>,
    /// Busy share of each core in percent, core 0 first; empty if not measured.
    pub per_core_percent: Vec<f64>,
    /// Share of all cores in softirqs, percent.
    pub softirq_percent: Option<f64>,
    /// Share of all cores stolen by the hypervisor, percent.
    pub steal_percent: Option<f64>,
    /// Threads of the recorder.
    pub recorder_threads: Vec<ThreadCpu>,
}

/// CPU usage of one thread, or of threads of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadCpu {
    /// Name of the thread.
    pub name: String,
    /// Seconds on a core.
    pub seconds: f64,
    /// Seconds runnable but waiting for a core.
    pub run_delay_seconds: Option<f64>,
}

/// One run at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialResult {
    /// Purpose, for example "search" or "soak".
    pub phase: String,
    /// Requested rate.
    pub asked_bytes_per_second: f64,
    /// Time for which events were sent, seconds. A soak that loses events is cut off.
    pub seconds: f64,
    /// Received rate.
    pub achieved_bytes_per_second: f64,
    /// Durable rate, including the last flush.
    pub durable_bytes_per_second: f64,
    /// Events lost, at the source and later.
    pub lost_events: u64,
    /// Whether the backlog grew.
    pub backlog_growing: bool,
    /// Whether every condition held.
    pub passed: bool,
    /// First condition that failed, in words.
    pub failed_condition: Option<String>,
    /// Largest backlog between source and volumes, bytes.
    pub backlog_bytes_max: Option<u64>,
    /// Longest write stall, milliseconds.
    pub stall_ms_max: Option<f64>,
    /// Stall that the buffer bridges at this rate, seconds.
    pub buffer_seconds: Option<f64>,
    /// CPU seconds of the recorder per GB.
    pub cpu_seconds_per_gb: Option<f64>,
    /// Rate of each of the session's loads during the trial, in their order and units; null for a
    /// time too short to tell.
    pub load_rates: Vec<Option<f64>>,
}

/// Space and wear.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageCost {
    /// Bytes written to the volumes by the whole measurement.
    pub bytes_written: u64,
    /// Hours until the first volume is full at the required rate; null if a drain frees space as fast as it
    /// is used.
    pub hours_of_storage_left_at_required: Option<f64>,
    /// Bytes that one run leaves on the volumes at the required rate, beyond what a drain frees; null in
    /// results of earlier versions.
    #[serde(default)]
    pub run_bytes: Option<u64>,
    /// Bytes that can be recorded before the first volume is full; null in results of earlier versions.
    #[serde(default)]
    pub usable_bytes: Option<u64>,
    /// Bytes written per year of continuous recording at the required rate.
    pub bytes_per_year: Option<u64>,
    /// Disks of the volumes whose wear is known, before the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskWear>,
    /// How long the rated endurance of the volumes lasts; null if no rating was stated.
    #[serde(default)]
    pub endurance: Option<Endurance>,
}

/// I/O engine and memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// System interface for writing.
    pub io: IoEngine,
    /// Kind of block memory, for example "plain pages, registered".
    pub buffers: String,
}

/// System interface for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoEngine {
    /// io_uring.
    IoUring,
    /// Positioned synchronous writes, the fallback.
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
