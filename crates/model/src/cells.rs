//! Published figures that the model predicts: machine, path and fitted constants of each, and the
//! figures that it does not predict.
//!
//! Invariants: a published value comes only from the paper's file, a predicted one only from
//! machines and formulas; a figure is either a cell, or open with a reason.

mod evaluate;
mod skill;

use keepup_results::{Origin, PredictedPapers};
use serde::Deserialize;

use crate::error::{ModelError, read};
use crate::papers::{Paper, PublishedFigure, paper};

keepup_plan::embedded!("../cells/": "cern-vme", "cdf-csl", "esrf-2007", "romanis", "tweakers-pci");

/// The cells of one paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cells {
    /// Name of the paper.
    paper: String,
    /// Number of constants fitted for its machines.
    fitted_constants: u32,
    /// Predicted figures.
    #[serde(rename = "cell", default)]
    cells: Vec<CellSpec>,
    /// Figures that are not predicted.
    #[serde(default)]
    open: Vec<OpenSpec>,
}

/// Selects published figures: those with this id and the given values of other fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    id: String,
    system: Option<String>,
    condition: Option<String>,
    quantity: Option<String>,
}

impl Which {
    fn is_it(&self, figure: &PublishedFigure) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        figure.id == self.id
            && fits(&self.system, &figure.system)
            && fits(&self.condition, &figure.condition)
            && fits(&self.quantity, &figure.quantity)
    }
}

/// A figure and its derivation from the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellSpec {
    /// The published figure: exactly one.
    of: Which,
    /// Origin of the value.
    origin: Origin,
    /// Maximum relative error for the cell to count as met.
    target: f64,
    /// Figure that the "no change" baseline would predict.
    unchanged: Option<Which>,
    /// Value that the "no change" baseline would predict, in the figure's unit.
    unchanged_value: Option<f64>,
    /// Method of evaluation.
    by: By,
    /// Explanation for the reader.
    because: String,
}

/// A machine, one of its paths, and changed settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    machine: String,
    path: Option<String>,
    #[serde(default)]
    with: Vec<String>,
}

/// Methods of evaluation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum By {
    /// Rate of a path.
    Rate { on: Setup },
    /// Time per word of a path.
    WordTime { on: Setup, word_bytes: f64 },
    /// Relative loss of one setup compared with another, percent.
    Loss { on: Setup, over: Setup },
    /// Ratio of two rates.
    Gain { on: Setup, over: Setup },
    /// Machines needed for a rate.
    Machines { on: Setup, target_mb_per_s: f64 },
    /// Utilization of a resource at the path's rate, percent.
    Use { on: Setup, resource: String },
    /// Derived from the paper's own numbers by one of its claims.
    Claim { claim: String },
}

impl By {
    /// Machine of the evaluation; `None` for a formula.
    fn machine(&self) -> Option<&str> {
        match self {
            Self::Rate { on }
            | Self::WordTime { on, .. }
            | Self::Loss { on, .. }
            | Self::Gain { on, .. }
            | Self::Machines { on, .. }
            | Self::Use { on, .. } => Some(&on.machine),
            Self::Claim { .. } => None,
        }
    }
}

/// Figures that are not predicted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenSpec {
    of: Which,
    what: String,
    why: String,
}

/// Comparison of published and predicted figures for all or the named papers. Intervals use
/// `samples` draws from the ranges.
///
/// # Errors
/// Unknown paper. Cells inconsistent with their paper are an internal fault.
pub fn predicted_papers(names: &[String], samples: u32, seed: u64) -> Result<PredictedPapers, ModelError> {
    for name in names {
        paper(name)?;
    }
    let mut found = PredictedPapers::default();
    for (name, text) in EMBEDDED {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let cells = parse(text, &format!("cells/{name}.toml"))?;
        let paper = paper(name)?;
        found.fitted_constants += cells.fitted_constants;
        for cell in &cells.cells {
            found.cells.push(evaluate::cell(&paper, cell, samples, seed)?);
        }
        found.open.extend(cells.open.iter().map(|open| keepup_results::OpenCell {
            paper: paper.name.clone(),
            id: open.of.id.clone(),
            what: open.what.clone(),
            why: open.why.clone(),
        }));
        found.contradicted.extend(contradicted(&paper));
    }
    found.skill = skill::of(&found.cells);
    Ok(found)
}

fn parse(text: &str, file: &str) -> Result<Cells, ModelError> {
    read(text, file)
}

fn contradicted(paper: &Paper) -> impl Iterator<Item = keepup_results::ContradictedClaim> {
    paper.claims.iter().filter(|claim| claim.is_contradicted()).map(|claim| {
        keepup_results::ContradictedClaim {
            paper: paper.name.clone(),
            place: claim.place.clone(),
            says: claim.says.clone(),
            arithmetic: claim.arithmetic(),
        }
    })
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
