//! What the model says of figures that papers published: which machine and path each of them is, which
//! constants were fitted to it, and what it says nothing of.
//!
//! Invariants: a published value comes from the paper's file alone, a predicted one from machines and
//! formulas alone; a figure is a cell, or is open with its reason.

mod evaluate;
mod skill;

use keepup_results::{Origin, PredictedPapers};
use serde::Deserialize;

use crate::error::{ModelError, read};
use crate::papers::{Paper, PublishedFigure, paper};

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// Name and text of the cells of each paper.
        const EMBEDDED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../cells/", $name, ".toml")))),*];
    };
}

embedded!["cern-vme", "cdf-csl", "esrf-2007", "romanis", "tweakers-pci"];

/// The cells of one paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cells {
    /// Name of the paper.
    paper: String,
    /// How many constants were fitted for its machines.
    fitted_constants: u32,
    /// What the model says something of.
    #[serde(rename = "cell", default)]
    cells: Vec<CellSpec>,
    /// What it says nothing of.
    #[serde(default)]
    open: Vec<OpenSpec>,
}

/// Which published figures are meant: those of this id whose other fields are these, where they are named.
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

/// A figure, and how the model comes to it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellSpec {
    /// The published figure: exactly one.
    of: Which,
    /// How the value came about.
    origin: Origin,
    /// Error up to which it counts as met, as a share.
    target: f64,
    /// The figure that "nothing changes" would put there.
    unchanged: Option<Which>,
    /// The value that "nothing changes" would put there, in the figure's unit.
    unchanged_value: Option<f64>,
    /// How it is worked out.
    by: By,
    /// Why it comes to that, for a reader.
    because: String,
}

/// A machine, one of its paths, and what is changed of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    machine: String,
    path: Option<String>,
    #[serde(default)]
    with: Vec<String>,
}

/// Ways to come to a value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum By {
    /// The rate of a path.
    Rate { on: Setup },
    /// The time of one word of a path.
    WordTime { on: Setup, word_bytes: f64 },
    /// What one setup loses of the other's rate, per cent.
    Loss { on: Setup, over: Setup },
    /// The rate of one over that of the other.
    Gain { on: Setup, over: Setup },
    /// Machines that take a rate together.
    Machines { on: Setup, target_mb_per_s: f64 },
    /// Share of a resource in use at the path's rate, per cent.
    Use { on: Setup, resource: String },
    /// What follows from the paper's own numbers, by one of its claims.
    Claim { claim: String },
}

/// A figure, or several, of which nothing is said.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenSpec {
    of: Which,
    what: String,
    why: String,
}

/// Every published figure beside the model's, of all papers or of those named. `samples` draws from the
/// ranges give each interval.
///
/// # Errors
/// A paper that there is none of. Cells that do not fit their paper are a fault of keepup.
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
