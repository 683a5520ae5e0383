//! Validated campaign.
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Most runs of one campaign: cells times repetitions.
pub const RUNS_MAX: u64 = 10_000;

/// Settings of a command by name: `verb` and `args` are its words, `host` is where it runs, others are flags.
/// Flags without a value have no values, repeated flags have several.
pub type Settings = BTreeMap<String, Vec<String>>;

/// Campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// Name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Title.
    pub title: String,
    /// Runs per cell.
    pub repetitions: u32,
    /// Order of the runs.
    pub order: CampaignOrder,
    /// Settings of all cells.
    pub run: Settings,
    /// Axes, slowest first.
    pub axes: Vec<Axis>,
    /// Baseline label of each compared axis.
    pub baseline: BTreeMap<String, String>,
    /// Skipped combinations.
    pub skip: Vec<Skip>,
    /// Conditions for an early end.
    pub stop: Stop,
    /// Reproduced paper, if any.
    #[serde(default)]
    pub paper: Option<PaperSettings>,
}

/// Table `[paper]` of a campaign file: the reproduced paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSettings {
    /// Name of the paper.
    pub name: String,
    /// Fraction of the paper's amounts of data.
    pub scale: f64,
    /// Results from other machines for the same tables.
    #[serde(default)]
    pub with: Vec<PathBuf>,
}

/// Order of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CampaignOrder {
    /// All cells, then all cells again: A B A B.
    Alternating,
    /// All cells in a new random order in each repetition.
    Random {
        /// Random seed.
        seed: u64,
    },
}

/// Axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name.
    pub name: String,
    /// Values.
    pub values: Vec<AxisValue>,
}

/// Value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// Label.
    pub label: String,
    /// Settings.
    pub settings: Settings,
}

/// Skipped combinations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Labels of the cells to skip.
    pub when: BTreeMap<String, String>,
    /// Reason.
    pub why: String,
}

/// Conditions for an early end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Failed runs.
    pub failures: Option<u32>,
    /// Total duration of all runs, seconds.
    pub seconds: Option<f64>,
    /// Total bytes written. A run that could exceed it is not started.
    pub bytes: Option<u64>,
    /// Relative half width of the 95 % interval of the median of the first figure. More precise cells are not
    /// repeated.
    pub half_width: Option<f64>,
}

/// Cells times repetitions, none on overflow.
pub(crate) fn count_runs(axes: &[Axis], repetitions: u32) -> Option<u64> {
    let cells = axes.iter().try_fold(1u64, |cells, axis| cells.checked_mul(axis.values.len() as u64));
    cells.and_then(|cells| cells.checked_mul(repetitions.into()))
}
