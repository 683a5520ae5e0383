//! Result of a comparison: differences between the systems, and their figures relative to the
//! baseline.
//!
//! `None` means "not measured" or "not applicable" and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Figures, Quantity};
use crate::stored::{Head, Headed};
use crate::summary::Kind;

/// Version of the comparison's layout; incremented when an older reader could misread a newer file.
pub const COMPARE_SCHEMA_VERSION: u32 = 1;

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
    /// Index of each system, if there is a ranking.
    pub indices: Vec<ComparedIndex>,
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
    /// Comparison with the baseline; null for the baseline itself.
    pub beside: Option<ComparedRatio>,
}

/// Comparison of a system's figure with the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRatio {
    /// Ratio of the medians, or median of the ratios of pairs, inverted where necessary so that
    /// more than 1 is better. For a quantity that is neither better nor worse: system over
    /// baseline.
    pub ratio: f64,
    /// Lower bound of its 95 % bootstrap interval.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// p-value of the difference.
    pub chance: Option<f64>,
    /// Probability that a value of the system is better than one of the baseline; 0.5 for equal
    /// distributions.
    pub effect: f64,
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
    /// Too few values.
    TooFew,
    /// A quantity that is reported but not judged.
    NotJudged,
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
    /// Ratios below the minimum without significance.
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
                })
                .collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of_row).collect()
    }
}
