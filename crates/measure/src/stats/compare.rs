//! Comparison of two samples: ratio and significance.
//!
//! A change is significant only if two criteria agree: the bootstrap interval of the ratio excludes
//! 1, and a test gives a p-value below 1 %. For small samples a bootstrap interval alone is too
//! narrow and gives false alarms.
use fastrand::Rng;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};
use statrs::stats_tests::ttest_onesample::ttest_onesample;
use statrs::stats_tests::{Alternative, NaNPolicy};

use crate::sum::Sums;

use super::bootstrap::bootstrap_median_ratio;
use super::{Interval, median, quantile_sorted, sorted};

/// Significance level.
pub const CHANCE_MAX: f64 = 0.01;
/// Minimum number of values per side for a significant change.
pub const VALUES_MIN: usize = 5;
/// Maximum number of values per side for the exact test; above it the normal approximation is used.
const EXACT_MAX: usize = 30;

/// Relation of the two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Value by value: measured in alternation, so that drift affects both.
    Paired,
    /// Independent.
    Apart,
}

/// Comparison of the second sample with the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Median of the ratios of pairs, or ratio of the medians: second over first.
    pub ratio: f64,
    /// Its 95 % bootstrap interval; `None` with fewer than two values on a side.
    pub interval: Option<Interval>,
    /// p-value: Student's t of the log ratios of pairs, or the rank sum test of Mann and Whitney
    /// (1947). `None` with fewer than two values on a side.
    pub chance: Option<f64>,
    /// Probability that a value of the second sample is higher than one of the first, ties counted
    /// half (Vargha and Delaney, 2000): 0.5 for equal distributions, 0 or 1 without overlap.
    pub effect: f64,
}

impl Comparison {
    /// Whether the difference is significant.
    #[must_use]
    pub fn is_change(&self) -> bool {
        let outside = self.interval.is_some_and(|i| i.lower > 1.0 || i.upper < 1.0);
        outside && self.chance.is_some_and(|chance| chance < CHANCE_MAX)
    }
}

/// Compares `second` with `first`. Paired samples are truncated to the shorter one. `None` when a
/// sample is empty, or a value is not finite or not above 0.
#[must_use]
pub fn compare(
    first: &[f64],
    second: &[f64],
    pairing: Pairing,
    resamples: u32,
    seed: u64,
) -> Option<Comparison> {
    let usable = |values: &[f64]| values.iter().all(|value| value.is_finite() && *value > 0.0);
    if !usable(first) || !usable(second) {
        return None;
    }
    match pairing {
        Pairing::Paired => {
            let pairs: Vec<(f64, f64)> = second.iter().copied().zip(first.iter().copied()).collect();
            let ratios: Vec<f64> = pairs.iter().map(|(second, first)| second / first).collect();
            let length = ratios.len();
            Some(Comparison {
                ratio: median(&ratios)?,
                interval: bootstrap_median_ratio(&pairs, resamples, seed),
                chance: chance_of_ratios(&ratios),
                effect: effect(&first[..length], &second[..length])?,
            })
        }
        Pairing::Apart => Some(Comparison {
            ratio: median(second)? / median(first)?,
            interval: bootstrap_ratio_of_medians(first, second, resamples, seed),
            chance: rank_sum(first, second),
            effect: effect(first, second)?,
        }),
    }
}

/// Ratio of two medians, second over first, with its 95 % percentile bootstrap interval, resampling
/// both samples. `None` with fewer than two values on a side, or without resamples.
fn bootstrap_ratio_of_medians(first: &[f64], second: &[f64], resamples: u32, seed: u64) -> Option<Interval> {
    if first.len() < 2 || second.len() < 2 || resamples == 0 {
        return None;
    }
    let value = median(second)? / median(first)?;
    let mut rng = Rng::with_seed(seed);
    let mut draw = |values: &[f64]| {
        let drawing: Vec<f64> = (0..values.len()).map(|_| values[rng.usize(..values.len())]).collect();
        median(&drawing)
    };
    let mut ratios = Vec::new();
    for _ in 0..resamples {
        ratios.push(draw(second)? / draw(first)?);
    }
    let ratios = sorted(&ratios)?;
    Some(Interval { value, lower: quantile_sorted(&ratios, 0.025)?, upper: quantile_sorted(&ratios, 0.975)? })
}

/// Two-sided p-value of Student's t-test of log ratios against 0. `None` with fewer than two.
fn chance_of_ratios(ratios: &[f64]) -> Option<f64> {
    let count = ratios.len();
    if count < 2 {
        return None;
    }
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    // Without scatter t is undefined.
    if logarithms.iter().all(|value| *value == logarithms[0]) {
        return Some(if logarithms[0] == 0.0 { 1.0 } else { 0.0 });
    }
    let tested = ttest_onesample(logarithms, 0.0, Alternative::TwoSided, NaNPolicy::Error);
    tested.ok().map(|(_, chance)| chance)
}

/// Two-sided rank sum test of Mann and Whitney: exact for up to 30 values per side without ties,
/// else the normal approximation with corrections for ties and continuity. `None` with fewer than
/// two values on a side.
fn rank_sum(first: &[f64], second: &[f64]) -> Option<f64> {
    let (m, n) = (first.len(), second.len());
    if m < 2 || n < 2 {
        return None;
    }
    let (above, ties) = above(first, second);
    if ties == 0 && m <= EXACT_MAX && n <= EXACT_MAX {
        return Some(exact_chance(m, n, above));
    }
    let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
    let tested = mannwhitneyu(first, second, method, Alternative::TwoSided);
    tested.ok().map(|(_, chance)| chance)
}

/// Number of pairs in which the second value is above the first, and number of ties.
fn above(first: &[f64], second: &[f64]) -> (usize, usize) {
    let pairs = || second.iter().flat_map(|s| first.iter().map(move |f| (f, s)));
    (pairs().filter(|(f, s)| s > f).count(), pairs().filter(|(f, s)| s == f).count())
}

/// Two-sided probability of a rank sum at least as extreme when all orders of m and n values are
/// equally likely, by the recurrence of Mann and Whitney: the highest value is of one sample or of
/// the other. (The exact method of statrs enumerates all orders, 10^17 for 30 values per side, and
/// gives 1 for samples of equal length.)
fn exact_chance(m: usize, n: usize, above: usize) -> f64 {
    // ways[i][u]: shares of orders of i values of the first sample and the values of the second so
    // far.
    let mut ways: Vec<Vec<f64>> = (0..=m).map(|_| vec![1.0]).collect();
    for seconds in 1..=n {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for firsts in 1..=m {
            let total = (firsts + seconds) as f64;
            let mut counts = vec![0.0; firsts * seconds + 1];
            // The highest is of the second sample: above all of the first.
            for (u, share) in ways[firsts].iter().enumerate() {
                counts[u + firsts] += share * seconds as f64 / total;
            }
            // It is of the first sample: above none of the second.
            for (u, share) in next[firsts - 1].iter().enumerate() {
                counts[u] += share * firsts as f64 / total;
            }
            next.push(counts);
        }
        ways = next;
    }
    let counts = &ways[m];
    let extreme = above.min(m * n - above);
    let tail: f64 = counts.iter().take(extreme + 1).float_sum();
    (2.0 * tail).min(1.0)
}

/// Probability that a value of the second sample is above one of the first.
fn effect(first: &[f64], second: &[f64]) -> Option<f64> {
    let pairs = first.len() * second.len();
    let (above, ties) = above(first, second);
    (pairs > 0).then(|| (above as f64 + ties as f64 / 2.0) / pairs as f64)
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
