//! What `keepup disk steady` found: the rate against time and bytes written, where its level changed, and
//! whether it came to rest.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hours of writing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyFinding {
    /// The rate through time. Of long runs neighbours are joined, so that there are never too many.
    pub samples: Vec<SteadySample>,
    /// The rate file by file, joined likewise.
    pub files: Vec<SteadyFile>,
    /// Changes of level, in order: drops and recoveries.
    pub changes: Vec<SteadyChange>,
    /// Changes that came later and are not in the list.
    pub changes_left_out: u64,
    /// Length of a round, seconds.
    pub round_seconds: f64,
    /// Steady state, of writing for the first time and of overwriting.
    pub laps: Vec<SteadyLap>,
    /// Why the whole of what was asked for was not written, if it was not.
    pub cut_short: Option<String>,
}

/// The rate in one stretch of time, and what else went on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadySample {
    /// When it ended, since the first write, seconds.
    pub at_seconds: f64,
    /// Bytes written until then.
    pub at_bytes: u64,
    /// How long it was, seconds.
    pub seconds: f64,
    /// Bytes written in it.
    pub bytes: u64,
    /// The lowest rate of the seconds that it is joined from, bytes per second.
    pub lowest_bytes_per_second: f64,
    /// Whether older data was overwritten.
    pub overwrites: bool,
    /// What else went on; of joined samples the later.
    pub conditions: SteadyConditions,
}

/// What may slow a disk down, and cannot be seen from its rate. `None` where the machine does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyConditions {
    /// Temperature of the hottest drive of the volume, degrees Celsius.
    pub drive_celsius: Option<f64>,
    /// From where on that drive calls itself too hot, degrees Celsius.
    pub drive_celsius_max: Option<f64>,
    /// Frequency of the processors by their highest.
    pub frequency_share: Option<f64>,
    /// How often processors were throttled since boot.
    pub throttled: Option<u64>,
    /// Processor time that the hypervisor gave to others, in cores.
    pub steal_cores: Option<f64>,
    /// What others read from the device and wrote to it, bytes per second.
    pub neighbour_bytes_per_second: Option<f64>,
    /// How full the file system is, per cent.
    pub fill_percent: Option<f64>,
}

/// The rate of one file, or of several that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyFile {
    /// Number of the first, from 0.
    pub first: u64,
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first write to the first write of the next file, or to the end, seconds.
    pub seconds: f64,
    /// The lowest rate of a single file of them, bytes per second.
    pub lowest_bytes_per_second: f64,
    /// Whether older files were overwritten.
    pub overwrites: bool,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyChange {
    /// When it began, since the first write, seconds; good to a few seconds.
    pub at_seconds: f64,
    /// Bytes written until then.
    pub at_bytes: u64,
    /// When it was noticed, seconds.
    pub noticed_seconds: f64,
    /// The level before, bytes per second.
    pub before_bytes_per_second: f64,
    /// The level since, bytes per second.
    pub after_bytes_per_second: f64,
    /// What may have caused it, with what was seen; empty when nothing was.
    pub causes: Vec<SteadyCause>,
}

/// A possible cause of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyCause {
    /// Its kind.
    pub kind: SteadyCauseKind,
    /// What was seen of it.
    pub seen: String,
}

/// Kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyCauseKind {
    /// The series began to overwrite its own files.
    Overwriting,
    /// The drive is hot, or has cooled down.
    DriveTemperature,
    /// Processors were throttled, or run slower.
    Throttling,
    /// The hypervisor gave processor time to others.
    Steal,
    /// Others used the device.
    Neighbour,
    /// The file system is nearly full.
    NearlyFull,
    /// None of the others: a drive's fast cache may be used up.
    WriteCache,
}

/// Steady state in one lap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyLap {
    /// Whether older files were overwritten.
    pub overwrites: bool,
    /// Rounds that were completed.
    pub rounds: u64,
    /// The first rounds that were steady together; `None`: not reached.
    pub reached: Option<SteadyRounds>,
    /// The last rounds; `None` when there were too few.
    pub last: Option<SteadyRounds>,
}

/// Rounds that are looked at together, by the rule of SNIA's performance test specification.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyRounds {
    /// When the last of them ended, since the first write, seconds.
    pub at_seconds: f64,
    /// Bytes written until then.
    pub at_bytes: u64,
    /// Their average, bytes per second.
    pub bytes_per_second: f64,
    /// Highest less lowest, as a share of the average.
    pub range_share: f64,
    /// What the fitted line changes from the first to the last, as a share of the average.
    pub drift_share: f64,
}

impl SteadyChange {
    /// Whether the level fell.
    #[must_use]
    pub fn is_drop(&self) -> bool {
        self.after_bytes_per_second < self.before_bytes_per_second
    }
}
