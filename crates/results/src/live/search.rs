//! Live state of a qualification.

use serde::{Deserialize, Serialize};

use crate::summary::{TrialResult, Verdict};

/// A running qualification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Name of the detector profile.
    pub profile: String,
    /// Required rate of the profile, bytes per second.
    pub required_bytes_per_second: f64,
    /// Current phase.
    pub phase: String,
    /// Maximum remaining time, seconds, from the start of the phase.
    pub estimate_seconds: Option<f64>,
    /// Running trial.
    pub trial: Option<SearchTrial>,
    /// Measured ceilings.
    pub ceilings: Vec<SearchCeiling>,
    /// Completed trials, in order.
    pub trials: Vec<TrialResult>,
    /// Messages so far, newest last.
    pub said: Vec<String>,
    /// Verdict, once known.
    pub verdict: Option<Verdict>,
    /// Reasons, most important first.
    pub verdict_reasons: Vec<String>,
    /// Directory of the result, once complete.
    pub result_directory: Option<String>,
}

/// A running trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTrial {
    /// Purpose.
    pub label: String,
    /// Rate, bytes per second; null: unthrottled.
    pub bytes_per_second: Option<f64>,
    /// Length, seconds.
    pub seconds: f64,
    /// Start, ns since the Unix epoch.
    pub since_unix_ns: u64,
}

/// Ceiling of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchCeiling {
    /// Component.
    pub what: String,
    /// Throughput, bytes per second.
    pub bytes_per_second: f64,
}
