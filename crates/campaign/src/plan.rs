//! A campaign as it is run: what its file says, checked, with nothing left open.
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Most runs of one campaign: cells times repetitions.
pub const RUNS_MAX: u64 = 10_000;

/// Settings of a command by name: `verb` and `args` are its words, any other is a flag. No value stands for a
/// flag that has none, several for one that is repeated.
pub type Settings = BTreeMap<String, Vec<String>>;

/// What varies, what does not, and how it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is about, for people.
    pub title: String,
    /// Runs of each cell.
    pub repetitions: u32,
    /// How runs follow each other.
    pub order: CampaignOrder,
    /// Settings that all cells share.
    pub run: Settings,
    /// What varies, the slowest first.
    pub axes: Vec<Axis>,
    /// Axes that are compared: the label of each that others are compared with.
    pub baseline: BTreeMap<String, String>,
    /// Combinations that are left out.
    pub skip: Vec<Skip>,
    /// When it ends early.
    pub stop: Stop,
    /// The paper that it repeats, where it repeats one.
    #[serde(default)]
    pub paper: Option<PaperSettings>,
}

/// Table `[paper]` of a campaign's file: the paper that it repeats; its page is made from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSettings {
    /// Name of the paper.
    pub name: String,
    /// Part of the paper's amounts of data that is moved.
    pub scale: f64,
    /// Results that were measured elsewhere and belong into the same tables.
    #[serde(default)]
    pub with: Vec<PathBuf>,
}

/// How runs follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CampaignOrder {
    /// All cells in turn, then all again: A B A B.
    Alternating,
    /// All cells, in another order in each repetition.
    Random {
        /// Where the orders come from.
        seed: u64,
    },
}

/// Something that varies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// What it is set to.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// What it is called.
    pub label: String,
    /// What it sets.
    pub settings: Settings,
}

/// Combinations that are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Labels that they have.
    pub when: BTreeMap<String, String>,
    /// Why.
    pub why: String,
}

/// When a campaign ends before all runs are made; without a limit it goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// After so many runs that failed.
    pub failures: Option<u32>,
    /// After so long, the time of all runs together, seconds.
    pub seconds: Option<f64>,
    /// Before a run that could write more than this in all, bytes.
    pub bytes: Option<u64>,
    /// A cell is not repeated once the 95 % interval of the median of its first figure reaches no farther
    /// than this share to either side.
    pub half_width: Option<f64>,
}

/// Cells times repetitions; none beyond 2^64.
pub(crate) fn count_runs(axes: &[Axis], repetitions: u32) -> Option<u64> {
    let cells = axes.iter().try_fold(1u64, |cells, axis| cells.checked_mul(axis.values.len() as u64));
    cells.and_then(|cells| cells.checked_mul(repetitions.into()))
}
