//! Bootstrap intervals of a median: no assumption on how the values are distributed.

use fastrand::Rng;

use super::{Interval, median, quantile_sorted, sorted};

/// The median with its 95 % percentile bootstrap interval (Efron, 1979), from `resamples` drawings with
/// replacement; 2000 are customary. The seed makes it repeatable. `None` for fewer than two values, one that
/// is not finite, or no resample. From few values the interval is too narrow: five pairs are the least.
pub fn bootstrap_median(values: &[f64], resamples: u32, seed: u64) -> Option<Interval> {
    if values.len() < 2 || resamples == 0 {
        return None;
    }
    let value = median(values)?;
    let mut rng = Rng::with_seed(seed);
    let mut drawing = vec![0.0; values.len()];
    let mut medians = Vec::new();
    for _ in 0..resamples {
        drawing.fill_with(|| values[rng.usize(..values.len())]);
        medians.push(median(&drawing)?);
    }
    let medians = sorted(&medians)?;
    Some(Interval {
        value,
        lower: quantile_sorted(&medians, 0.025)?,
        upper: quantile_sorted(&medians, 0.975)?,
    })
}

/// The median of the ratios first / second of pairs that were measured in alternation, with its 95 %
/// percentile bootstrap interval over the pairs. An interval that does not hold 1 tells the two apart.
/// `None` as for [`bootstrap_median`], and when a second value is zero.
pub fn bootstrap_median_ratio(pairs: &[(f64, f64)], resamples: u32, seed: u64) -> Option<Interval> {
    let ratios: Vec<f64> = pairs.iter().map(|(first, second)| first / second).collect();
    bootstrap_median(&ratios, resamples, seed)
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
