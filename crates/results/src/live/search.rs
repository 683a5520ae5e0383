//! A qualification while it goes on.

use serde::{Deserialize, Serialize};

use crate::summary::{TrialResult, Verdict};

/// A qualification as far as it has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Name of the detector profile.
    pub profile: String,
    /// Rate that the profile requires, in bytes per second.
    pub required_bytes_per_second: f64,
    /// What is done now.
    pub phase: String,
    /// How long it takes to the end, at most, in seconds, counted from the phase's beginning.
    pub estimate_seconds: Option<f64>,
    /// The trial under way.
    pub trial: Option<SearchTrial>,
    /// What each component alone did.
    pub ceilings: Vec<SearchCeiling>,
    /// Trials so far, in the order in which they ran.
    pub trials: Vec<TrialResult>,
    /// What was said so far, the newest last.
    pub said: Vec<String>,
    /// The answer, once there is one.
    pub verdict: Option<Verdict>,
    /// Why, most important first.
    pub verdict_reasons: Vec<String>,
    /// Where the result is kept, once it is complete.
    pub result_directory: Option<String>,
}

/// A trial under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTrial {
    /// What it is for.
    pub label: String,
    /// Its rate, in bytes per second; null: as fast as it goes.
    pub bytes_per_second: Option<f64>,
    /// How long it takes, in seconds.
    pub seconds: f64,
    /// When it began, ns since the Unix epoch.
    pub since_unix_ns: u64,
}

/// What a component alone did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchCeiling {
    /// Which.
    pub what: String,
    /// How much, in bytes per second.
    pub bytes_per_second: f64,
}
