//! Time of a qualification, announced before anything is known about the machine. Pure.
use std::time::Duration;

use keepup_measure::stats::STEADY_ROUNDS;

use crate::search::SearchPlan;

/// Time of a trial beyond its length, seconds: its files are prepared and removed (measured: 0.9 to 1.4 s).
pub const TRIAL_OVERHEAD_S: f64 = 1.2;
/// Time after its first loss at which a soak is cut off: it failed, and the stall that caused the loss is
/// mostly over.
pub const CUT_OFF: Duration = Duration::from_secs(2);
/// Maximum number of rounds at full speed until the rate is steady.
pub(crate) const ROUNDS_MAX: usize = 24;
/// Soaks that a run needs on average: one on a quiet machine, two where the first fails (journal 0037).
const SOAKS: f64 = 1.4;
/// Ceilings besides those of the volumes: memory, network and source.
const CEILINGS: f64 = 3.0;

/// Durations of everything except search and soak.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Each ceiling.
    pub ceiling: Duration,
    /// Unthrottled trial.
    pub saturated: Duration,
    /// Each round until the rate is steady.
    pub steady_round: Duration,
    /// Each counter-trial of the bottleneck.
    pub counter: Duration,
    /// Pairs of counter-trials.
    pub counter_pairs: usize,
    /// Time to read back the events of all soaks; what takes longer is sampled.
    pub read_back: Duration,
}

impl Lengths {
    /// Durations of the quick or the full qualification.
    pub fn new(quick: bool) -> Self {
        let ms = |short, full| Duration::from_millis(if quick { short } else { full });
        Self {
            ceiling: ms(800, 2500),
            saturated: ms(1500, 4000),
            steady_round: ms(2000, 5000),
            counter: ms(1000, 1500),
            counter_pairs: if quick { 2 } else { 3 },
            read_back: ms(5_000, 45_000),
        }
    }

    /// Time of a trial with set-up and removal of its files, seconds.
    fn trial_s(length: Duration) -> f64 {
        length.as_secs_f64() + TRIAL_OVERHEAD_S
    }

    /// Length of the counter-trials of one nominee, seconds.
    pub fn counter_trials_s(&self) -> f64 {
        2.0 * self.counter_pairs as f64 * self.counter.as_secs_f64()
    }

    /// Time of the counter-trials of one nominee with their set-up, seconds.
    pub fn counter_s(&self) -> f64 {
        2.0 * self.counter_pairs as f64 * Self::trial_s(self.counter)
    }

    /// Time of the ceilings and of the unthrottled trials, seconds.
    pub fn before_search_s(&self, volumes: usize, rounds: Option<usize>) -> f64 {
        let ceilings_s = (CEILINGS + volumes as f64) * self.ceiling.as_secs_f64();
        let unthrottled_s = match rounds {
            Some(rounds) => rounds as f64 * Self::trial_s(self.steady_round),
            None => Self::trial_s(self.saturated),
        };
        ceilings_s + unthrottled_s
    }
}

/// Time of a run, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunTime {
    /// If the first nominee is the bottleneck and one or two soaks are needed.
    pub seconds: f64,
    /// If every soak but the last fails, or is followed by a slower machine.
    pub seconds_max: f64,
}

impl RunTime {
    /// Announced time. Reading back is taken to be as fast as writing.
    pub fn new(plan: &SearchPlan, lengths: &Lengths, volumes: usize, until_steady: bool) -> Self {
        let (soak_s, recheck_s) = (Lengths::trial_s(plan.soak), Lengths::trial_s(plan.trial));
        let read_back_s = plan.soak.min(lengths.read_back).as_secs_f64();
        let search_s = plan.budget.as_secs_f64() + lengths.counter_s();
        let before_s =
            |rounds| lengths.before_search_s(volumes, Some(rounds).filter(|_| until_steady)) + search_s;
        // One more for the target.
        let soaks_max = f64::from(plan.soak_attempts_max) + 1.0;
        Self {
            seconds: before_s(STEADY_ROUNDS) + SOAKS * soak_s + recheck_s + read_back_s,
            seconds_max: before_s(ROUNDS_MAX)
                + soaks_max * (soak_s + recheck_s)
                + lengths.read_back.as_secs_f64(),
        }
    }
}

#[cfg(test)]
#[path = "run_time_tests.rs"]
mod tests;
