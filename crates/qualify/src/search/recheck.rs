//! The knee once more after the soaks: a machine that has become slower does not keep what it held.

use super::outcome::TrialOutcome;

/// Share of the rate that comes through unless the machine has become slower: at 0.96 of the knee, a soak
/// that held has lost half of its margin below that.
const SLOWER_SHARE: f64 = 0.98;
/// Trials in a row that must show it: one is a disturbance.
const SLOWER_TRIALS: u32 = 2;
/// Number of trials at most; more are spoiled by the generator.
pub(super) const TRIALS_MAX: u32 = 3;

/// What the trials after a soak say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Finding {
    /// Not enough yet.
    Open,
    /// The machine is as fast as before, as far as the trials say.
    Steady,
    /// The machine has become slower; this came through, bytes/s.
    Slower(f64),
}

/// Trials after a soak that held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recheck {
    trials: u32,
    slower: u32,
}

impl Recheck {
    /// Counts a trial at `rate` bytes/s.
    pub(super) fn count(&mut self, rate: f64, outcome: &TrialOutcome) -> Finding {
        self.trials += 1;
        if !outcome.generator_limited {
            let came = outcome.rate_outside_stall();
            // A rate that is not a number proves nothing.
            let is_slower = outcome.first_failed().is_some() && came < SLOWER_SHARE * rate;
            if !is_slower {
                return Finding::Steady;
            }
            self.slower += 1;
            if self.slower >= SLOWER_TRIALS {
                return Finding::Slower(came);
            }
        }
        if self.trials < TRIALS_MAX { Finding::Open } else { Finding::Steady }
    }
}

#[cfg(test)]
#[path = "recheck_tests.rs"]
mod tests;
