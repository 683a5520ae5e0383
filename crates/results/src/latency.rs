//! Latency figures of results.
use keepup_measure::histogram::Latency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latencies in nanoseconds, accurate to 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyFigures {
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl From<&Latency> for LatencyFigures {
    fn from(latency: &Latency) -> Self {
        let summary = latency.summary();
        Self {
            mean_ns: summary.mean_ns,
            p50_ns: summary.p50_ns,
            p99_ns: summary.p99_ns,
            p99_9_ns: summary.p99_9_ns,
            max_ns: summary.max_ns,
        }
    }
}
