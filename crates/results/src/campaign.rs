//! Result of a campaign: every cell with its runs, its figures, and the comparison with its
//! baseline.
//!
//! `None` means "not measured" or "not applicable" and is written as null.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Figures, Quantity};
use crate::head::Kind;
use crate::paper::PaperPage;
use crate::test::test_summary;

test_summary! {
    /// Result of a campaign.
    pub struct CampaignSummary: Kind::Campaign, version 1 {
        /// Name of the campaign, as in its directory.
        pub name: String,
        /// Description, for people.
        pub title: String,
        /// Axes that vary, the slowest first.
        pub axes: Vec<CampaignAxis>,
        /// Compared axes, with the label of the baseline on each.
        pub baseline: BTreeMap<String, String>,
        /// Order of the runs: `alternating` or `random`.
        pub order: String,
        /// Maximum number of runs per cell.
        pub repetitions: u32,
        /// All cells, including skipped ones.
        pub cells: Vec<CampaignCell>,
        /// Totals of the campaign.
        pub totals: CampaignTotals,
        /// Comparison with the reproduced paper, if any.
        pub paper: Option<PaperPage>,
    }
}

/// An axis of the campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignAxis {
    /// Name.
    pub name: String,
    /// Labels of its values, in the order of the campaign's file.
    pub labels: Vec<String>,
}

/// One combination of values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignCell {
    /// Number of the cell, from 1.
    pub number: u32,
    /// Label on each axis.
    pub coordinates: BTreeMap<String, String>,
    /// Command of each run.
    pub command: String,
    /// Number of the baseline cell; `None` for a baseline cell and without a baseline.
    pub baseline: Option<u32>,
    /// Axes in which it differs from that cell.
    pub changed: Vec<String>,
    /// Settings of the command in which it differs from that cell.
    pub settings: Vec<String>,
    /// Whether more than one axis or setting changed at once, so that a ratio has no single cause.
    pub confounded: bool,
    /// Numbers of the cells that change only one of these axes.
    pub alone: Vec<u32>,
    /// Reason for skipping it, if it was skipped.
    pub skipped: Option<String>,
    /// Runs in the order of repetitions.
    pub runs: Vec<CampaignRun>,
    /// Figures over all runs, with values in the order of repetitions.
    pub figures: Vec<Figure>,
    /// Comparison of the figures with those of the baseline.
    pub ratios: Vec<CampaignRatio>,
}

/// One run of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignRun {
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Path of its result relative to the campaign's directory; `None` without a result.
    pub directory: Option<String>,
    /// Exit code; 128 plus the signal number if killed by a signal.
    pub exit_code: i32,
    /// Duration including preparations, seconds.
    pub seconds: f64,
    /// Error, if any.
    pub why: Option<String>,
}

impl CampaignRun {
    /// Whether a run with this exit code did what was asked: fit or done, or fit with limits.
    #[must_use]
    pub const fn is_success(exit_code: i32) -> bool {
        matches!(exit_code, 0 | 6)
    }
}

/// Comparison of a cell's figure with that of its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignRatio {
    /// Place of the measurement, as named by the cell.
    pub place: String,
    /// Operation.
    pub what: String,
    /// Quantity.
    pub quantity: Quantity,
    /// Median of the ratios of all pairs, inverted where necessary so that more than 1 is better
    /// than the baseline. For a quantity that is neither better nor worse: cell over baseline.
    pub ratio: f64,
    /// Lower bound of its 95 % interval; `None` with fewer than two pairs.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Number of pairs.
    pub pairs: u32,
    /// Whether the difference is significant: at least five pairs, an interval that excludes 1, and
    /// a p-value below 0.01.
    pub flagged: bool,
}

/// Totals over all cells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignTotals {
    /// Number of cells, including skipped ones.
    pub cells: u32,
    /// Number of skipped cells.
    pub skipped: u32,
    /// Planned runs.
    pub planned: u32,
    /// Completed runs.
    pub runs: u32,
    /// Completed runs with an exit code other than 0.
    pub failed: u32,
    /// Runs that were not needed because their cell was already precise enough.
    pub spared: u32,
    /// Remaining runs.
    pub left: u32,
    /// Total time of all runs, seconds.
    pub seconds: f64,
    /// Maximum bytes written by the completed runs, according to their plans.
    pub bytes_written: u64,
    /// Rule of the campaign that ended it early, if any.
    pub stopped: Option<String>,
}

impl CampaignCell {
    /// Name: its labels in the order of `axes`.
    #[must_use]
    pub fn name(&self, axes: &[CampaignAxis]) -> String {
        let labels = axes.iter().filter_map(|axis| self.coordinates.get(&axis.name));
        labels.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl Figures for CampaignSummary {
    /// Figures of all cells; the place names the cell, and the place within it unless a label
    /// contains it.
    fn figures(&self) -> Vec<Figure> {
        let of_cell = |cell: &CampaignCell| {
            let name = cell.name(&self.axes);
            let is_told = |place: &String| place.is_empty() || cell.coordinates.values().any(|l| l == place);
            let placed = cell.figures.iter().map(|figure| Figure {
                place: match is_told(&figure.place) {
                    true => name.clone(),
                    false => format!("{name}: {}", figure.place),
                },
                ..figure.clone()
            });
            placed.collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(of_cell).collect()
    }
}
