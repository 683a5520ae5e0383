//! The soak: a long run without tolerance that turns a knee into a qualified rate.

use super::outcome::{End, SoakRecord, TrialOutcome, TrialRecord};
use super::plan::SearchPlan;

/// Number of failures caused by stalls longer than the buffer, one of them a soak, after which
/// stepping down further would only wait for a soak without a stall.
const STALL_FAILURES: usize = 2;

/// Minimum share of its time that a soak must run to count as passed.
pub(super) const COMPLETE_SHARE: f64 = 0.95;

/// State of the soaks.
#[derive(Debug, Clone)]
pub(super) struct Soaks {
    /// Rate of the next soak, bytes/s.
    pub(super) rate: f64,
    /// Soaks so far.
    pub(super) record: Option<SoakRecord>,
}

/// Next step after a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SoakStep {
    /// Another soak.
    Again,
    /// All requested passes were reached.
    Held,
    /// No attempt or no rate is left.
    GaveUp,
}

impl Soaks {
    /// First soak below a knee at `knee_rate` bytes/s.
    pub(super) fn below(plan: &SearchPlan, knee_rate: f64) -> Self {
        let start = knee_rate * plan.soak_start;
        // The target rate is worth a soak; the lowest rate of the plan may be the knee.
        let target = plan.target_rate.filter(|&target| start < target && target <= knee_rate);
        Self { rate: target.unwrap_or(start).max(plan.min_rate), record: None }
    }

    /// Counts a soak at the current rate. A failed one resets the passes and lowers the rate; one
    /// that was cut off without failing is repeated.
    pub(super) fn count(&mut self, plan: &SearchPlan, outcome: &TrialOutcome) -> SoakStep {
        let so_far =
            self.record.unwrap_or(SoakRecord { rate: self.rate, passes: 0, seconds: 0.0, attempts: 0 });
        let mut record = SoakRecord { rate: self.rate, attempts: so_far.attempts + 1, ..so_far };
        let failed = outcome.first_failed().is_some();
        if failed {
            (record.passes, record.seconds) = (0, 0.0);
            let lower = self.rate * (1.0 - plan.soak_step);
            // The last attempt uses the target rate, however far below it is.
            let last = record.attempts + 1 >= plan.soak_attempts_max;
            let target = plan.target_rate.filter(|&target| (lower < target || last) && target < self.rate);
            self.rate = target.unwrap_or(lower);
        } else if outcome.duration_s >= COMPLETE_SHARE * plan.soak.as_secs_f64() {
            record.passes += 1;
            record.seconds += outcome.duration_s;
        }
        self.record = Some(record);
        if record.passes >= plan.soak_passes {
            SoakStep::Held
        } else if record.attempts >= plan.soak_attempts_max || self.rate < plan.min_rate {
            SoakStep::GaveUp
        } else {
            SoakStep::Again
        }
    }
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
