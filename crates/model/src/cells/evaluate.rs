//! Evaluation of the model for one published figure.

use keepup_results::PredictedCell;

use super::{By, CellSpec, Setup, Which};
use crate::error::ModelError;
use crate::machine::{Assembly, Machine, machine};
use crate::papers::{Paper, PaperUnit, PublishedFigure};
use crate::ranged::Ranged;
use crate::scatter;
use crate::solve::solve;

/// A setup prepared for many draws.
struct Ready {
    assembly: Assembly,
    machine: String,
}

impl Ready {
    fn of(setup: &Setup) -> Result<Self, ModelError> {
        let mut changed: Machine = machine(&setup.machine)?;
        for setting in &setup.with {
            changed.with(setting)?;
        }
        let path = setup.path.clone().unwrap_or_else(|| changed.main.clone());
        Ok(Self { assembly: changed.assembly(&path, None)?, machine: setup.machine.clone() })
    }

    fn rate(&self, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<f64, ModelError> {
        Ok(solve(&self.assembly.system(draw)?).bytes_per_second)
    }

    /// Utilization of a resource.
    fn in_use(&self, resource: &str, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<f64, ModelError> {
        let solution = solve(&self.assembly.system(draw)?);
        let found = solution.limits.iter().find(|limit| limit.name == resource);
        found.map(|limit| limit.utilisation).ok_or_else(|| ModelError::Unsolvable {
            machine: self.machine.clone(),
            reason: format!("nothing on the path is called {resource:?}").into(),
        })
    }
}

/// A method of evaluation, prepared for many draws.
enum Evaluation {
    Rate(Ready),
    WordTime(Ready, f64),
    Loss(Ready, Ready),
    Gain(Ready, Ready),
    Machines(Ready, f64),
    Use(Ready, String),
    Known(f64, PaperUnit),
}

impl Evaluation {
    fn of(paper: &Paper, by: &By) -> Result<Self, ModelError> {
        Ok(match by {
            By::Rate { on } => Self::Rate(Ready::of(on)?),
            By::WordTime { on, word_bytes } => Self::WordTime(Ready::of(on)?, *word_bytes),
            By::Loss { on, over } => Self::Loss(Ready::of(on)?, Ready::of(over)?),
            By::Gain { on, over } => Self::Gain(Ready::of(on)?, Ready::of(over)?),
            By::Machines { on, target_mb_per_s } => Self::Machines(Ready::of(on)?, *target_mb_per_s),
            By::Use { on, resource } => Self::Use(Ready::of(on)?, resource.clone()),
            By::Claim { claim } => {
                let known = paper.claims.iter().map(|claim| claim.id.as_str());
                let found = paper.claim(claim).ok_or_else(|| ModelError::unknown("claim", claim, known))?;
                let follows = found.follows().ok_or_else(|| misfit(paper, claim, "nothing follows"))?;
                Self::Known(follows, found.unit)
            }
        })
    }

    /// Value in B/s, s, B, or in its own unit.
    fn value(&self, draw: &mut dyn FnMut(&Ranged) -> f64) -> Result<(f64, PaperUnit), ModelError> {
        let mb = PaperUnit::MegabytesPerSecond;
        Ok(match self {
            Self::Rate(on) => (on.rate(draw)? / 1e6, mb),
            Self::WordTime(on, word_bytes) => (1e6 * word_bytes / on.rate(draw)?, PaperUnit::Microseconds),
            Self::Loss(on, over) => {
                let (on, over) = (on.rate(draw)?, over.rate(draw)?);
                (100.0 * (1.0 - on / over), PaperUnit::Percent)
            }
            Self::Gain(on, over) => (on.rate(draw)? / over.rate(draw)?, PaperUnit::Times),
            Self::Machines(on, target) => ((1e6 * target / on.rate(draw)?).ceil(), PaperUnit::Items),
            Self::Use(on, resource) => (100.0 * on.in_use(resource, draw)?, PaperUnit::Percent),
            Self::Known(value, unit) => (*value, *unit),
        })
    }
}

fn misfit(paper: &Paper, what: &str, why: &str) -> ModelError {
    ModelError::Unsolvable {
        machine: format!("cells of {}", paper.name),
        reason: format!("{what}: {why}").into(),
    }
}

/// The single selected figure.
pub(super) fn figure<'a>(paper: &'a Paper, which: &Which) -> Result<&'a PublishedFigure, ModelError> {
    let mut found = paper.figures.iter().filter(|figure| which.is_it(figure));
    match (found.next(), found.next()) {
        (Some(figure), None) => Ok(figure),
        (None, _) => Err(misfit(paper, &format!("{which:?}"), "no such figure")),
        (Some(_), Some(_)) => Err(misfit(paper, &format!("{which:?}"), "there are several of it")),
    }
}

/// Value and interval of one cell.
pub(super) fn cell(
    paper: &Paper,
    spec: &CellSpec,
    samples: u32,
    seed: u64,
) -> Result<PredictedCell, ModelError> {
    let published = figure(paper, &spec.of)?;
    let unit = published.unit;
    let number = |figure: &PublishedFigure| {
        let base = figure.in_base().ok_or_else(|| misfit(paper, &figure.id, "it has no number"))?;
        Ok::<f64, ModelError>(base / unit.in_base(1.0))
    };
    let way = Evaluation::of(paper, &spec.by)?;
    let in_unit = |(value, of): (f64, PaperUnit)| {
        of.convert(value, unit)
            .ok_or_else(|| misfit(paper, &published.id, &format!("{} is not {}", of.text(), unit.text())))
    };
    let predicted = in_unit(way.value(&mut |figure| figure.value)?)?;
    let bounds = scatter::bounds(samples, seed, |draw| in_unit(way.value(draw)?))?;
    let value = number(published)?;
    let unchanged = match &spec.unchanged {
        Some(which) => Some(number(figure(paper, which)?)?),
        None => spec.unchanged_value,
    };
    Ok(PredictedCell {
        paper: paper.name.clone(),
        id: published.id.clone(),
        system: published.system.clone(),
        machine: spec.by.machine().unwrap_or_default().to_owned(),
        condition: published.condition.clone(),
        quantity: published.quantity.clone(),
        unit: unit.text().to_owned(),
        published: value,
        predicted,
        lower: bounds.map(|(low, _)| low),
        upper: bounds.map(|(_, high)| high),
        error: predicted / value - 1.0,
        unchanged,
        origin: spec.origin,
        target: spec.target,
        because: spec.because.clone(),
    })
}
