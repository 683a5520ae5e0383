//! Median of several runs with its interval.

use keepup_measure::stats::{bootstrap_median, bootstrap_median_ratio, median};

/// Bootstrap resamples. The seed is fixed, so that intervals are reproducible.
const RESAMPLES: u32 = 2000;
const SEED: u64 = 0x7065_6572;

/// Median with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// Median.
    pub(super) median: f64,
    /// Interval, none for a single run.
    pub(super) interval: Option<(f64, f64)>,
    /// Number of runs or pairs.
    pub(super) count: usize,
}

/// Median of runs, `None` without runs.
pub(super) fn spread(values: &[f64]) -> Option<Spread> {
    let interval = bootstrap_median(values, RESAMPLES, SEED).map(|found| (found.lower, found.upper));
    Some(Spread { median: median(values)?, interval, count: values.len() })
}

/// Median ratio of pairs, first / second; `None` without pairs.
pub(super) fn spread_of_ratios(pairs: &[(f64, f64)]) -> Option<Spread> {
    let ratios: Vec<f64> = pairs.iter().map(|(first, second)| first / second).collect();
    let interval = bootstrap_median_ratio(pairs, RESAMPLES, SEED).map(|found| (found.lower, found.upper));
    Some(Spread { median: median(&ratios)?, interval, count: pairs.len() })
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
