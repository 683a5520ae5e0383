//! Experiments of papers, and how keepup repeats them.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Experiment of a paper and the cells of its reproduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Id, unique in the paper: "E1".
    pub id: String,
    /// Table, figure or section of the paper.
    pub place: String,
    /// What the paper did.
    pub measures: String,
    /// How close the repetition is.
    pub status: ExperimentStatus,
    /// Cells of the campaign that repeat it, by axis and label. Each selects all cells that have these
    /// labels; a label "sweep" also selects "sweep, /data/a".
    #[serde(default)]
    pub cells: Vec<BTreeMap<String, String>>,
    /// Titles of the tables that show it on the page.
    #[serde(default)]
    pub shows: Vec<String>,
    /// Arguments of `keepup predict`, for a model.
    pub predict: Option<String>,
    /// What differs from the paper; for a model, why it is not measured.
    pub difference: Option<String>,
    /// Options of `keepup reproduce` without which it is not run.
    pub needs: Option<String>,
}

/// How close a repetition is to the experiment of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentStatus {
    /// The same test on other hardware.
    Same,
    /// The nearest test that can be run, with a stated difference.
    Nearest,
    /// Predicted, not measured.
    Model,
}

impl ExperimentStatus {
    /// Word in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Nearest => "nearest",
            Self::Model => "model only",
        }
    }
}

impl Experiment {
    /// Whether a cell with these labels, by axis, repeats it.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let is = |label: &String, kind: &String| {
            label.strip_prefix(kind.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
        };
        let has = |(axis, kind): (&String, &String)| labels.get(axis).is_some_and(|label| is(label, kind));
        self.cells.iter().any(|selector| selector.iter().all(has))
    }

    /// First error, if any.
    pub(super) fn fault(&self) -> Option<String> {
        let is_measured = self.status != ExperimentStatus::Model;
        let faults = [
            (is_measured && self.cells.is_empty(), "no cells"),
            (is_measured && self.shows.is_empty(), "no table shows it"),
            (!is_measured && !self.cells.is_empty(), "cells for a model"),
            (is_measured == self.predict.is_some(), "a model needs a prediction, and nothing else has one"),
            (self.cells.iter().any(BTreeMap::is_empty), "a selector without labels"),
            (
                (self.status == ExperimentStatus::Same) == self.difference.is_some(),
                "only an experiment that is not the same has a difference, and it needs one",
            ),
        ];
        faults.iter().find(|(is_fault, _)| *is_fault).map(|(_, why)| (*why).to_owned())
    }
}
