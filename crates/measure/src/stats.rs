//! Statistics of small samples: robust summaries, intervals, trends.
//!
//! Invariants: pure and deterministic (random numbers use a given seed); `None` if the values do
//! not allow an answer (too few, not finite).

mod bootstrap;
mod change;
mod compare;
mod cost;
mod poisson;
mod resolve;
mod steady;
mod trend;

pub use bootstrap::{bootstrap_median, bootstrap_median_ratio};
pub use change::{Change, ChangeDetector};
pub use compare::{CHANCE_MAX, Comparison, Pairing, VALUES_MIN, compare};
pub use cost::{BreakEven, Cost, KNEE_SHARE, LENGTHS_MAX, Timed, break_even, fit_cost, knee, pays_from};
pub use poisson::poisson_interval;
pub use resolve::{Resolution, runs_to_resolve};
pub use steady::{DRIFT_SHARE_MAX, RANGE_SHARE_MAX, STEADY_ROUNDS, SteadyWindow, steady_window};
pub use trend::least_squares_slope;

use crate::sum::Sums;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// The middle value, or the mean of the two middle ones. `None` without values or with one that is not
/// finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile `q` (0 to 1) with linear interpolation (type 7 of Hyndman and Fan, 1996: the default of
/// numpy and R). `None` without values, with one that is not finite, or with `q` outside 0 to 1.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_sorted(&sorted(values)?, q)
}

/// Median absolute deviation from the median, not scaled (times 1.4826 it estimates the standard deviation of
/// a normal distribution). `None` without values or with one that is not finite.
pub(crate) fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&deviations)
}

/// The mean with its 95 % interval by Student's t. `None` for fewer than two values or one that is not
/// finite.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mean = values.iter().float_sum() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).float_sum();
    let standard_error = (squares / (n - 1) as f64 / n as f64).sqrt();
    let half = student_t_975(n - 1) * standard_error;
    Some(Interval { value: mean, lower: mean - half, upper: mean + half })
}

/// The values; `None` when empty or one is not finite.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    Some(values)
}

/// [`quantile`] of sorted values.
fn quantile_sorted(values: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * values.len().checked_sub(1)? as f64;
    let lower = values.get(position.floor() as usize)?;
    let upper = values.get(position.ceil() as usize)?;
    Some(lower + (upper - lower) * position.fract()).filter(|value| value.is_finite())
}

/// 97.5 % quantile of Student's t; infinite for 0 degrees of freedom.
fn student_t_975(degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::INFINITY, |student| student.inverse_cdf(0.975))
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
