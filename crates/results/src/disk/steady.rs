//! Result of `keepup disk steady`: rate over time and bytes written, level changes, and steady
//! state.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a long write test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyFinding {
    /// Rate over time; in long runs neighbouring samples are merged.
    pub samples: Vec<SteadySample>,
    /// Rate per file, merged likewise.
    pub files: Vec<SteadyFile>,
    /// Level changes in order: drops and recoveries.
    pub changes: Vec<SteadyChange>,
    /// Number of later changes not in the list.
    pub changes_left_out: u64,
    /// Length of a round, seconds.
    pub round_seconds: f64,
    /// Steady state of first writes and of overwriting.
    pub laps: Vec<SteadyLap>,
    /// Reason for an early end, if any.
    pub cut_short: Option<String>,
}

/// Rate and conditions of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadySample {
    /// End of the interval, seconds since the first write.
    pub at_seconds: f64,
    /// Bytes written until then.
    pub at_bytes: u64,
    /// Length, seconds.
    pub seconds: f64,
    /// Bytes written in the interval.
    pub bytes: u64,
    /// Minimum of the merged samples' rates, bytes per second.
    pub lowest_bytes_per_second: f64,
    /// Whether older data was overwritten.
    pub overwrites: bool,
    /// Conditions; for merged samples those of the last one.
    pub conditions: SteadyConditions,
}

/// Conditions that may slow down a disk. `None` where unavailable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyConditions {
    /// Temperature of the volume's hottest drive, degrees Celsius.
    pub drive_celsius: Option<f64>,
    /// Temperature limit of that drive, degrees Celsius.
    pub drive_celsius_max: Option<f64>,
    /// CPU frequency relative to the maximum.
    pub frequency_share: Option<f64>,
    /// CPU throttling events since boot.
    pub throttled: Option<u64>,
    /// CPU time stolen by the hypervisor, cores.
    pub steal_cores: Option<f64>,
    /// Foreign traffic on the device, reads plus writes, bytes per second.
    pub neighbour_bytes_per_second: Option<f64>,
    /// Fill level of the file system, percent.
    pub fill_percent: Option<f64>,
}

/// Rate of one file, or of several consecutive files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyFile {
    /// Number of the first file, from 0.
    pub first: u64,
    /// Number of files.
    pub files: u64,
    /// Total size.
    pub bytes: u64,
    /// From the first write to the first write of the next file, or to the end, seconds.
    pub seconds: f64,
    /// Minimum rate of a single file, bytes per second.
    pub lowest_bytes_per_second: f64,
    /// Whether older files were overwritten.
    pub overwrites: bool,
}

/// A level change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyChange {
    /// Start, seconds since the first write; accurate to a few seconds.
    pub at_seconds: f64,
    /// Bytes written until then.
    pub at_bytes: u64,
    /// Time of detection, seconds.
    pub noticed_seconds: f64,
    /// Previous level, bytes per second.
    pub before_bytes_per_second: f64,
    /// New level, bytes per second.
    pub after_bytes_per_second: f64,
    /// Possible causes with observations; empty if none.
    pub causes: Vec<SteadyCause>,
}

/// A possible cause of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyCause {
    /// Kind of cause.
    pub kind: SteadyCauseKind,
    /// Observation.
    pub seen: String,
}

/// Kind of cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyCauseKind {
    /// Overwriting of the series' own files started.
    Overwriting,
    /// Drive temperature.
    DriveTemperature,
    /// CPU throttling or frequency.
    Throttling,
    /// CPU time stolen by the hypervisor.
    Steal,
    /// Foreign traffic on the device.
    Neighbour,
    /// Nearly full file system.
    NearlyFull,
    /// No other cause: the drive's fast cache may be full.
    WriteCache,
}

/// Steady state of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyLap {
    /// Whether older files were overwritten.
    pub overwrites: bool,
    /// Completed rounds.
    pub rounds: u64,
    /// First steady window; `None` if not reached.
    pub reached: Option<SteadyRounds>,
    /// Last window; `None` with too few rounds.
    pub last: Option<SteadyRounds>,
}

/// Window of rounds according to SNIA's performance test specification.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyRounds {
    /// End of the last round, seconds since the first write.
    pub at_seconds: f64,
    /// Bytes written until then.
    pub at_bytes: u64,
    /// Average, bytes per second.
    pub bytes_per_second: f64,
    /// Highest minus lowest, as a share of the average.
    pub range_share: f64,
    /// Change of the fitted line over the window, as a share of the average.
    pub drift_share: f64,
}

impl SteadyChange {
    /// Whether the level dropped.
    #[must_use]
    pub fn is_drop(&self) -> bool {
        self.after_bytes_per_second < self.before_bytes_per_second
    }
}
