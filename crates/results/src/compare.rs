//! Result of a comparison: differences between the systems, and their figures relative to the
//! baseline.
//!
//! `None` means "not measured" or "not applicable" and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Figures, Quantity};
use crate::head::{Head, Headed, Kind};

/// Version of the comparison's layout; incremented when an older reader could misread a newer file.
pub const COMPARE_SCHEMA_VERSION: u32 = 2;

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareSummary {
    /// Layout version.
    pub schema_version: u32,
    /// Kind of result.
    pub kind: Kind,
    /// Version of keepup that made the comparison.
    pub tool_version: String,
    /// Time, RFC 3339, UTC.
    pub created: String,
    /// Command that repeats it.
    pub command: String,
    /// Name of the common test.
    pub workload: String,
    /// Settings of the test for the baseline.
    pub plan: serde_json::Value,
    /// Environment record of the baseline.
    pub environment: serde_json::Value,
    /// Compared systems, the baseline first.
    pub systems: Vec<ComparedSystem>,
    /// Declared differences between the systems.
    pub declared: Vec<String>,
    /// Differences of each system from the baseline.
    pub differences: Vec<ComparedDifference>,
    /// Reason for the absence of a ranking; null if there is one.
    pub not_ranked: Option<String>,
    /// Figures available for at least two systems.
    pub rows: Vec<ComparedRow>,
    /// Index of each system, if there is a ranking; empty with too few values of every system.
    pub indices: Vec<ComparedIndex>,
    /// Systems with too few values in every judged row, and the runs that they need. Systems of earlier
    /// versions are missing.
    #[serde(default)]
    pub runs_needed: Vec<ComparedRuns>,
    /// Both ends of the qualified rate of each system; empty if a system is no qualification, and in
    /// results of earlier versions.
    #[serde(default)]
    pub qualified: Vec<ComparedInterval>,
    /// Requested limit and whether it holds; null without one.
    pub limit: Option<ComparedLimit>,
    /// Notes on how the comparison was made.
    pub notes: Vec<String>,
}

/// A machine, configuration or disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedSystem {
    /// Name in the comparison.
    pub name: String,
    /// Results that its figures are from, in order; empty for a published system.
    pub results: Vec<String>,
    /// Selected place in the results, if only one was taken.
    pub place: Option<String>,
    /// Start of the first result, RFC 3339, UTC; the year for a published system.
    pub created: String,
    /// Version of keepup that measured; null for a published system.
    pub tool_version: Option<String>,
    /// Names of the machines of its results; empty without any, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// Publication of the figures, which have no repeats and thus no intervals.
    pub published: Option<String>,
}

/// A difference between a system and the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedDifference {
    /// Name of the system.
    pub system: String,
    /// Axis of the difference, as in `--axis`.
    pub axis: String,
    /// Whether the axis was declared.
    pub is_declared: bool,
    /// Path of the item, as in `volumes[0].filesystem`.
    pub item: String,
    /// Value of the baseline.
    pub baseline: String,
    /// Value of the system.
    pub value: String,
}

/// One figure of all systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRow {
    /// Place of the measurement; empty if places are compared or there is only one.
    pub place: String,
    /// Operation.
    pub what: String,
    /// Quantity.
    pub quantity: Quantity,
    /// One entry per system, in order; null if the system lacks the figure.
    pub cells: Vec<Option<ComparedCell>>,
}

/// One figure of one system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedCell {
    /// Values in the order of measurement.
    pub values: Vec<f64>,
    /// Median.
    pub median: f64,
    /// Coefficient of variation; null with fewer than two values.
    pub variation: Option<f64>,
    /// Whether a value was measured for less than 1 s, so that it has no rank.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_too_short: bool,
    /// Comparison with the baseline; null for the baseline itself.
    pub beside: Option<ComparedRatio>,
}

/// Comparison of a system's figure with the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRatio {
    /// Ratio of the medians, or median of the ratios of pairs, inverted where necessary so that
    /// more than 1 is better. For a quantity that is neither better nor worse: system over
    /// baseline. Null with too few values or a measurement that was too short.
    pub ratio: Option<f64>,
    /// Lower bound of its 95 % bootstrap interval.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// p-value of the difference.
    pub chance: Option<f64>,
    /// Probability that a value of the system is better than one of the baseline; 0.5 for equal
    /// distributions. Null with too few values.
    pub effect: Option<f64>,
    /// Whether the values were measured in alternation, as pairs.
    pub is_paired: bool,
    /// Interpretation.
    pub change: Change,
}

/// Interpretation of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Significantly better than the baseline.
    Better,
    /// Significantly worse.
    Worse,
    /// No significant difference.
    NotShown,
    /// Too few values for a ratio.
    TooFew,
    /// Measured for less than 1 s, by the system or the baseline, so there is no ratio.
    TooShort,
    /// A quantity without a better direction, or a published value without repeats.
    NotJudged,
}

/// Runs needed to resolve a difference between a system and the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRuns {
    /// Name of the system.
    pub system: String,
    /// Difference to resolve, for example 0.05.
    pub difference: f64,
    /// Figure with the largest spread; empty if no spread is known.
    pub figure: String,
    /// Relative standard deviation of this figure, or of its ratios for values measured in alternation;
    /// null with fewer than two values on a side.
    pub spread: Option<f64>,
    /// Runs of each of the two systems in total. Without a known spread, the least number that the test
    /// accepts.
    pub runs: u32,
    /// Runs still missing of the baseline.
    pub more_of_baseline: u32,
    /// Runs still missing of the system.
    pub more_of_system: u32,
}

/// Both ends of the qualified rate over all runs of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedInterval {
    /// Name of the system.
    pub system: String,
    /// Lowest qualified rate of its runs, bytes per second.
    pub held_bytes_per_second: f64,
    /// Highest of the rates that failed above the qualified one; null if a run found none.
    pub failed_bytes_per_second: Option<f64>,
    /// Position relative to the baseline's interval; null for the baseline.
    pub position: Option<IntervalPosition>,
}

/// Position of an interval relative to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntervalPosition {
    /// It starts above the end of the other one.
    Above,
    /// It ends below the start of the other one.
    Below,
    /// They share rates.
    Overlaps,
}

impl IntervalPosition {
    /// Position of an interval relative to `other`. An end of `None` is unbounded.
    #[must_use]
    pub fn of(own: (f64, Option<f64>), other: (f64, Option<f64>)) -> Self {
        let is_below = |(_, end): (f64, Option<f64>), (start, _)| end.is_some_and(|end| end < start);
        match (is_below(other, own), is_below(own, other)) {
            (true, _) => Self::Above,
            (_, true) => Self::Below,
            _ => Self::Overlaps,
        }
    }
}

/// Summary of one system over all judged rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedIndex {
    /// Name of the system.
    pub system: String,
    /// Geometric mean of its ratios; null without any.
    pub index: Option<f64>,
    /// Lower bound of its 95 % bootstrap interval over the rows; null with fewer than two.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Number of rows.
    pub rows: u32,
    /// Number of significantly better rows.
    pub better: u32,
    /// Number of significantly worse rows.
    pub worse: u32,
}

/// Requested limit for all systems except the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedLimit {
    /// Minimum ratio.
    pub below: f64,
    /// Ratios below the minimum that are significantly worse: the limit is violated.
    pub failed: Vec<String>,
    /// Ratios below the minimum without significance, and figures with too few values.
    pub open: Vec<String>,
}

impl Headed for CompareSummary {
    fn head(&self) -> Head<'_> {
        Head {
            kind: self.kind,
            id: "",
            tool_version: &self.tool_version,
            created: &self.created,
            command: &self.command,
            workload: &self.workload,
            plan: &self.plan,
            environment: &self.environment,
            failure: None,
            interrupted: false,
        }
    }
}

impl Figures for CompareSummary {
    /// Figures of all systems, each with the name of its system.
    fn figures(&self) -> Vec<Figure> {
        let of_row = |row: &ComparedRow| {
            let cells = self.systems.iter().zip(&row.cells);
            let present = cells.filter_map(|(system, cell)| Some((system, cell.as_ref()?)));
            present
                .map(|(system, cell)| Figure {
                    place: row.place.clone(),
                    what: format!("{}: {}", system.name, row.what),
                    quantity: row.quantity,
                    values: cell.values.clone(),
                    is_too_short: cell.is_too_short,
                })
                .collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of_row).collect()
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
