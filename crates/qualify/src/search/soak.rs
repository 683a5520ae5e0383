//! The soak: a long run without tolerance that turns a knee into a rate that holds.

use super::outcome::{End, SoakRecord, TrialOutcome, TrialRecord};
use super::plan::SearchPlan;

/// Failures with a stall longer than the buffer, one of them a soak, after which stepping down further
/// would only wait for a soak without a stall.
const STALL_FAILURES: usize = 2;

/// A soak that runs for less than this share of its time proves nothing by passing.
pub(super) const COMPLETE_SHARE: f64 = 0.95;

/// Soaks so far, and the rate of the next.
#[derive(Debug, Clone)]
pub(super) struct Soaks {
    /// Rate of the next soak, bytes/s.
    pub(super) rate: f64,
    /// The ones that were run.
    pub(super) record: Option<SoakRecord>,
}

/// What follows a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Soaked {
    /// Another one.
    Again,
    /// All passes asked for were reached.
    Held,
    /// No attempt or no rate is left.
    GaveUp,
}

impl Soaks {
    /// First soak below a knee at `knee_rate` bytes/s.
    pub(super) fn below(plan: &SearchPlan, knee_rate: f64) -> Self {
        let start = knee_rate * plan.soak_start;
        // The rate asked for is worth the soak itself; the lowest rate of the plan may be the knee.
        let target = plan.target_rate.filter(|&target| start < target && target <= knee_rate);
        Self { rate: target.unwrap_or(start).max(plan.min_rate), record: None }
    }

    /// Counts a soak at the current rate. One that fails ends the row of passes and lowers the rate; one
    /// that was cut off without failing is repeated.
    pub(super) fn count(&mut self, plan: &SearchPlan, outcome: &TrialOutcome) -> Soaked {
        let so_far =
            self.record.unwrap_or(SoakRecord { rate: self.rate, passes: 0, seconds: 0.0, attempts: 0 });
        let mut record = SoakRecord { rate: self.rate, attempts: so_far.attempts + 1, ..so_far };
        let failed = outcome.first_failed().is_some();
        if failed {
            (record.passes, record.seconds) = (0, 0.0);
            let lower = self.rate * (1.0 - plan.soak_step);
            // The last attempt answers the question asked, however far below that rate lies.
            let last = record.attempts + 1 >= plan.soak_attempts_max;
            let target = plan.target_rate.filter(|&target| (lower < target || last) && target < self.rate);
            self.rate = target.unwrap_or(lower);
        } else if outcome.duration_s >= COMPLETE_SHARE * plan.soak.as_secs_f64() {
            record.passes += 1;
            record.seconds += outcome.duration_s;
        }
        self.record = Some(record);
        if record.passes >= plan.soak_passes {
            Soaked::Held
        } else if record.attempts >= plan.soak_attempts_max || self.rate < plan.min_rate {
            Soaked::GaveUp
        } else {
            Soaked::Again
        }
    }
}

/// The end that is due when trials at or below `rate` and soaks fail because stalls are longer than the
/// buffer; none while there is too little evidence. Such trials below the knee are not overload: a lower
/// rate only makes the same stall a little less costly, a larger buffer ends the loss.
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
