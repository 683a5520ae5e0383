//! Few runs as one figure with its interval.

use keepup_measure::stats::{bootstrap_median, bootstrap_median_ratio, median};

/// Drawings of the bootstrap; fixed with its seed, so that the same runs give the same interval.
const RESAMPLES: u32 = 2000;
const SEED: u64 = 0x7065_6572;

/// A median and where it lies with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// The middle of the runs.
    pub(super) median: f64,
    /// Lower and upper end; one run has no interval.
    pub(super) interval: Option<(f64, f64)>,
    /// Runs, or pairs of runs.
    pub(super) count: usize,
}

/// The median of some runs; `None` without runs.
pub(super) fn spread(values: &[f64]) -> Option<Spread> {
    let interval = bootstrap_median(values, RESAMPLES, SEED).map(|found| (found.lower, found.upper));
    Some(Spread { median: median(values)?, interval, count: values.len() })
}

/// The median ratio of pairs of runs, first to second; `None` without pairs.
pub(super) fn spread_of_ratios(pairs: &[(f64, f64)]) -> Option<Spread> {
    let ratios: Vec<f64> = pairs.iter().map(|(first, second)| first / second).collect();
    let interval = bootstrap_median_ratio(pairs, RESAMPLES, SEED).map(|found| (found.lower, found.upper));
    Some(Spread { median: median(&ratios)?, interval, count: pairs.len() })
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
