//! Distribution-free bootstrap intervals of a median.

use fastrand::Rng;

use super::{Interval, median, quantile_sorted, sorted};

/// The median with its 95 % percentile bootstrap interval (Efron, 1979) from `resamples` resamples,
/// customarily 2000. Reproducible by `seed`. `None` for fewer than two values, one that is not
/// finite, or no resample. For small samples the interval is too narrow: use at least five pairs.
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

/// The median ratio first / second of pairs measured in alternation, with its 95 % percentile
/// bootstrap interval over the pairs. An interval that excludes 1 shows a difference. `None` as for
/// [`bootstrap_median`], and when a second value is zero.
pub fn bootstrap_median_ratio(pairs: &[(f64, f64)], resamples: u32, seed: u64) -> Option<Interval> {
    let ratios: Vec<f64> = pairs.iter().map(|(first, second)| first / second).collect();
    bootstrap_median(&ratios, resamples, seed)
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
