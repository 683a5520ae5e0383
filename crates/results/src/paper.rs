//! Tables and figures of a paper with this machine's values beside the published ones.
//!
//! Values are in the units of the paper's table, given by the column. `None` means "not measured"
//! or "not published" and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reproduction of a paper on this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperPage {
    /// Name of the paper, as in `keepup reproduce`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Authors, place and year.
    pub source: String,
    /// One-line description of this machine.
    pub machine: String,
    /// Name of the fleet that was measured in place of this machine; null otherwise.
    #[serde(default)]
    pub fleet: Option<String>,
    /// Share of the paper's amounts of data, as in --scale.
    pub scale: f64,
    /// Questions of the paper, its answers, and the answers for this machine.
    pub answers: Vec<PaperAnswer>,
    /// Its tables.
    pub tables: Vec<PaperTable>,
    /// Its figures.
    pub curves: Vec<PaperCurve>,
    /// Findings on this machine, in the paper's terms.
    pub findings: Vec<String>,
    /// Claims of the paper, checked against its own numbers.
    pub claims: Vec<PaperClaim>,
    /// Experiments of the paper, with what was run for each.
    #[serde(default)]
    pub experiments: Vec<PaperExperiment>,
    /// Deviations from the paper and their reasons.
    pub limits: Vec<String>,
}

/// A question of the paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperAnswer {
    /// Question.
    pub question: String,
    /// Answer of the paper.
    pub published: String,
    /// Answer for this machine.
    pub here: String,
}

/// A table of the paper.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// Caption.
    pub title: String,
    /// Number in the paper, as in "Table 1".
    pub stands: String,
    /// Heading of the first column, which names the rows.
    pub head: String,
    /// Columns.
    pub columns: Vec<PaperColumn>,
    /// Published rows, then those of this machine.
    pub rows: Vec<PaperRow>,
}

/// A column of values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperColumn {
    /// Heading.
    pub title: String,
    /// Unit.
    pub unit: String,
}

/// A row: a system or a setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Name.
    pub name: String,
    /// Whether it was measured here; otherwise it is published.
    pub is_here: bool,
    /// One value per column.
    pub cells: Vec<PaperCell>,
    /// Note, if any.
    pub note: Option<String>,
}

/// One value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperCell {
    /// Value, or median of several.
    pub value: Option<f64>,
    /// Minimum of several, or lower end of a published range.
    pub lowest: Option<f64>,
    /// Maximum, or upper end.
    pub highest: Option<f64>,
    /// Number of measurements; 0 for a published value.
    pub runs: u32,
    /// Note, or text in place of a number.
    pub note: Option<String>,
}

/// A figure of the paper: curves over one axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperCurve {
    /// Caption.
    pub title: String,
    /// Number in the paper, as in "Figure 3 (a)".
    pub stands: String,
    /// Label and unit of the horizontal axis.
    pub x: PaperColumn,
    /// Label and unit of the vertical axis.
    pub y: PaperColumn,
    /// Whether the horizontal axis is logarithmic.
    pub is_log_x: bool,
    /// Curves.
    pub series: Vec<PaperSeries>,
    /// Note, for example that the published curve is lost.
    pub note: Option<String>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperSeries {
    /// Name.
    pub name: String,
    /// Whether it was measured here; otherwise it is published.
    pub is_here: bool,
    /// Points: x, y.
    pub points: Vec<(f64, f64)>,
}

/// A claim of the paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperClaim {
    /// Claim.
    pub says: String,
    /// Place in the paper.
    pub stands: String,
    /// Result from the paper's own numbers, with the arithmetic.
    pub follows: String,
    /// Whether claim and numbers disagree.
    pub is_contradicted: bool,
    /// Whether claim and numbers agree. Neither is true for a claim without a value, and for one whose
    /// computation needs an assumption.
    #[serde(default)]
    pub is_confirmed: bool,
}

/// An experiment of the paper and its repetition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperExperiment {
    /// Id, unique in the paper.
    pub id: String,
    /// Table, figure or section of the paper.
    pub stands: String,
    /// What the paper did.
    pub measures: String,
    /// `same`, `nearest`, `model only`, or why nothing was run.
    pub status: String,
    /// Numbers of the campaign's cells that repeat it.
    pub cells: Vec<u32>,
    /// What differs from the paper.
    pub difference: Option<String>,
}

impl PaperRow {
    /// Row of this machine.
    #[must_use]
    pub fn here(name: impl Into<String>, cells: Vec<PaperCell>) -> Self {
        Self { name: name.into(), is_here: true, cells, note: None }
    }

    /// Published row.
    #[must_use]
    pub fn published(name: impl Into<String>, cells: Vec<PaperCell>) -> Self {
        Self { name: name.into(), is_here: false, cells, note: None }
    }
}

impl PaperCell {
    /// A published value.
    #[must_use]
    pub fn published(value: f64) -> Self {
        Self { value: Some(value), ..Self::default() }
    }

    /// Text in place of a number.
    #[must_use]
    pub fn words(note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..Self::default() }
    }

    /// Median of the measured values; without a value, none.
    #[must_use]
    pub fn measured(values: &[f64]) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(lowest), Some(highest)) = (sorted.first(), sorted.last()) else { return Self::default() };
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Self {
            value: Some(f64::midpoint(low, high)),
            lowest: Some(*lowest),
            highest: Some(*highest),
            runs: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            note: None,
        }
    }
}

impl PaperColumn {
    /// A column with its unit.
    #[must_use]
    pub fn new(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into() }
    }
}
