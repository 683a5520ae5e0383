//! What a comparison found: what differs between the systems, and every figure of each beside the baseline's.
//!
//! `None` means "not measured" or "there is none" and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Figures, Quantity};
use crate::stored::{Head, Headed};
use crate::summary::Kind;

/// Version of the layout of a comparison; rises whenever a reader of the old one could misread the new one.
pub const COMPARE_SCHEMA_VERSION: u32 = 1;

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareSummary {
    /// Version of this layout.
    pub schema_version: u32,
    /// What was done.
    pub kind: Kind,
    /// Version of keepup that compared.
    pub tool_version: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Exact command that repeats it.
    pub command: String,
    /// Name of the test that all systems were put to.
    pub workload: String,
    /// Its settings, as the baseline had them.
    pub plan: serde_json::Value,
    /// Environment record of the baseline.
    pub environment: serde_json::Value,
    /// What was compared, the baseline first.
    pub systems: Vec<ComparedSystem>,
    /// In what they may differ, as the user said.
    pub declared: Vec<String>,
    /// In what each differs from the baseline.
    pub differences: Vec<ComparedDifference>,
    /// Why there is no ranking; null when there is one.
    pub not_ranked: Option<String>,
    /// Every figure that at least two systems have.
    pub rows: Vec<ComparedRow>,
    /// One index for each system, where there is a ranking.
    pub indices: Vec<ComparedIndex>,
    /// What was asked of the others, and whether it holds; null when nothing was asked.
    pub limit: Option<ComparedLimit>,
    /// What the reader should know of how it was compared.
    pub notes: Vec<String>,
}

/// A machine, a configuration, or a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedSystem {
    /// What it is called here.
    pub name: String,
    /// Results that its figures are from, in order; none of a published one.
    pub results: Vec<String>,
    /// Where in them, when only one place was taken.
    pub place: Option<String>,
    /// When the first of them began, RFC 3339, UTC; of a published one the year.
    pub created: String,
    /// Version of keepup that measured; null of a published one.
    pub tool_version: Option<String>,
    /// Publication that its figures are from: they have no repeats, so no intervals.
    pub published: Option<String>,
}

/// Something in which a system differs from the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedDifference {
    /// Which system.
    pub system: String,
    /// Axis that it belongs to, as `--axis` takes it.
    pub axis: String,
    /// Whether the axis was declared.
    pub is_declared: bool,
    /// Where it stands, as in `volumes[0].filesystem`.
    pub item: String,
    /// What the baseline has.
    pub baseline: String,
    /// What the system has.
    pub value: String,
}

/// One figure over all systems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRow {
    /// Where it was measured; empty where places are what is compared, or there is only one.
    pub place: String,
    /// What was done.
    pub what: String,
    /// What of it.
    pub quantity: Quantity,
    /// Each system, in their order; null for one that does not have it.
    pub cells: Vec<Option<ComparedCell>>,
}

/// One figure of one system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedCell {
    /// All values, in the order in which they were measured.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Standard deviation over mean; null with fewer than two.
    pub variation: Option<f64>,
    /// Beside the baseline; null of the baseline itself.
    pub beside: Option<ComparedRatio>,
}

/// A system's figure beside the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedRatio {
    /// Ratio of the medians, or median of the ratios of pairs; turned so that more than 1 is better. Of a
    /// quantity that is neither better nor worse it is the system's over the baseline's.
    pub ratio: f64,
    /// Lower end of its 95 % bootstrap interval.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// How often chance alone would make such a difference.
    pub chance: Option<f64>,
    /// How often a value of the system is better than one of the baseline; 0.5 when they are alike.
    pub effect: f64,
    /// Whether they were measured in alternation, pair by pair.
    pub is_paired: bool,
    /// What that means.
    pub change: Change,
}

/// What a ratio means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Better than the baseline, and chance does not explain it.
    Better,
    /// Worse, and chance does not explain it.
    Worse,
    /// No more different than chance would make it.
    NotShown,
    /// Too few values to tell.
    TooFew,
    /// A quantity that is told, not judged.
    NotJudged,
}

/// One system over all rows that are judged by rates and times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedIndex {
    /// Which.
    pub system: String,
    /// Geometric mean of its ratios; null without any.
    pub index: Option<f64>,
    /// Lower end of its 95 % bootstrap interval over the rows; null with fewer than two.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// Rows that it rests on.
    pub rows: u32,
    /// Of those, shown to be better.
    pub better: u32,
    /// Of those, shown to be worse.
    pub worse: u32,
}

/// What was asked of all systems but the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComparedLimit {
    /// No ratio below this.
    pub below: f64,
    /// What is below it and shown to be worse: the limit does not hold.
    pub failed: Vec<String>,
    /// What is below it, but too few values or too much noise to tell.
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
    /// Those of all systems; each is named with its system.
    fn figures(&self) -> Vec<Figure> {
        let of_row = |row: &ComparedRow| {
            let cells = self.systems.iter().zip(&row.cells);
            let told = cells.filter_map(|(system, cell)| Some((system, cell.as_ref()?)));
            told.map(|(system, cell)| Figure {
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
