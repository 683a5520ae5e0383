//! Soaks: long runs without tolerance that turn a knee into a qualified rate, and what they prove.
//!
//! A soak that fails lowers the rate by an informed step. A soak that holds is followed by one halfway to the
//! lowest rate that failed, until the two are close. The highest rate that held is qualified.

use std::time::Duration;

use keepup_results::FailedRate;

use super::outcome::{End, Interval, SoakRecord, TrialOutcome, TrialRecord};
use super::plan::SearchPlan;

/// Number of failures caused by stalls longer than the buffer, one of them a soak, after which
/// stepping down further would only wait for a soak without a stall.
const STALL_FAILURES: usize = 2;

/// Minimum share of its time that a soak must run to count as passed.
pub(super) const COMPLETE_SHARE: f64 = 0.95;
/// Largest step down after one failed soak, as a share of the rate.
const STEP_MAX: f64 = 0.5;
/// Repetitions at one rate of a soak that the generator spoiled, and then at lower rates.
const SPOILED_REPEATS: u32 = 2;
const SPOILED_STEPS: u32 = 2;
/// Number of spoiled soaks in all; the last is at the target.
pub(super) const SPOILED_MAX: u32 = SPOILED_REPEATS + SPOILED_STEPS + 1;
/// Step down after each of the latter, as a share of the rate.
const SPOILED_STEP: f64 = 0.1;
/// Relative gap between the highest rate that held and the lowest that failed at which the search ends.
const GAP: f64 = 0.1;

/// State of the soaks.
#[derive(Debug, Clone)]
pub(super) struct Soaks {
    /// Rate of the next soak, bytes/s.
    pub(super) rate: f64,
    /// Length of each soak.
    pub(super) length: Duration,
    /// Lowest rate known to fail, bytes/s.
    upper: Option<f64>,
    /// The highest rate that held.
    held: Option<SoakRecord>,
    /// Passes at the current rate, and their time in seconds.
    passes: u32,
    pass_s: f64,
    /// Soaks that failed, and the sum of their times up to the first loss, seconds.
    failed: u32,
    failed_s: f64,
    /// Time of soaks that held at rates which the machine no longer keeps, seconds.
    outdated_s: f64,
    /// Soaks that count, passed or failed.
    attempts: u32,
    /// Soaks spoiled by the generator.
    spoiled: u32,
    /// Whether a soak was left out because of the bytes.
    is_out_of_bytes: bool,
}

/// Next step after a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SoakStep {
    /// Another soak.
    Again,
    /// The search is over: a rate held, or no attempt or rate is left.
    Ended,
    /// The search is over: no rate held, and no further soak fits the bytes that are left.
    OutOfBytes,
}

impl Soaks {
    /// First soak below a knee, for which `left` bytes may be written; `inside` is the highest rate within
    /// the knee that held in a shorter trial, or what came through above it.
    pub(super) fn below(plan: &SearchPlan, left: f64, knee: Interval, inside: Option<f64>) -> Self {
        let first = Self::near(plan, left, knee);
        let is_wide = |upper: &f64| upper - knee.lower > GAP * upper;
        let Some(upper) = knee.upper.filter(is_wide) else { return first };
        // Time ran out before the knee was narrow: a short trial or the middle says more than the lower end.
        let rate = inside.map_or((knee.lower * upper).sqrt(), |inside| inside * plan.soak_start);
        let rate = rate.max(first.rate);
        first.at(plan, left, rate)
    }

    /// First soak just below the lower end of `knee`, for which `left` bytes may be written.
    pub(super) fn near(plan: &SearchPlan, left: f64, knee: Interval) -> Self {
        let start = knee.lower * plan.soak_start;
        // The target rate is worth a soak; the lowest rate of the plan may be the knee.
        let target = plan.target_rate.filter(|&target| start < target && target <= knee.lower);
        let rate = target.unwrap_or(start).max(plan.min_rate);
        let soaks = Self {
            rate,
            length: plan.soak,
            upper: knee.upper,
            held: None,
            passes: 0,
            pass_s: 0.0,
            failed: 0,
            failed_s: 0.0,
            outdated_s: 0.0,
            attempts: 0,
            spoiled: 0,
            is_out_of_bytes: false,
        };
        soaks.at(plan, left, rate)
    }

    /// The first soak at `rate`, shortened to fit `left` bytes less those of a soak at a lower target. If it
    /// would be too short, the target is soaked instead: that answers the user's question.
    fn at(mut self, plan: &SearchPlan, left: f64, rate: f64) -> Self {
        let target = plan.target_rate.filter(|&target| target < rate);
        let spare = left - target.map_or(0.0, |target| soak_bytes(plan, target));
        let is_too_short = spare < plan.soak_share_min * soak_bytes(plan, rate);
        (self.rate, self.length) = match target.filter(|_| is_too_short) {
            Some(target) => (target, affordable(plan, left, target)),
            None => (rate, affordable(plan, spare, rate)),
        };
        self.is_out_of_bytes = target.is_some() && is_too_short;
        self
    }

    /// Whether a soak was left out because of the limit of bytes.
    pub(super) fn is_out_of_bytes(&self) -> bool {
        self.is_out_of_bytes
    }

    /// The highest rate that held, with the time and the failures that count for it.
    pub(super) fn held(&self) -> Option<SoakRecord> {
        // Every other soak was at a higher rate: the rate of a soak is always below `upper`.
        self.held.map(|held| SoakRecord {
            attempts: self.attempts,
            failed: self.failed,
            exposed_s: held.seconds + self.failed_s + self.outdated_s,
            ..held
        })
    }

    /// Counts a soak at the current rate and chooses the next, for which `left` bytes may be written.
    pub(super) fn count(&mut self, plan: &SearchPlan, left: f64, outcome: &TrialOutcome) -> SoakStep {
        let counted_rate = self.rate;
        let step = if outcome.generator_limited {
            self.repeat(plan)
        } else {
            self.attempts += 1;
            if outcome.first_failed().is_none() {
                self.passed(plan, outcome)
            } else {
                self.failed(plan, outcome)
            }
        };
        if step == SoakStep::Again { self.afford(plan, left, counted_rate) } else { step }
    }

    /// Keeps the next soak if it fits `left` bytes. Otherwise a rate that held is not refined, and without
    /// one the target is soaked, which answers the user's question. Until it is, its bytes are reserved.
    fn afford(&mut self, plan: &SearchPlan, left: f64, counted_rate: f64) -> SoakStep {
        let target = plan.target_rate.filter(|&target| target < counted_rate && self.held.is_none());
        let above = target.filter(|&target| target < self.rate);
        let spare = left - above.map_or(0.0, |target| soak_bytes(plan, target));
        if target == Some(self.rate) {
            // The length that was reserved, even if soaks at higher rates were shorter.
            self.length = self.length.max(affordable(plan, left, self.rate));
        }
        let bytes = |rate: f64| rate * self.length.as_secs_f64();
        if bytes(self.rate) <= spare.min(plan.trial_bytes) {
            return SoakStep::Again;
        }
        self.is_out_of_bytes |= bytes(self.rate) > spare;
        if self.held.is_some() {
            return SoakStep::Ended;
        }
        match above.filter(|&target| bytes(target) <= left.min(plan.trial_bytes)) {
            Some(target) => {
                self.start(target);
                self.length = self.length.max(affordable(plan, left, target));
                SoakStep::Again
            }
            None => SoakStep::OutOfBytes,
        }
    }

    /// After a soak spoiled by the generator: the same again, then a lower rate that it may keep, as often,
    /// and at last the target, which answers the user's question.
    fn repeat(&mut self, plan: &SearchPlan) -> SoakStep {
        self.spoiled += 1;
        if self.spoiled <= SPOILED_REPEATS {
            return SoakStep::Again;
        }
        if self.spoiled > SPOILED_MAX || self.held.is_some() {
            return SoakStep::Ended;
        }
        if self.spoiled == SPOILED_MAX {
            let Some(target) = plan.target_rate.filter(|&target| target < self.rate) else {
                return SoakStep::Ended;
            };
            self.start(target);
            return self.again(plan);
        }
        self.start(self.rate * (1.0 - SPOILED_STEP));
        self.again(plan)
    }

    fn passed(&mut self, plan: &SearchPlan, outcome: &TrialOutcome) -> SoakStep {
        let soak_s = self.length.as_secs_f64();
        if outcome.duration_s >= COMPLETE_SHARE * soak_s {
            self.passes += 1;
            self.pass_s += outcome.duration_s.min(soak_s);
        }
        if self.passes >= plan.soak_passes {
            let (passes, seconds) = (self.passes, self.pass_s);
            self.held = Some(SoakRecord { rate: self.rate, passes, seconds, ..SoakRecord::default() });
            return self.refine(plan);
        }
        // One that was cut off without failing is repeated.
        self.again(plan)
    }

    fn failed(&mut self, plan: &SearchPlan, outcome: &TrialOutcome) -> SoakStep {
        let rate = self.rate;
        self.failed += 1;
        // `max` drops a NaN time.
        self.failed_s += outcome.clean_s.max(0.0).min(self.length.as_secs_f64());
        self.upper = Some(self.upper.map_or(rate, |upper| upper.min(rate)));
        if self.held.is_some() {
            return self.refine(plan);
        }
        let next = rate * (1.0 - self.step(plan, outcome));
        // A target on the way is tried itself; when all attempts failed, one more goes there.
        let is_over = self.attempts >= plan.soak_attempts_max;
        let target = plan.target_rate.filter(|&target| (next < target || is_over) && target < rate);
        match target {
            Some(target) => self.start(target),
            None if is_over => return SoakStep::Ended,
            None => self.start(next),
        }
        if self.rate < plan.min_rate { SoakStep::Ended } else { SoakStep::Again }
    }

    /// Step down after a failed soak, as a share of its rate: to what came through, or to the rate at which
    /// the buffer bridges the stall; otherwise twice the previous step.
    fn step(&self, plan: &SearchPlan, outcome: &TrialOutcome) -> f64 {
        let blind = plan.soak_step * f64::from(1u32 << self.failed.saturating_sub(1).min(8));
        let bridged = || {
            let (stall, buffer) = outcome.longest_stall.zip(outcome.buffer)?;
            outcome.stall_exceeds_buffer().then(|| buffer.as_secs_f64() / stall.as_secs_f64())
        };
        let is_known = |share: &f64| share.is_finite();
        let down = |share: f64| 1.0 - share * plan.soak_start;
        let through = Some(outcome.rate_outside_stall() / self.rate).filter(is_known).map(down);
        let step = match (bridged().filter(is_known), through) {
            (Some(share), _) => down(share),
            (None, Some(step)) if outcome.backlog_growing => step,
            // A buffer that was full from a stall on loses events, but has no backlog that grows.
            (None, Some(step)) if outcome.lost_events > 0 => step.max(blind),
            _ => blind,
        };
        step.clamp(plan.soak_step, STEP_MAX.max(plan.soak_step))
    }

    /// Halfway between what held and what failed, unless they are close or no attempt is left.
    fn refine(&mut self, plan: &SearchPlan) -> SoakStep {
        let (Some(held), Some(upper)) = (self.held, self.upper) else { return SoakStep::Ended };
        let is_close = upper - held.rate <= GAP * upper * (1.0 + 1e-9);
        // A wide gap is no answer, so it is narrowed for as long as there are attempts.
        let is_wide = upper > FailedRate::FAR_ABOVE * held.rate;
        let attempts_max = if is_wide { plan.soak_attempts_max } else { plan.soak_refine_max };
        if is_close || self.attempts >= attempts_max {
            return SoakStep::Ended;
        }
        self.start((held.rate * upper).sqrt());
        SoakStep::Again
    }

    /// After the machine has become slower: the rate that held is followed by one below what comes through
    /// now, or by a target on the way, for which `left` bytes may be written. When no attempt is left, one
    /// more goes to the target.
    pub(super) fn lower(&mut self, plan: &SearchPlan, left: f64, through: f64) -> SoakStep {
        let Some(outdated) = self.held.take() else { return SoakStep::Ended };
        self.outdated_s += outdated.seconds;
        self.upper = Some(through);
        let next = through * plan.soak_start;
        let is_over = self.attempts >= plan.soak_attempts_max;
        let target = plan.target_rate.filter(|&target| target <= through && target < outdated.rate);
        match target.filter(|&target| next < target || is_over) {
            Some(target) => self.start(target),
            None if is_over => return SoakStep::Ended,
            None => self.start(next),
        }
        if self.rate < plan.min_rate { SoakStep::Ended } else { self.afford(plan, left, outdated.rate) }
    }

    fn start(&mut self, rate: f64) {
        (self.rate, self.passes, self.pass_s) = (rate, 0, 0.0);
    }

    fn again(&self, plan: &SearchPlan) -> SoakStep {
        let is_over = self.attempts >= plan.soak_attempts_max || self.rate < plan.min_rate;
        if is_over { SoakStep::Ended } else { SoakStep::Again }
    }
}

/// Payload of a whole soak at `rate`, bytes.
fn soak_bytes(plan: &SearchPlan, rate: f64) -> f64 {
    rate * plan.soak.as_secs_f64()
}

/// Length of a soak at `rate` for which `bytes` may be written.
fn affordable(plan: &SearchPlan, bytes: f64, rate: f64) -> Duration {
    let seconds = (bytes.max(0.0) / rate).min(plan.trial_bytes / rate);
    // Infinite without a limit.
    Duration::try_from_secs_f64(seconds).map_or(plan.soak, |length| length.min(plan.soak))
}

/// End of the search if trials at or below `rate` and soaks fail because stalls exceed the buffer;
/// none without enough evidence. Below the knee such failures are not overload: a lower rate makes
/// the same stall only a little less costly, while a larger buffer ends the loss.
pub(super) fn stalls_exceed_buffer(trials: &[TrialRecord], rate: f64) -> Option<End> {
    let failures =
        || trials.iter().filter(|trial| trial.rate <= rate && trial.outcome.stall_exceeds_buffer());
    if failures().count() < STALL_FAILURES {
        return None;
    }
    failures()
        .filter_map(|trial| {
            let (longest_stall, buffer) = trial.outcome.longest_stall.zip(trial.outcome.buffer)?;
            Some((longest_stall, buffer, longest_stall.as_secs_f64() * trial.rate))
        })
        .max_by(|a, b| a.2.total_cmp(&b.2))
        .map(|(longest_stall, buffer, buffer_needed_bytes)| End::StallsExceedBuffer {
            longest_stall,
            buffer,
            buffer_needed_bytes,
        })
}

#[cfg(test)]
#[path = "soak_tests.rs"]
mod tests;
