//! Published figures, claims and experiments of five papers, one TOML file each in `papers/` of the
//! repository.
//!
//! Invariants: a paper returned by [`parse`] is valid; derived values are computed, not stored.

mod claim;
mod experiment;
mod figure;
mod formula;
mod unit;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::claim::{CONTRADICTION, Claim};
pub use self::experiment::{Experiment, ExperimentStatus};
pub use self::figure::{Published, PublishedFigure};
pub use self::formula::{Evaluated, Formula};
pub use self::unit::PaperUnit;
use crate::error::{Fault, ModelError, read};

keepup_plan::embedded!("../../../papers/": "cdf-csl", "cern-vme", "esrf-2007", "romanis", "tweakers-pci");

/// Paper with its published figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name, as in `keepup reproduce`; also the file stem.
    pub name: String,
    /// Title or subject.
    pub title: String,
    /// Authors, empty if unknown.
    #[serde(default)]
    pub authors: Vec<String>,
    /// Publication.
    pub published: String,
    /// Year, if stated.
    pub year: Option<u16>,
    /// Remarks on the figures, such as units and order of tests.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Figures.
    #[serde(rename = "figure", default)]
    pub figures: Vec<PublishedFigure>,
    /// Claims.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// Experiments.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
}

/// Names of the papers, sorted.
pub(crate) fn paper_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Loads a built-in paper.
///
/// # Errors
/// Unknown name; the error suggests similar names.
pub fn paper(name: &str) -> Result<Paper, ModelError> {
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| ModelError::unknown("paper", name, paper_names()))?;
    parse(text, &format!("papers/{name}.toml"))
}

/// Parses a paper. `file` is used in errors.
///
/// # Errors
/// Not TOML, unknown keys, or contradictions, with the location.
pub fn parse(text: &str, file: &str) -> Result<Paper, ModelError> {
    let paper: Paper = read(text, file)?;
    match paper.fault() {
        None => Ok(paper),
        Some(reason) => Err(Fault::new("", reason).placed(text, file)),
    }
}

impl Paper {
    /// Claim with this id.
    #[must_use]
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    /// First error, if any.
    fn fault(&self) -> Option<String> {
        if self.figures.is_empty() {
            return Some(format!("{}: no figures", self.name));
        }
        let mut rows = BTreeSet::new();
        for figure in &self.figures {
            if let Some(why) = figure.fault() {
                return Some(format!("figure {} ({}): {why}", figure.id, figure.quantity));
            }
            let row = (&figure.id, &figure.system, &figure.condition, &figure.quantity);
            if !rows.insert(row) {
                return Some(format!("duplicate figure {} ({})", figure.id, figure.quantity));
            }
        }
        let mut ids = BTreeSet::new();
        for claim in &self.claims {
            if let Some(why) = claim.fault() {
                return Some(format!("claim {}: {why}", claim.id));
            }
            if !ids.insert(&claim.id) {
                return Some(format!("duplicate claim {}", claim.id));
            }
        }
        let mut ids = BTreeSet::new();
        for experiment in &self.experiments {
            if let Some(why) = experiment.fault() {
                return Some(format!("experiment {}: {why}", experiment.id));
            }
            if !ids.insert(&experiment.id) {
                return Some(format!("duplicate experiment {}", experiment.id));
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "papers_tests.rs"]
mod tests;
