//! What is claimed about keepup beside its peers, and what the runs say to it.

use super::contestant::Figure;
use super::runner::Outcome;
use super::summary::{Spread, spread, spread_of_ratios};

/// Something that the runs show, with or without a goal.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// What it is, for people.
    pub(super) what: &'static str,
    /// The phase that is looked at.
    pub(super) phase: String,
    /// The figure that is looked at.
    pub(super) figure: Figure,
    /// Whose it is.
    pub(super) of: &'static str,
    /// To whose it is compared, round by round; none for the figure itself.
    pub(super) to: Option<&'static str>,
    /// What it should be.
    pub(super) goal: Option<Goal>,
}

/// What a figure or a ratio should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
    /// Less.
    Below(f64),
    /// No further from 1.
    Within(f64),
}

/// One's figure to another's, in runs of one phase.
pub(super) fn ratio(
    what: &'static str,
    figure: Figure,
    of: &'static str,
    to: &'static str,
    goal: Option<Goal>,
) -> Claim {
    Claim { what, phase: String::new(), figure, of, to: Some(to), goal }
}

/// A figure itself, in runs of one phase.
pub(super) fn figure(what: &'static str, figure: Figure, of: &'static str, goal: Option<Goal>) -> Claim {
    Claim { what, phase: String::new(), figure, of, to: None, goal }
}

impl Claim {
    /// The same about one phase.
    pub(super) fn in_phase(self, phase: &str) -> Self {
        Self { phase: phase.to_owned(), ..self }
    }
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(goal) => value >= goal,
            Self::AtMost(goal) => value <= goal,
            Self::Below(goal) => value < goal,
            Self::Within(goal) => (value - 1.0).abs() <= goal,
        }
    }
}

/// What the runs say to a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// The figure or ratio; none when the runs do not give one.
    pub(super) spread: Option<Spread>,
    /// Why the runs do not give one.
    pub(super) why: Option<String>,
    /// Whether the median meets the goal; none without a goal or a figure.
    pub(super) met: Option<bool>,
}

/// Judges a claim; `None` when one of those whom it is about did not take part.
pub(super) fn judge(claim: &Claim, outcomes: &[Outcome]) -> Option<Verdict> {
    let find = |name: &str| outcomes.iter().find(|outcome| outcome.name == name);
    let own = find(claim.of)?;
    let other = match claim.to {
        Some(name) => Some(find(name)?),
        None => None,
    };
    let figures = |outcome: &Outcome| outcome.figures(&claim.phase, claim.figure);
    let spread = match other {
        None => spread(&figures(own).into_iter().flatten().collect::<Vec<_>>()),
        Some(other) => {
            let rounds = figures(own).into_iter().zip(figures(other));
            spread_of_ratios(&rounds.filter_map(|(own, other)| own.zip(other)).collect::<Vec<_>>())
        }
    };
    let missing = || [Some(own), other].into_iter().flatten().find_map(|one| one.missing.clone());
    let why = spread.is_none().then(|| missing().unwrap_or_else(|| "no run gave it".to_owned()));
    let met = spread.zip(claim.goal).map(|(spread, goal)| goal.is_met(spread.median));
    Some(Verdict { spread, why, met })
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
