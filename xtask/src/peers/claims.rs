//! Claims about keepup and its peers, and their verdicts.

use super::contestant::Figure;
use super::runner::Outcome;
use super::summary::{Spread, spread, spread_of_ratios};

/// Claim about a figure or ratio, with an optional goal.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// Description.
    pub(super) what: &'static str,
    /// Phase.
    pub(super) phase: String,
    /// Figure.
    pub(super) figure: Figure,
    /// Contestant.
    pub(super) of: &'static str,
    /// Contestant for comparison, round by round; none for a plain figure.
    pub(super) to: Option<&'static str>,
    /// Goal.
    pub(super) goal: Option<Goal>,
}

/// Goal of a figure or ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// At least.
    AtLeast(f64),
    /// At most.
    AtMost(f64),
    /// Below.
    Below(f64),
    /// Distance from 1 at most.
    Within(f64),
}

/// Claim about the ratio of two contestants, for runs with one phase.
pub(super) fn ratio(
    what: &'static str,
    figure: Figure,
    of: &'static str,
    to: &'static str,
    goal: Option<Goal>,
) -> Claim {
    Claim { what, phase: String::new(), figure, of, to: Some(to), goal }
}

/// Claim about a figure, for runs with one phase.
pub(super) fn figure(what: &'static str, figure: Figure, of: &'static str, goal: Option<Goal>) -> Claim {
    Claim { what, phase: String::new(), figure, of, to: None, goal }
}

impl Claim {
    /// Limits the claim to a phase.
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

/// Verdict on a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// Figure or ratio, if measured.
    pub(super) spread: Option<Spread>,
    /// Why it was not measured.
    pub(super) why: Option<String>,
    /// Whether the median meets the goal; none without goal or figure.
    pub(super) met: Option<bool>,
}

/// Judges a claim. `None` if a contestant did not take part.
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
    let why = spread.is_none().then(|| missing().unwrap_or_else(|| "not measured".to_owned()));
    let met = spread.zip(claim.goal).map(|(spread, goal)| goal.is_met(spread.median));
    Some(Verdict { spread, why, met })
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
