//! Where a level changes for good, told while the values come in: drops and recoveries of a rate.
//!
//! Page's cumulative sum (1954) in both directions, over the logarithm of value by level, so that a drop and
//! the recovery from it weigh the same. Three things make it fit for disks. A deviation is clipped, so that a
//! stall of one sample is not a change of level. The level is a median of what came before the doubt began.
//! And the sum must go further where values scatter more or hang together: otherwise it would give false
//! alarms on a noisy machine. A great fall would then be told late as well, so it has a sum of its own, which
//! lets more scatter pass and counts more of a deviation.

use std::collections::VecDeque;
use std::f64::consts::{LN_2, LN_10};

use super::{mad, median};

/// What a pair of sums looks for. Deviations are natural logarithms.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Deviations below this never add up.
    slack: f64,
    /// What one value can count at most: three stalls in a row are a change, two are not.
    clip: f64,
    /// The least that a sum must reach.
    sum_min: f64,
}

/// Half of a drop of 26 % never adds up; a drop of 30 % (0.357) is a change with the fifth value.
const FINE: Scale = Scale { slack: 0.15, clip: 0.5, sum_min: 1.0 };
/// Half of a drop to a quarter never adds up; a drop to a tenth is a change with the third value.
const COARSE: Scale = Scale { slack: LN_2, clip: LN_10, sum_min: 3.3 };
/// A sum with the drift -[`Scale::slack`] and the variance v per value, in the long run, ever reaches h with
/// the probability exp(-2 h slack / v) (Siegmund, Sequential Analysis, 1985); this is 2 h slack / v: one
/// in 160,000.
const CERTAINTY: f64 = 12.0;
/// Values that make a first level, and a later one.
const FIRST: usize = 10;
const AGAIN: usize = 5;
/// Values that a level is the median of, at most.
const LEVEL_MAX: usize = 120;
/// Values whose mean is taken to see how much they hang together.
const BATCH: usize = 5;
/// Least number of batches that say something.
const BATCHES_MIN: usize = 10;
/// Scales a median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Variance in the long run by that of single values, where nothing better is known: a correlation of a half
/// from one to the next.
const CORRELATED: f64 = 3.0;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Number of the first value of the new level, counted from 0; good to a few values.
    pub at: u64,
    /// Number of the value with which it was noticed.
    pub noticed: u64,
    /// The level before: a median.
    pub before: f64,
    /// The level since, until it was noticed: a median.
    pub after: f64,
}

/// Watches values come in at even distances. Its memory is bounded.
#[derive(Debug, Clone, Default)]
pub struct ChangeDetector {
    seen: u64,
    /// Logarithms of what belongs to the level.
    level: VecDeque<f64>,
    /// Logarithms of what came since a sum left zero.
    doubtful: VecDeque<f64>,
    fine: Sums,
    coarse: Sums,
    /// Whether a level was known before this one.
    is_later: bool,
    /// Variance in the long run, of the last level that was known well enough.
    variance: f64,
}

/// A one-sided sum.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    value: f64,
    /// How many values it has been above zero.
    length: usize,
}

impl Sum {
    fn add(&mut self, deviation: f64, slack: f64) {
        self.value = (self.value + deviation - slack).max(0.0);
        self.length = if self.value > 0.0 { self.length + 1 } else { 0 };
    }
}

/// Sums in both directions, on one scale.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    down: Sum,
    up: Sum,
}

impl Sums {
    /// Adds a deviation from a level that is known with the standard error `error`. How many values ago a
    /// change began, when this one completes it; 0 otherwise.
    fn add(&mut self, deviation: f64, scale: Scale, error: f64, variance: f64) -> usize {
        let deviation = deviation.clamp(-scale.clip, scale.clip);
        self.down.add(-deviation, scale.slack + error);
        self.up.add(deviation, scale.slack + error);
        let sum = if self.down.value > self.up.value { self.down } else { self.up };
        let enough = (CERTAINTY * variance / (2.0 * scale.slack)).max(scale.sum_min);
        if sum.value < enough { 0 } else { sum.length }
    }

    fn are_zero(&self) -> bool {
        self.down.length.max(self.up.length) == 0
    }
}

impl ChangeDetector {
    /// The next value; the change that it completes, if it does. What is not positive counts as next to
    /// nothing.
    pub fn push(&mut self, value: f64) -> Option<Change> {
        let number = self.seen;
        self.seen += 1;
        let value = if value.is_finite() { value.max(f64::MIN_POSITIVE).ln() } else { return None };
        if self.level.len() < if self.is_later { AGAIN } else { FIRST } {
            self.keep(value);
            return None;
        }
        let centre = median(self.level.make_contiguous())?;
        // A level that is known of few values may itself be off by its standard error.
        let error = (self.variance / self.level.len() as f64).sqrt();
        let fine = self.fine.add(value - centre, FINE, error, self.variance);
        let coarse = self.coarse.add(value - centre, COARSE, error, self.variance);
        self.doubtful.push_back(value);
        if self.fine.are_zero() && self.coarse.are_zero() {
            while let Some(value) = self.doubtful.pop_front() {
                self.keep(value);
            }
            return None;
        }
        let since = fine.max(coarse).min(self.doubtful.len());
        if since == 0 {
            self.forget();
            return None;
        }
        let new = self.doubtful.split_off(self.doubtful.len() - since);
        let after = median(&new.iter().copied().collect::<Vec<_>>())?;
        *self =
            Self { seen: self.seen, level: new, is_later: true, variance: self.variance, ..Self::default() };
        Some(Change {
            at: self.seen - since as u64,
            noticed: number,
            before: centre.exp(),
            after: after.exp(),
        })
    }

    /// Adds to the level.
    fn keep(&mut self, value: f64) {
        self.level.push_back(value);
        if self.level.len() > LEVEL_MAX {
            self.level.pop_front();
        }
        if let Some(variance) = long_run_variance(self.level.make_contiguous()) {
            self.variance = variance;
        }
    }

    /// A doubt that goes on and on neither becomes a change nor ends: the oldest of it belongs to the level.
    fn forget(&mut self) {
        if self.doubtful.len() > LEVEL_MAX
            && let Some(value) = self.doubtful.pop_front()
        {
            self.keep(value);
        }
    }
}

/// Variance of a sum of values, per value: by means of batches, which see that neighbours hang together, and
/// not less than single values let expect. `None` of too few.
fn long_run_variance(values: &[f64]) -> Option<f64> {
    let single = (MAD_TO_SIGMA * mad(values)?).powi(2) * CORRELATED;
    let means: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if means.len() < BATCHES_MIN {
        return (values.len() >= FIRST).then_some(single);
    }
    // A stall within a batch pulls its mean far away; the median of deviations does not see single ones.
    let batches = (MAD_TO_SIGMA * mad(&means)?).powi(2) * BATCH as f64;
    Some(single.max(batches))
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
