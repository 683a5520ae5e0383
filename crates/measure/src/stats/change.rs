//! Online detection of lasting level changes: drops and recoveries of a rate.
//!
//! Page's cumulative sum (1954) in both directions on the logarithm of value by level, so that a
//! drop and its recovery weigh the same. Adaptations for disks: deviations are clipped, so that a
//! stall of one sample is not a change; the level is the median of the values before the suspected
//! change; the threshold rises with scatter and autocorrelation, to avoid false alarms on noisy
//! machines. Because that would also delay the detection of large drops, a second pair of sums with
//! a coarser scale detects them.

use std::collections::VecDeque;
use std::f64::consts::{LN_2, LN_10};

use crate::sum::Sums as _;

use super::{mad, median};

/// Parameters of a pair of sums. Deviations are natural logarithms.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Deviations below this are ignored.
    slack: f64,
    /// Maximum contribution of one value: three stalls in a row are a change, two are not.
    clip: f64,
    /// Minimum threshold.
    sum_min: f64,
}

/// Half of a drop of 26 % never accumulates; a drop of 30 % (0.357) is a change at the fifth value.
const FINE: Scale = Scale { slack: 0.15, clip: 0.5, sum_min: 1.0 };
/// Half of a drop to a quarter never accumulates; a drop to a tenth is a change at the third value.
const COARSE: Scale = Scale { slack: LN_2, clip: LN_10, sum_min: 3.3 };
/// A sum with drift -[`Scale::slack`] and long-run variance v per value ever reaches h with
/// probability exp(-2 h slack / v) (Siegmund, Sequential Analysis, 1985); this is 2 h slack / v:
/// one in 160,000.
const CERTAINTY: f64 = 12.0;
/// Values required for the first level, and for a later one.
const FIRST: usize = 10;
const AGAIN: usize = 5;
/// Maximum number of values of a level.
const LEVEL_MAX: usize = 120;
/// Batch length for estimating autocorrelation.
const BATCH: usize = 5;
/// Minimum number of batches.
const BATCHES_MIN: usize = 10;
/// Scales a median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Long-run variance relative to that of single values, if not known better: corresponds to an
/// autocorrelation of 0.5.
const CORRELATED: f64 = 3.0;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first value of the new level, from 0; accurate to a few values.
    pub at: u64,
    /// Index of the value at which it was detected.
    pub noticed: u64,
    /// Previous level: a median.
    pub before: f64,
    /// New level until the detection: a median.
    pub after: f64,
}

/// Detector for equally spaced values, with bounded memory.
#[derive(Debug, Clone, Default)]
pub struct ChangeDetector {
    seen: u64,
    /// Logarithms of the values of the level.
    level: VecDeque<f64>,
    /// Logarithms of the values since a sum left zero.
    doubtful: VecDeque<f64>,
    fine: Sums,
    coarse: Sums,
    /// Whether there was a level before this one.
    is_later: bool,
    /// Long-run variance of the last sufficiently known level.
    variance: f64,
}

/// A one-sided cumulative sum.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    value: f64,
    /// Number of values for which it has been above zero.
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
    /// Adds a deviation from a level with standard error `error`. Returns how many values ago a
    /// change started, if this one completes it; otherwise 0.
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
    /// Adds a value; returns the change that it completes, if any. Non-positive values count as
    /// nearly zero.
    pub fn push(&mut self, value: f64) -> Option<Change> {
        let number = self.seen;
        self.seen += 1;
        let value = if value.is_finite() { value.max(f64::MIN_POSITIVE).ln() } else { return None };
        if self.level.len() < if self.is_later { AGAIN } else { FIRST } {
            self.keep(value);
            return None;
        }
        let centre = median(self.level.make_contiguous())?;
        // A level based on few values is uncertain by its standard error.
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

    /// Adds a value to the level.
    fn keep(&mut self, value: f64) {
        self.level.push_back(value);
        if self.level.len() > LEVEL_MAX {
            self.level.pop_front();
        }
        if let Some(variance) = long_run_variance(self.level.make_contiguous()) {
            self.variance = variance;
        }
    }

    /// A suspicion that neither becomes a change nor ends: its oldest value is added to the level.
    fn forget(&mut self) {
        if self.doubtful.len() > LEVEL_MAX
            && let Some(value) = self.doubtful.pop_front()
        {
            self.keep(value);
        }
    }
}

/// Long-run variance per value, from batch means, which include autocorrelation, but at least that
/// expected from single values. `None` for too few values.
fn long_run_variance(values: &[f64]) -> Option<f64> {
    let single = (MAD_TO_SIGMA * mad(values)?).powi(2) * CORRELATED;
    let means: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().float_sum() / BATCH as f64).collect();
    if means.len() < BATCHES_MIN {
        return (values.len() >= FIRST).then_some(single);
    }
    // A stall within a batch distorts its mean; the median of deviations ignores single stalls.
    let batches = (MAD_TO_SIGMA * mad(&means)?).powi(2) * BATCH as f64;
    Some(single.max(batches))
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
