//! Comparison of targets over a set of traces.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative performance of every target against a named baseline. One mode only: modes are never
/// mixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayIndex {
    /// Baseline, with index 1.
    pub baseline: String,
    /// Timing mode.
    pub mode: String,
    /// Compared metric.
    pub metric: ReplayMetric,
    /// Targets in the given order.
    pub places: Vec<ReplayPlace>,
}

/// Compared metric, as its reciprocal, so that higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMetric {
    /// Mean service time: for `afap` and `dep`.
    MeanService,
    /// Mean response time: for `timed` and `paced`.
    MeanResponse,
}

/// One target over all traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayPlace {
    /// Name.
    pub place: String,
    /// Index: geometric mean of the ratios. Null when a trace has none.
    pub index: Option<f64>,
    /// Lower bound of its 95 % bootstrap interval over the passes.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Arithmetic mean of the ratios, for comparison with publications that use it.
    pub arithmetic_mean: Option<f64>,
    /// 100 (1 - index), percent.
    pub loss_percent: Option<f64>,
    /// Trace with the highest ratio.
    pub best: Option<String>,
    /// Trace with the lowest ratio.
    pub worst: Option<String>,
    /// Ratio of each trace.
    pub ratios: Vec<ReplayRatio>,
}

/// One trace on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRatio {
    /// Name of the trace.
    pub trace: String,
    /// Baseline's mean time over this target's; null if either has no usable pass.
    pub ratio: Option<f64>,
    /// Mean request time over all usable warm passes, ns.
    pub mean_ns: Option<f64>,
    /// Half width of its 95 % interval over the passes (Student), ns.
    pub half_width_ns: Option<f64>,
    /// Coefficient of variation of the passes' means.
    pub variation: Option<f64>,
    /// Whether that exceeds 0.05.
    pub is_noisy: bool,
    /// Usable warm passes.
    pub passes: u32,
    /// Reason for an unusable pass, if any.
    pub why: Option<String>,
}
