//! What a campaign found: every cell with its runs, its figures, and how it compares with its baseline.
//!
//! `None` means "not measured" or "there is none" and is written as null.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Figures, Quantity};
use crate::paper::PaperPage;
use crate::summary::Kind;
use crate::test::test_summary;

test_summary! {
    /// What a campaign found.
    pub struct CampaignSummary: Kind::Campaign, version 1 {
        /// Name of the campaign, as its directory has it.
        pub name: String,
        /// What it is about, for people.
        pub title: String,
        /// What varies, the slowest first.
        pub axes: Vec<CampaignAxis>,
        /// Axes that are compared, and the label of each that others are compared with.
        pub baseline: BTreeMap<String, String>,
        /// How runs follow each other: `alternating` or `random`.
        pub order: String,
        /// Runs of each cell, at most.
        pub repetitions: u32,
        /// All cells, also those that were left out.
        pub cells: Vec<CampaignCell>,
        /// All of them together.
        pub totals: CampaignTotals,
        /// What became of the paper that it repeats, where it repeats one.
        pub paper: Option<PaperPage>,
    }
}

/// Something that varies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignAxis {
    /// Its name.
    pub name: String,
    /// What it is set to, in the order of the campaign's file.
    pub labels: Vec<String>,
}

/// One combination of values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignCell {
    /// Its number, from 1.
    pub number: u32,
    /// Label on each axis.
    pub coordinates: BTreeMap<String, String>,
    /// The command that each run of it is.
    pub command: String,
    /// Number of the cell that it is compared with; `None` where it is such a cell itself, and without
    /// baseline.
    pub baseline: Option<u32>,
    /// Axes in which it differs from that cell.
    pub changed: Vec<String>,
    /// Settings of the command in which it differs from that cell.
    pub settings: Vec<String>,
    /// Whether more than one axis or setting changed at once, so that no ratio tells which of them did it.
    pub confounded: bool,
    /// Numbers of the cells that change one of these axes alone.
    pub alone: Vec<u32>,
    /// Why it was left out, where it was.
    pub skipped: Option<String>,
    /// Its runs, in the order of repetitions.
    pub runs: Vec<CampaignRun>,
    /// What all its runs measured: values one after another in the order of repetitions.
    pub figures: Vec<Figure>,
    /// How these compare with those of the baseline.
    pub ratios: Vec<CampaignRatio>,
}

/// One run of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignRun {
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Where its result is, relative to the campaign's directory; `None` when it left none.
    pub directory: Option<String>,
    /// How it ended; 128 and the signal's number where one ended it.
    pub exit_code: i32,
    /// How long it took with all its preparations, seconds.
    pub seconds: f64,
    /// What went wrong, where anything did.
    pub why: Option<String>,
}

/// A figure of a cell beside that of its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignRatio {
    /// Where it was measured, as the cell calls it.
    pub place: String,
    /// What was done.
    pub what: String,
    /// What of it.
    pub quantity: Quantity,
    /// Median of the ratios of all pairs, turned so that more than 1 is better than the baseline. Of a
    /// quantity that is neither better nor worse it is the cell's over the baseline's.
    pub ratio: f64,
    /// Lower end of its 95 % interval; `None` with fewer than two pairs.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// Values that stood beside each other.
    pub pairs: u32,
    /// Whether the two differ: there are at least five pairs, the interval does not hold 1, and chance alone
    /// makes such a difference less often than 1 in 100 times.
    pub flagged: bool,
}

/// All cells together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignTotals {
    /// Cells, those left out included.
    pub cells: u32,
    /// Of those, left out.
    pub skipped: u32,
    /// Runs that were planned.
    pub planned: u32,
    /// Runs that ended.
    pub runs: u32,
    /// Of those, with another exit code than 0.
    pub failed: u32,
    /// Runs that were not needed, for their cell was exact enough.
    pub spared: u32,
    /// Runs that are left.
    pub left: u32,
    /// Time of all runs, seconds.
    pub seconds: f64,
    /// What the runs that ended wrote at most, by their own plans, bytes.
    pub bytes_written: u64,
    /// Why it ended before all runs were made, by a rule of the campaign.
    pub stopped: Option<String>,
}

impl CampaignCell {
    /// What it is called: its labels in the order of `axes`.
    #[must_use]
    pub fn name(&self, axes: &[CampaignAxis]) -> String {
        let labels = axes.iter().filter_map(|axis| self.coordinates.get(&axis.name));
        labels.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl Figures for CampaignSummary {
    /// Those of all cells; the place says which, and where within it unless a label does so already.
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
