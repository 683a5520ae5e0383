//! Number of runs that resolves a difference, from the observed spread and the rule of
//! [`compare`](super::compare()).
//!
//! "Resolves" means: a comparison finds the difference in at least 80 of 100 cases. A test simulates
//! this for both kinds of pairing.
use std::f64::consts::PI;

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::sum::Sums;

use super::compare::{CHANCE_MAX, Pairing, VALUES_MIN};

/// Power of the test alone. The bootstrap interval must exclude 1 as well, which leaves about 80 % for
/// both.
const TEST_POWER: f64 = 0.9;

/// Spread of one run, and the runs of each side that resolve a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// Standard deviation of the logarithm of a value, pooled over both sides; of the log ratio for pairs.
    /// For small spreads it equals the relative standard deviation.
    pub spread: f64,
    /// Runs of each side, at least [`VALUES_MIN`].
    pub runs: u32,
}

/// Runs of each side that resolve a relative `difference`, such as 0.05. `None` with fewer than two values
/// on a side (or two pairs), or with values that are not finite or not above 0.
///
/// Sample size for Student's t (one sample of log ratios, or two samples), for the rank sum test times
/// pi / 3, the inverse of its efficiency for normal values (Lehmann, Nonparametrics, 1975).
#[must_use]
pub fn runs_to_resolve(
    first: &[f64],
    second: &[f64],
    pairing: Pairing,
    difference: f64,
) -> Option<Resolution> {
    let values = || first.iter().chain(second);
    if first.len().min(second.len()) < 2 || !values().all(|value| value.is_finite() && *value > 0.0) {
        return None;
    }
    let logarithms = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (first, second) = (logarithms(first), logarithms(second));
    let spread = match pairing {
        Pairing::Paired => {
            let ratios: Vec<f64> = second.iter().zip(&first).map(|(second, first)| second - first).collect();
            variance(&ratios)
        }
        Pairing::Apart => {
            let (m, n) = (first.len() as f64 - 1.0, second.len() as f64 - 1.0);
            (m * variance(&first) + n * variance(&second)) / (m + n)
        }
    }
    .sqrt();
    let relative = (spread / difference.ln_1p().abs()).powi(2);
    let (factor, samples) = match pairing {
        Pairing::Paired => (relative, 1.0),
        Pairing::Apart => (2.0 * PI / 3.0 * relative, 2.0),
    };
    // The normal distribution needs fewer runs than Student's t: start there.
    let normal = Normal::standard();
    let start = factor * quantiles(&normal).powi(2);
    let mut runs = (start.ceil() as u32).max(VALUES_MIN as u32);
    let needed = |runs: u32| {
        let student = StudentsT::new(0.0, 1.0, samples * (f64::from(runs) - 1.0)).ok()?;
        Some(factor * quantiles(&student).powi(2))
    };
    while f64::from(runs) < needed(runs)? {
        runs = runs.checked_add(1)?;
    }
    Some(Resolution { spread, runs })
}

/// Sum of the quantiles of significance and power.
fn quantiles(distribution: &impl ContinuousCDF<f64, f64>) -> f64 {
    distribution.inverse_cdf(1.0 - CHANCE_MAX / 2.0) + distribution.inverse_cdf(TEST_POWER)
}

/// Sample variance of at least two values.
fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().float_sum() / count;
    values.iter().map(|value| (value - mean).powi(2)).float_sum() / (count - 1.0)
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
