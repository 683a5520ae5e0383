//! One loss goal: rounds of falling width and growing trial time, and the load to measure next.
//!
//! Each goal is preceded by easier targets that narrow the range cheaply (MLRsearch, "preceding
//! targets"). Rounds only go forward; a round inherits the bounds of the one before it.

use super::grid::Grid;
use super::loads::{Bounds, Class, Loads, Target};
use super::outcome::Interval;
use super::plan::SearchPlan;

/// Search for the knee of one loss ratio.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    targets: Vec<Target>,
    /// Current round; the number of rounds when all are settled.
    round: usize,
    /// Bounds of the previous round.
    inherited: Bounds,
}

/// A load nominated for measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Nomination {
    /// Load on the grid.
    pub(super) load: usize,
    /// Length of the trial, seconds.
    pub(super) trial_s: f64,
    /// Whether it is for the last round.
    pub(super) last_round: bool,
}

impl Goal {
    /// Goal with the rounds of `plan`: trial time and duration sum grow geometrically from the initial
    /// trial, the width halves each time down to one step of the grid.
    pub(super) fn new(plan: &SearchPlan, loss_ratio: f64) -> Self {
        let (initial_s, trial_s) = (plan.initial_trial.as_secs_f64(), plan.trial.as_secs_f64());
        let sum_s = trial_s * f64::from(plan.sum_trials);
        let rounds = plan.preceding_targets;
        let targets = (0..=rounds)
            .map(|round| {
                let share = if rounds == 0 { 1.0 } else { f64::from(round) / f64::from(rounds) };
                Target {
                    loss_ratio,
                    exceed_ratio: plan.exceed_ratio,
                    trial_s: initial_s * (trial_s / initial_s).powf(share),
                    sum_s: initial_s * (sum_s / initial_s).powf(share),
                    width: 1 << (rounds - round),
                }
            })
            .collect();
        Self { targets, round: 0, inherited: Bounds::default() }
    }

    /// Advances to the first unsettled round and returns the load to measure for it; none when
    /// every round is settled. `ceiling` is the highest load that can be offered, `hint` the load
    /// that came through under overload.
    pub(super) fn nominate(
        &mut self,
        loads: &Loads,
        ceiling: usize,
        hint: Option<usize>,
    ) -> Option<Nomination> {
        while let Some(target) = self.targets.get(self.round) {
            let bounds = loads.bounds(target);
            if !settled(bounds, target.width, ceiling) {
                let load = self.next_load(loads, target, bounds, ceiling, hint);
                let last_round = self.round + 1 == self.targets.len();
                return Some(Nomination { load, trial_s: target.trial_s, last_round });
            }
            self.inherited = bounds;
            self.round += 1;
        }
        None
    }

    /// Load for an unsettled round, strictly between its bounds. In order: the middle of the
    /// inherited bounds, these bounds themselves, the ceiling and the hint in the first round; then
    /// outward from the known bound in steps that double with each surprise, and bisection.
    fn next_load(
        &self,
        loads: &Loads,
        target: &Target,
        bounds: Bounds,
        ceiling: usize,
        hint: Option<usize>,
    ) -> usize {
        let inside = |load: &usize| {
            *load <= ceiling
                && bounds.lower.is_none_or(|b| *load > b)
                && bounds.upper.is_none_or(|b| *load < b)
        };
        let Bounds { lower, upper } = self.inherited;
        let middle = lower.zip(upper).map(|(lower, upper)| lower.midpoint(upper));
        let first_round = self.round == 0;
        let start = [first_round.then_some(ceiling), hint.filter(|_| first_round)];
        let planned = [middle, lower, upper].into_iter().chain(start).flatten().find(inside);
        if let Some(load) = planned {
            return load;
        }
        let count = |class: Class, beyond: &dyn Fn(usize) -> bool| {
            loads.classes(target).filter(|&(load, found)| found == class && beyond(load)).count()
        };
        let (low_end, high_end) = (lower.or(hint), upper.or(hint));
        let higher = count(Class::Lower, &|load| high_end.is_none_or(|end| load >= end));
        let deeper = count(Class::Upper, &|load| low_end.is_none_or(|end| load <= end));
        let step = |surprises: usize| target.width << surprises.saturating_sub(1).min(32);
        let load = match (bounds.lower, bounds.upper) {
            (Some(lower), None) => lower + step(higher),
            (None, Some(upper)) => upper.saturating_sub(step(deeper)),
            (Some(lower), Some(upper)) => {
                let half = target.width * ((upper - lower).div_ceil(target.width) / 2);
                match (higher > 0, deeper > 0) {
                    (true, false) => lower + step(higher).min(half),
                    (false, true) => (lower + half).max(upper - step(deeper).min(upper - lower)),
                    _ => lower + half,
                }
            }
            (None, None) => ceiling,
        };
        load.min(ceiling)
    }

    /// Bounds of the last round.
    pub(super) fn final_bounds(&self, loads: &Loads) -> Bounds {
        self.targets.last().map(|target| loads.bounds(target)).unwrap_or_default()
    }

    /// Bounds of the knee from the last round; without a lower bound there, the best one of an
    /// earlier round below all upper bounds found on the way.
    pub(super) fn knee(&self, loads: &Loads, grid: &Grid) -> Option<Interval> {
        let mut upper: Option<usize> = None;
        for target in self.targets.iter().rev() {
            let bounds = loads.bounds(target);
            upper = [upper, bounds.upper].into_iter().flatten().min();
            let lower = bounds.lower.filter(|&lower| upper.is_none_or(|upper| lower < upper));
            if let Some(lower) = lower {
                return Some(Interval { lower: grid.rate(lower), upper: upper.map(|load| grid.rate(load)) });
            }
        }
        None
    }
}

/// Whether a round is done: the bounds are close enough, the highest load holds, or the lowest fails.
fn settled(bounds: Bounds, width: usize, ceiling: usize) -> bool {
    match (bounds.lower, bounds.upper) {
        (_, Some(0)) => true,
        (Some(lower), _) if lower >= ceiling => true,
        (Some(lower), Some(upper)) => upper - lower <= width,
        _ => false,
    }
}

#[cfg(test)]
#[path = "goal_tests.rs"]
mod tests;
