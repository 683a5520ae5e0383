//! Combined findings of a test's phases, one variant per test.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::CacheFinding;
use super::steady::SteadyFinding;

/// Finding of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "test", rename_all = "snake_case")]
pub enum DiskFinding {
    /// Scaling with the number of volumes.
    Scale(ScaleFinding),
    /// Page cache size.
    Cache(CacheFinding),
    /// Write rate over hours.
    Steady(SteadyFinding),
}

/// Gain and cost of additional volumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleFinding {
    /// Knee: number of volumes up to which each added at least half of the first one's rate.
    pub knee_volumes: u32,
    /// Whether that includes all volumes, so that the knee is beyond them.
    pub knee_is_beyond: bool,
    /// CPU time of the process per additional volume up to the knee, CPU seconds per second;
    /// least-squares slope. `None` with one volume.
    pub cpu_per_volume: Option<f64>,
    /// Gain of each volume from the second on, as a share of the first one's rate.
    pub gains: Vec<f64>,
}
