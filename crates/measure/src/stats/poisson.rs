//! Confidence interval of a counted event rate (Poisson process).

use statrs::distribution::{ContinuousCDF, Gamma};

use super::Interval;

/// ln 20 = -ln 0.05: with this mean the probability of no event is 5 % (the "rule of three").
const NOTHING_SEEN: f64 = 2.995_732_273_553_991;
/// Above this count Wilson and Hilferty's approximation is accurate to eight digits, and the gamma
/// function's sums become slow.
const EXACT_COUNT_MAX: u64 = 100_000;
/// The 97.5 % quantile of the normal distribution.
const Z_975: f64 = 1.959_963_984_540_054;

/// The rate of events of which `count` were seen in `exposure` (seconds, bytes, bits), with its 95 %
/// interval, per unit of exposure.
///
/// With events it is the exact two-sided interval (Garwood, 1936: quantiles of chi-square with 2n and 2n + 2
/// degrees of freedom, halved); without any it is 0 with the one-sided bound -ln 0.05 / exposure (Hanley and
/// Lippman-Hand, 1983, "If nothing goes wrong, is everything all right?"). Without exposure: `None`.
pub fn poisson_interval(count: u64, exposure: f64) -> Option<Interval> {
    if !(exposure > 0.0 && exposure.is_finite()) {
        return None;
    }
    let (lower, upper) = match count {
        0 => (0.0, NOTHING_SEEN),
        _ if count > EXACT_COUNT_MAX => (cube(count as f64, -Z_975), cube(count as f64 + 1.0, Z_975)),
        // P(X < n; lower) = 97.5 % and P(X <= n; upper) = 2.5 %: quantiles of gamma distributions.
        _ => (gamma(count as f64, 0.025)?, gamma(count as f64 + 1.0, 0.975)?),
    };
    let per_unit = |mean: f64| mean / exposure;
    Some(Interval { value: per_unit(count as f64), lower: per_unit(lower), upper: per_unit(upper) })
}

/// Half the quantile of chi-square with 2n degrees of freedom (Wilson and Hilferty, 1931).
fn cube(n: f64, z: f64) -> f64 {
    let spread = 1.0 / (9.0 * n);
    n * (1.0 - spread + z * spread.sqrt()).powi(3)
}

/// A quantile of the gamma distribution with this shape: half of that of chi-square with twice the degrees.
fn gamma(shape: f64, quantile: f64) -> Option<f64> {
    Gamma::new(shape, 1.0).ok().map(|gamma| gamma.inverse_cdf(quantile))
}

#[cfg(test)]
#[path = "poisson_tests.rs"]
mod tests;
