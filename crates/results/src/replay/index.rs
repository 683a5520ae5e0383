//! How places compare over a set of traces.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative performance of every place, against a named baseline. One mode only: modes are never mixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayIndex {
    /// The place that is 1.
    pub baseline: String,
    /// How requests were timed.
    pub mode: String,
    /// What is compared.
    pub metric: ReplayMetric,
    /// Every place, in the order in which they were given.
    pub places: Vec<ReplayPlace>,
}

/// What is compared, as its reciprocal, so that more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMetric {
    /// Mean time from when a request was made to its end: of `afap` and `dep`.
    MeanService,
    /// Mean time from when a request was due to its end: of `timed` and `paced`.
    MeanResponse,
}

/// One place over all traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayPlace {
    /// Its name.
    pub place: String,
    /// Geometric mean of the ratios: the index. Null when a trace has none.
    pub index: Option<f64>,
    /// Lower end of its 95 % bootstrap interval over the passes.
    pub lower: Option<f64>,
    /// Upper end of it.
    pub upper: Option<f64>,
    /// Arithmetic mean of the ratios, for comparison with publications that use it.
    pub arithmetic_mean: Option<f64>,
    /// 100 (1 - index), per cent.
    pub loss_percent: Option<f64>,
    /// Name of the trace with the highest ratio.
    pub best: Option<String>,
    /// Name of the trace with the lowest ratio.
    pub worst: Option<String>,
    /// Each trace.
    pub ratios: Vec<ReplayRatio>,
}

/// One trace on one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRatio {
    /// Name of the trace.
    pub trace: String,
    /// Baseline's mean time over this place's; null when one of them has no pass that can be used.
    pub ratio: Option<f64>,
    /// Mean time of a request over all warm passes that can be used, ns.
    pub mean_ns: Option<f64>,
    /// Half width of the 95 % interval of that mean over the passes (Student), ns.
    pub half_width_ns: Option<f64>,
    /// Standard deviation over mean of the passes' means.
    pub variation: Option<f64>,
    /// Whether that is more than 0.05.
    pub is_noisy: bool,
    /// Warm passes that could be used.
    pub passes: u32,
    /// Why a pass could not be, if any could not.
    pub why: Option<String>,
}
