//! What the phases of a test mean together: one variant for each test that draws a conclusion.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::CacheFinding;
use super::steady::SteadyFinding;

/// What a test concludes from its phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "test", rename_all = "snake_case")]
pub enum DiskFinding {
    /// Of 1 to N volumes at once.
    Scale(ScaleFinding),
    /// Of the page cache's size.
    Cache(CacheFinding),
    /// Of the rate through hours of writing.
    Steady(SteadyFinding),
}

/// How far more volumes make a machine faster, and what each of them costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleFinding {
    /// Volumes up to which each one added at least half of what the first one gave.
    pub knee_volumes: u32,
    /// Whether that is all of them, so that the knee lies further on.
    pub knee_is_beyond: bool,
    /// CPU of the process for each volume more, up to the knee, in CPU seconds per second; slope of the least
    /// squares line. `None` with one volume.
    pub cpu_per_volume: Option<f64>,
    /// What each volume more added, from the second on, as a share of what the first one gave.
    pub gains: Vec<f64>,
}
