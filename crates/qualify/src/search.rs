//! Search for the highest rate that a machine sustains: events in, actions out.
//!
//! The controller requests a trial, receives its outcome, and requests the next. It first brackets
//! the *knee*, the highest rate with no loss and no growing backlog, following MLRsearch
//! (draft-ietf-bmwg-mlrsearch-15); then it soaks just below the knee with no tolerance, and steps
//! down until a rate holds, and up again until that and the lowest rate that failed are close: the
//! *qualified rate*. The knee is tried once more at the end, because machines become slower: then a
//! soak follows at a lower rate. A trial or soak that the generator spoiled is repeated, and so is a
//! target that failed once. All trials stay on record.
//!
//! Invariants: no I/O, clock, thread or randomness, so the same outcomes give the same search; each
//! trial costs at least its length of the budget and soaks are counted, so the search ends after at
//! most `budget / initial_trial + 4 (soak_attempts_max + 1) + 5` steps.

mod backlog;
mod goal;
mod grid;
mod loads;
mod outcome;
mod plan;
mod recheck;
mod soak;

use std::time::Duration;

pub use backlog::backlog_grows;
pub use outcome::{End, FailedCondition, Interval, Outcome, Phase, Slower, SoakRecord};
pub use outcome::{TrialOutcome, TrialRecord};
pub use plan::{PlanError, SearchPlan};

use goal::{Goal, Nomination};
use grid::Grid;
use loads::{Finding, Loads};
use recheck::Recheck;
use soak::{COMPLETE_SHARE, SoakStep, Soaks};

/// Repetitions of a trial or soak spoiled by the generator, until it counts as too slow for the rate.
const REPEATS_MAX: u32 = 2;

/// Share of the requested rate that comes through outside of a stall; less is overload.
const DOUBT_SHARE: f64 = 0.9;

/// Next action.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run a trial and record its outcome.
    Trial {
        /// Rate to offer, bytes/s.
        rate: f64,
        /// Duration, not shortened when events are lost: the second goal counts them.
        duration: Duration,
        /// Purpose.
        phase: Phase,
    },
    /// Run a soak and record its outcome; it may be cut off once an event is lost.
    Soak {
        /// Rate to offer, bytes/s.
        rate: f64,
        /// Duration.
        duration: Duration,
    },
    /// None: the search is over.
    Done(Outcome),
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    plan: SearchPlan,
    grid: Grid,
    /// The lossless goal, then the optional second one.
    goals: Vec<Goal>,
    loads: Loads,
    /// Highest load that the generator can offer, as far as known; none if it cannot offer the lowest.
    ceiling: Option<usize>,
    /// Lowest rate that the generator could not offer, bytes/s.
    generator_limit: Option<f64>,
    /// Load that came through when a higher one was too much.
    hint: Option<usize>,
    /// Time spent on trials before the soak, seconds.
    spent_s: f64,
    /// Payload written by trials and soaks, bytes.
    written: f64,
    trials: Vec<TrialRecord>,
    /// Reason for the end of the search before the soak.
    search_end: Option<End>,
    soaks: Option<Soaks>,
    /// Trials since the last soak.
    recheck: Recheck,
    slower: Option<Slower>,
    /// Whether a trial was left out because of the bytes.
    is_out_of_bytes: bool,
    /// Repetitions of the pending trial.
    repeats: u32,
    pending: Pending,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pending {
    Trial { load: usize, duration: Duration, phase: Phase },
    Soak { rate: f64 },
    Recheck { rate: f64 },
    End(End),
}

impl Search {
    /// Starts a search.
    ///
    /// # Errors
    /// A plan with invalid settings.
    pub fn new(plan: SearchPlan) -> Result<Self, PlanError> {
        plan.validate()?;
        let grid = Grid::new(plan.min_rate, plan.max_rate, plan.width);
        let goals = std::iter::once(0.0)
            .chain(plan.second_loss_ratio)
            .map(|loss_ratio| Goal::new(&plan, loss_ratio))
            .collect();
        let top = grid.top();
        let first = Pending::Trial { load: top, duration: plan.initial_trial, phase: Phase::Narrow };
        let mut search = Self {
            grid,
            goals,
            loads: Loads::default(),
            ceiling: Some(top),
            generator_limit: None,
            hint: None,
            spent_s: 0.0,
            written: 0.0,
            trials: Vec::new(),
            search_end: None,
            soaks: None,
            recheck: Recheck::default(),
            slower: None,
            is_out_of_bytes: false,
            repeats: 0,
            pending: first,
            plan,
        };
        let trial = search.plan.trial;
        let target = search.plan.target_rate.filter(|&rate| rate <= search.plan.max_rate);
        let target = target.map(|rate| search.grid.at_least(rate));
        search.pending = match target.filter(|&load| search.fits(load, trial.as_secs_f64())) {
            Some(load) => Pending::Trial { load, duration: trial, phase: Phase::Target },
            None => search.next_trial(),
        };
        Ok(search)
    }

    /// Next action; unchanged until an outcome is recorded.
    pub fn next(&self) -> Step {
        match self.pending {
            Pending::Trial { load, duration, phase } => {
                Step::Trial { rate: self.grid.rate(load), duration, phase }
            }
            Pending::Soak { rate } => Step::Soak { rate, duration: self.soak_length() },
            Pending::Recheck { rate } => {
                Step::Trial { rate, duration: self.plan.trial, phase: Phase::Recheck }
            }
            Pending::End(end) => Step::Done(self.outcome(end)),
        }
    }

    /// Records the outcome of the trial or soak of [`next`](Self::next); ignored once the search is
    /// over.
    pub fn record(&mut self, outcome: TrialOutcome) {
        self.written +=
            Some(outcome.bytes).filter(|bytes| bytes.is_finite()).map_or(0.0, |bytes| bytes.max(0.0));
        match self.pending {
            Pending::Trial { load, duration, phase } => {
                let is_spoiled = outcome.generator_limited;
                // `max` drops a NaN cost.
                self.spent_s += outcome.elapsed_s.max(duration.as_secs_f64());
                let may_repeat = self.repeats < REPEATS_MAX && self.fits(load, duration.as_secs_f64());
                if !is_spoiled || !may_repeat {
                    self.weigh(load, duration, &outcome);
                }
                let is_doubtful =
                    !is_spoiled && self.is_first_failure_of_target(phase, self.grid.rate(load), &outcome);
                self.keep(phase, self.grid.rate(load), duration, outcome);
                if may_repeat && (is_spoiled || is_doubtful) {
                    self.repeats += 1;
                } else {
                    self.repeats = 0;
                    self.pending = self.next_trial();
                }
            }
            Pending::Soak { rate } => {
                let (length, left) = (self.soak_length(), self.bytes_left());
                let soaked = self.soaks.as_mut().map(|soaks| soaks.count(&self.plan, left, &outcome));
                self.keep(Phase::Soak, rate, length, outcome);
                self.pending = self.after_soak(soaked.unwrap_or(SoakStep::Ended));
            }
            Pending::Recheck { rate } => {
                let found = self.recheck.count(rate, &outcome);
                self.keep(Phase::Recheck, rate, self.plan.trial, outcome);
                self.pending = self.after_recheck(rate, found);
            }
            Pending::End(_) => {}
        }
    }

    /// Whether a rate has held a soak, and the machine has not become slower since.
    pub fn has_held(&self) -> bool {
        self.soaks.as_ref().is_some_and(|soaks| soaks.held().is_some())
    }

    /// Ends the search early.
    pub fn finish_now(self) -> Outcome {
        match self.pending {
            Pending::End(end) => self.outcome(end),
            _ => self.outcome(End::Interrupted),
        }
    }

    /// Whether the target failed for the first time, although most came through: one stall of the machine
    /// explains that. It is tried again, because the search stays below a target that failed.
    fn is_first_failure_of_target(&self, phase: Phase, rate: f64, outcome: &TrialOutcome) -> bool {
        let is_first = self.trials.iter().all(|trial| trial.outcome.generator_limited);
        let came_through = outcome.rate_outside_stall() >= DOUBT_SHARE * rate;
        phase == Phase::Target && is_first && outcome.first_failed().is_some() && came_through
    }

    fn keep(&mut self, phase: Phase, rate: f64, duration: Duration, outcome: TrialOutcome) {
        self.trials.push(TrialRecord { phase, rate, duration, failed: outcome.first_failed(), outcome });
    }

    /// Whether a trial of this length fits the budget of time and bytes.
    fn fits(&self, load: usize, trial_s: f64) -> bool {
        let bytes = trial_s * self.grid.rate(load);
        self.is_in_time(trial_s) && self.is_in_bytes(bytes) && bytes <= self.plan.trial_bytes
    }

    fn is_in_time(&self, trial_s: f64) -> bool {
        self.spent_s + trial_s <= self.plan.budget.as_secs_f64()
    }

    fn is_in_bytes(&self, bytes: f64) -> bool {
        self.written + bytes <= self.plan.search_bytes
    }

    /// Payload that may still be written, bytes.
    fn bytes_left(&self) -> f64 {
        (self.plan.bytes - self.written).max(0.0)
    }

    fn soak_length(&self) -> Duration {
        self.soaks.as_ref().map_or(self.plan.soak, |soaks| soaks.length)
    }

    /// Adds a trial to the findings for its load.
    fn weigh(&mut self, load: usize, asked: Duration, outcome: &TrialOutcome) {
        let asked_s = asked.as_secs_f64();
        if outcome.generator_limited {
            self.note_generator(self.grid.rate(load), outcome);
            let offered = self.grid.at_most(outcome.offered_rate);
            let below = load.checked_sub(1).zip(offered).map(|(below, offered)| below.min(offered));
            self.ceiling = self.ceiling.zip(below).map(|(ceiling, below)| ceiling.min(below));
            return;
        }
        let bad_anyway = outcome.backlog_growing || outcome.failed.is_some();
        let mut finding = Finding { duration_s: asked_s, loss_ratio: outcome.loss_ratio(), bad_anyway };
        // A bad trial may be cut off and counts in full; a good one counts for its actual length.
        if !finding.is_bad(0.0) && outcome.duration_s.max(0.0) < COMPLETE_SHARE * asked_s {
            finding.duration_s = outcome.duration_s.max(0.0);
        }
        // The first overload shows what comes through, that at the highest load shows it best.
        if finding.is_bad(0.0) && (Some(load) == self.ceiling || self.hint.is_none()) {
            self.hint = outcome
                .achieved_rate
                .is_finite()
                .then(|| self.grid.at_most(outcome.achieved_rate).unwrap_or(0));
        }
        self.loads.add(load, finding);
    }

    fn note_generator(&mut self, rate: f64, outcome: &TrialOutcome) {
        if outcome.generator_limited {
            self.generator_limit = Some(self.generator_limit.map_or(rate, |limit| limit.min(rate)));
        }
    }

    /// Next trial of the search, or what follows it: the lowest load of all goals first, at one
    /// load the longest trial.
    fn next_trial(&mut self) -> Pending {
        let nominated: Vec<Option<Nomination>> = match self.ceiling {
            Some(ceiling) => {
                self.goals.iter_mut().map(|goal| goal.nominate(&self.loads, ceiling, self.hint)).collect()
            }
            None => vec![None; self.goals.len()],
        };
        let main_is_done = nominated.first().is_none_or(|main| main.is_none());
        let next = nominated
            .into_iter()
            .flatten()
            .min_by(|a, b| a.load.cmp(&b.load).then(b.trial_s.total_cmp(&a.trial_s)));
        match next {
            Some(next) if self.fits(next.load, next.trial_s) => Pending::Trial {
                load: next.load,
                duration: Duration::from_secs_f64(next.trial_s),
                phase: if next.last_round { Phase::Knee } else { Phase::Narrow },
            },
            _ if main_is_done => self.first_soak(self.settled_end()),
            left_out => {
                self.is_out_of_bytes = left_out.is_some_and(|next| {
                    let bytes = next.trial_s * self.grid.rate(next.load);
                    self.is_in_time(next.trial_s) && !self.is_in_bytes(bytes)
                });
                self.first_soak(End::TimeCap)
            }
        }
    }

    /// Reason why the lossless goal is settled.
    fn settled_end(&self) -> End {
        let bounds = self.goals.first().map(|goal| goal.final_bounds(&self.loads)).unwrap_or_default();
        match (bounds.lower, bounds.upper) {
            (_, Some(0)) => End::MinRateFails,
            (Some(lower), Some(upper)) if upper - lower <= 1 => End::Converged,
            // Remaining cases: the highest load that could be offered holds, or none could be
            // offered.
            _ => match self.generator_limit {
                Some(rate) => End::GeneratorLimited { rate },
                None => End::MaxRateHolds,
            },
        }
    }

    /// Proceeds from the search to the soak if there is a knee, or an estimate of it.
    fn first_soak(&mut self, end: End) -> Pending {
        self.search_end = Some(end);
        let left = self.bytes_left();
        let inside = |knee| self.highest_held(knee).or_else(|| self.came_through(end, knee));
        let below = |knee: Interval| Soaks::below(&self.plan, left, knee, inside(knee));
        let near = |knee: Interval| Soaks::near(&self.plan, left, knee);
        let estimate = || self.estimate(end).map(near).or_else(|| self.untried_target().map(near));
        match self.knee().map(below).or_else(estimate) {
            Some(soaks) => {
                let rate = soaks.rate;
                self.soaks = Some(soaks);
                Pending::Soak { rate }
            }
            None => {
                let lowest_bad = self.loads.lowest_bad().map(|load| self.grid.rate(load));
                let stalls = lowest_bad.and_then(|rate| soak::stalls_exceed_buffer(&self.trials, rate));
                Pending::End(stalls.unwrap_or(end))
            }
        }
    }

    /// The target, if the bytes did not suffice for the trials that would have led to it.
    fn untried_target(&self) -> Option<Interval> {
        let target = self.plan.target_rate.filter(|_| self.is_out_of_bytes)?;
        let is_open = |failed: Option<f64>| failed.is_none_or(|failed| failed > target);
        let lowest_bad = self.loads.lowest_bad().map(|load| self.grid.rate(load));
        let bytes = target * self.plan.soak.as_secs_f64();
        let fits = bytes <= self.bytes_left().min(self.plan.trial_bytes);
        let is_untried = target <= self.plan.max_rate && is_open(lowest_bad) && is_open(self.generator_limit);
        (fits && is_untried).then_some(Interval { lower: target, upper: lowest_bad })
    }

    /// Highest rate within `knee` that held in a trial, however short.
    fn highest_held(&self, knee: Interval) -> Option<f64> {
        let held = self.trials.iter().filter(|trial| trial.failed.is_none()).map(|trial| trial.rate);
        let inside = held.filter(|rate| *rate > knee.lower && knee.upper.is_none_or(|upper| *rate < upper));
        inside.reduce(f64::max)
    }

    /// What came through under overload, if it is within `knee`.
    fn came_through(&self, end: End, knee: Interval) -> Option<f64> {
        let came = self.estimate(end).map(|came| came.lower);
        came.filter(|rate| *rate > knee.lower && knee.upper.is_none_or(|upper| *rate < upper))
    }

    /// What came through in the worst of the trials with a growing backlog: without a knee, because time ran
    /// out or rates that held at first failed later, a soak decides.
    fn estimate(&self, end: End) -> Option<Interval> {
        let overloaded = self.trials.iter().filter(|trial| {
            trial.outcome.backlog_growing && !trial.outcome.generator_limited && end != End::MinRateFails
        });
        let came = overloaded.map(|trial| trial.outcome.achieved_rate).filter(|rate| rate.is_finite());
        let lower = came.min_by(f64::total_cmp).filter(|rate| *rate >= self.plan.min_rate)?;
        let lower = lower.min(self.plan.max_rate);
        let upper = self.loads.lowest_bad().map(|load| self.grid.rate(load)).filter(|upper| *upper > lower);
        Some(Interval { lower, upper })
    }

    fn after_soak(&mut self, soaked: SoakStep) -> Pending {
        let Some(soaks) = &self.soaks else { return Pending::End(End::Interrupted) };
        if soaked == SoakStep::Again && !self.is_below_target_for_stalls(soaks.rate) {
            return Pending::Soak { rate: soaks.rate };
        }
        if let Some(held) = soaks.held() {
            self.recheck = Recheck::default();
            return self.recheck_or_end(held);
        }
        if self.slower.is_some() {
            return Pending::End(End::SlowsDown);
        }
        let rate = self.knee().map_or(0.0, |knee| knee.lower);
        let spoiled = self.trials.last().filter(|soak| soak.outcome.generator_limited);
        Pending::End(match spoiled {
            Some(soak) => End::GeneratorLimited { rate: self.generator_limit.unwrap_or(soak.rate) },
            None => soak::stalls_exceed_buffer(&self.trials, rate).unwrap_or(match soaked {
                SoakStep::OutOfBytes => End::ByteLimit,
                SoakStep::Again | SoakStep::Ended => End::SoakFails,
            }),
        })
    }

    /// The knee once more, if the bytes suffice: the rate of which `held` is the share for soaks, or the knee
    /// itself, if that is lower.
    fn recheck_or_end(&self, held: SoakRecord) -> Pending {
        let implied = held.rate / self.plan.soak_start;
        let knee = self.knee().filter(|_| self.slower.is_none());
        let rate =
            implied.min(knee.map_or(implied, |knee| knee.lower)).min(self.plan.max_rate).max(held.rate);
        let bytes = rate * self.plan.trial.as_secs_f64();
        match bytes <= self.bytes_left().min(self.plan.trial_bytes) {
            true => Pending::Recheck { rate },
            false => Pending::End(self.search_end.unwrap_or(End::Interrupted)),
        }
    }

    fn after_recheck(&mut self, rate: f64, found: recheck::Finding) -> Pending {
        let left = self.bytes_left();
        match (found, &mut self.soaks) {
            (recheck::Finding::Open, Some(soaks)) => match soaks.held() {
                Some(held) => self.recheck_or_end(held),
                None => Pending::End(End::Interrupted),
            },
            (recheck::Finding::Slower(to), Some(soaks)) => {
                let from = self.slower.map_or(rate, |earlier| earlier.from);
                self.slower = Some(Slower { from, to });
                match soaks.lower(&self.plan, left, to) {
                    SoakStep::Again => Pending::Soak { rate: soaks.rate },
                    SoakStep::Ended | SoakStep::OutOfBytes => Pending::End(End::SlowsDown),
                }
            }
            _ => Pending::End(self.search_end.unwrap_or(End::Interrupted)),
        }
    }

    /// Whether the last soak failed by a stall that the buffer bridges only below the target rate, and others
    /// did before: the answer for the target is known.
    fn is_below_target_for_stalls(&self, next: f64) -> bool {
        let by_stall = self.trials.last().is_some_and(|soak| soak.outcome.stall_exceeds_buffer());
        let knee = self.knee().map_or(0.0, |knee| knee.lower);
        let is_known = by_stall && soak::stalls_exceed_buffer(&self.trials, knee).is_some();
        is_known && self.plan.target_rate.is_some_and(|target| next < target)
    }

    fn knee(&self) -> Option<Interval> {
        self.goals.first().and_then(|goal| goal.knee(&self.loads, &self.grid))
    }

    /// The knee of the trials, raised to a soak that held above it, which had no loss and no growing backlog.
    /// Of a machine that has become slower, what held since.
    fn knee_with(&self, soak: Option<SoakRecord>) -> Option<Interval> {
        let knee = self.knee();
        let Some(held) = soak.map(|soak| soak.rate) else { return knee };
        if self.slower.is_none() && knee.is_some_and(|knee| knee.lower >= held) {
            return knee;
        }
        let last = self.trials.last().filter(|last| self.slower.is_some() && last.failed.is_none());
        let lower = last.map_or(held, |last| last.rate.max(held));
        let bad =
            self.trials.iter().filter(|trial| trial.failed.is_some() && !trial.outcome.generator_limited);
        let upper = bad.map(|trial| trial.rate).filter(|rate| *rate > lower).reduce(f64::min);
        Some(Interval { lower, upper })
    }

    fn outcome(&self, end: End) -> Outcome {
        let soak = self.soaks.as_ref().and_then(Soaks::held);
        Outcome {
            knee: self.knee_with(soak),
            second_knee: self.goals.get(1).and_then(|goal| goal.knee(&self.loads, &self.grid)),
            qualified_rate: soak.map(|soak| soak.rate),
            soak,
            slower: self.slower,
            is_out_of_bytes: self.is_out_of_bytes || self.soaks.as_ref().is_some_and(Soaks::is_out_of_bytes),
            end,
            trials: self.trials.clone(),
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
