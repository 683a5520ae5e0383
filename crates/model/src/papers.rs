//! The published figures of five papers, one TOML file each in the folder `papers/` of the repository: what
//! was measured there, in which unit it really was, and which claims follow from it.
//!
//! Invariants: a paper that comes out of [`parse`] is valid; what follows from a paper's numbers is computed
//! from them, never written down.

mod claim;
mod figure;
mod formula;
mod unit;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::claim::{CONTRADICTION, Claim};
pub use self::figure::{Published, PublishedFigure};
pub use self::formula::{Formula, Worked};
pub use self::unit::PaperUnit;
use crate::error::{Fault, ModelError, read};

keepup_plan::embedded!("../../../papers/": "cdf-csl", "cern-vme", "esrf-2007", "romanis", "tweakers-pci");

/// A paper and what it published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name that `keepup reproduce` takes; also the stem of its file.
    pub name: String,
    /// Its title, or what it is about where it is known without one.
    pub title: String,
    /// Who wrote it; empty where that is not known.
    #[serde(default)]
    pub authors: Vec<String>,
    /// Where it was published, in words.
    pub published: String,
    /// Year, where the paper says it.
    pub year: Option<u16>,
    /// What a reader of its figures should know: of units, of the order of tests.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What was measured.
    #[serde(rename = "figure", default)]
    pub figures: Vec<PublishedFigure>,
    /// What was concluded, with what follows from the paper's own numbers.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// Names of the papers, sorted.
pub(crate) fn paper_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// The built-in paper of that name.
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
/// What is no TOML, has unknown keys, or contradicts itself; with its place.
pub fn parse(text: &str, file: &str) -> Result<Paper, ModelError> {
    let paper: Paper = read(text, file)?;
    match paper.fault() {
        None => Ok(paper),
        Some(reason) => Err(Fault::new("", reason).placed(text, file)),
    }
}

impl Paper {
    /// The claim of that id.
    #[must_use]
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    /// The first thing in it that cannot be.
    fn fault(&self) -> Option<String> {
        if self.figures.is_empty() {
            return Some(format!("{}: a paper without figures", self.name));
        }
        let mut rows = BTreeSet::new();
        for figure in &self.figures {
            if let Some(why) = figure.fault() {
                return Some(format!("figure {} ({}): {why}", figure.id, figure.quantity));
            }
            let row = (&figure.id, &figure.system, &figure.condition, &figure.quantity);
            if !rows.insert(row) {
                return Some(format!("figure {} ({}) is there twice", figure.id, figure.quantity));
            }
        }
        let mut ids = BTreeSet::new();
        for claim in &self.claims {
            if let Some(why) = claim.fault() {
                return Some(format!("claim {}: {why}", claim.id));
            }
            if !ids.insert(&claim.id) {
                return Some(format!("claim {} is there twice", claim.id));
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "papers_tests.rs"]
mod tests;
