//! A paper's own tables and figures with this machine beside the published ones, and what follows.
//!
//! Values are in the units that the paper's table has; the column says which. `None` means "not measured", or
//! "not published", and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a paper on this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperPage {
    /// Name of the paper, as `keepup reproduce` takes it.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Who wrote it, where and when.
    pub source: String,
    /// This machine in one line.
    pub machine: String,
    /// Part of the paper's amounts of data that was moved here, as --scale gives it.
    pub scale: f64,
    /// What the paper asked, what it answered, and what the answer is here.
    pub answers: Vec<PaperAnswer>,
    /// Its tables.
    pub tables: Vec<PaperTable>,
    /// Its figures.
    pub curves: Vec<PaperCurve>,
    /// What was found here, in the manner of the paper.
    pub findings: Vec<String>,
    /// What the paper says and what follows from its own numbers.
    pub claims: Vec<PaperClaim>,
    /// What was not done as in the paper, or not at all, and why.
    pub limits: Vec<String>,
}

/// A question of the paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperAnswer {
    /// What was asked.
    pub question: String,
    /// What the paper answers.
    pub published: String,
    /// What this machine answers.
    pub here: String,
}

/// A table of the paper.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// What it is of.
    pub title: String,
    /// Where it stands in the paper, as "Table 1".
    pub stands: String,
    /// Over the first column, which names the rows.
    pub head: String,
    /// Its columns.
    pub columns: Vec<PaperColumn>,
    /// Published rows first, then those of this machine.
    pub rows: Vec<PaperRow>,
}

/// A column of figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperColumn {
    /// What stands over it.
    pub title: String,
    /// Unit of its values.
    pub unit: String,
}

/// A system, or a setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Which.
    pub name: String,
    /// Whether it was measured here; else it is published.
    pub is_here: bool,
    /// One for each column.
    pub cells: Vec<PaperCell>,
    /// What the reader should know of it.
    pub note: Option<String>,
}

/// One figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperCell {
    /// The value, or the median of several.
    pub value: Option<f64>,
    /// The lowest of several, or the lower end of a published range.
    pub lowest: Option<f64>,
    /// The highest.
    pub highest: Option<f64>,
    /// Measurements that it is from; 0 of a published one.
    pub runs: u32,
    /// What the reader should know of it, or what stands in place of a number.
    pub note: Option<String>,
}

/// A figure of the paper: curves over one axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperCurve {
    /// What it shows.
    pub title: String,
    /// Where it stands in the paper, as "Figure 3 (a)".
    pub stands: String,
    /// What lies along the horizontal axis, and its unit.
    pub x: PaperColumn,
    /// What lies along the vertical one.
    pub y: PaperColumn,
    /// Whether the horizontal axis is logarithmic.
    pub is_log_x: bool,
    /// The curves.
    pub series: Vec<PaperSeries>,
    /// What the reader should know, as that the published curve is lost.
    pub note: Option<String>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperSeries {
    /// Its name.
    pub name: String,
    /// Whether it was measured here; else it is published.
    pub is_here: bool,
    /// Its points: x, y.
    pub points: Vec<(f64, f64)>,
}

/// Something that the paper says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperClaim {
    /// What it says.
    pub says: String,
    /// Where.
    pub stands: String,
    /// What follows from its own numbers, with the arithmetic.
    pub follows: String,
    /// Whether the two do not agree.
    pub is_contradicted: bool,
}

impl PaperCell {
    /// A published value.
    #[must_use]
    pub fn published(value: f64) -> Self {
        Self { value: Some(value), ..Self::default() }
    }

    /// Words in place of a number.
    #[must_use]
    pub fn words(note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..Self::default() }
    }

    /// The median of what was measured; nothing without a value.
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
