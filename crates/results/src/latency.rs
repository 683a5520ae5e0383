//! How long things took, as results tell it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long requests took, nanoseconds; to 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyFigures {
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p99_9_ns: u64,
    /// The longest.
    pub max_ns: u64,
}
