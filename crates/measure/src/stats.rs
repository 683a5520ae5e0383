//! Statistics of few measurements: robust summaries, intervals, trends.
//!
//! Invariants: pure and deterministic (chance comes from a seed that is passed in); where the values given do
//! not allow an answer (too few, not finite) the answer is `None`, never a number that means nothing.

mod bootstrap;
mod change;
mod compare;
mod cost;
mod poisson;
mod steady;
mod trend;

pub use bootstrap::{bootstrap_median, bootstrap_median_ratio};
pub use change::{Change, ChangeDetector};
pub use compare::{CHANCE_MAX, Comparison, Pairing, VALUES_MIN, compare};
pub use cost::{BreakEven, Cost, KNEE_SHARE, LENGTHS_MAX, Timed, break_even, fit_cost, knee, pays_from};
pub use poisson::poisson_interval;
pub use steady::{DRIFT_SHARE_MAX, RANGE_SHARE_MAX, STEADY_ROUNDS, SteadyWindow, steady_window};
pub use trend::{TREND_POINTS_MAX, Trend, least_squares_slope, trend};

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The middle value, or the mean of the two middle ones. `None` without values or with one that is not
/// finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which the part `q` (0 to 1) of the values lies, interpolated linearly between neighbours
/// (type 7 of Hyndman and Fan, 1996: what numpy and R do unless told otherwise).
/// `None` without values, with one that is not finite, or with `q` outside 0 to 1.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_sorted(&sorted(values)?, q)
}

/// Median absolute deviation from the median, not scaled (times 1.4826 it estimates the standard deviation of
/// a normal distribution). `None` without values or with one that is not finite.
pub fn mad(values: &[f64]) -> Option<f64> {
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
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let standard_error = (squares / (n - 1) as f64 / n as f64).sqrt();
    let half = student_t_975(n - 1) * standard_error;
    Some(Interval { value: mean, lower: mean - half, upper: mean + half })
}

/// Upper 95 % bound on the rate, per second, of events of which none was seen in `seconds`: the rule of
/// three, 3/T (-ln 0.05 = 2.996 for a Poisson process). Without any observation the bound is infinite.
pub fn upper_bound_no_events(seconds: f64) -> f64 {
    if seconds > 0.0 { 3.0 / seconds } else { f64::INFINITY }
}

/// The values in order; `None` when there are none or one is not finite.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    Some(values)
}

/// [`quantile`] of values that are in order already.
fn quantile_sorted(values: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * values.len().checked_sub(1)? as f64;
    let lower = values.get(position.floor() as usize)?;
    let upper = values.get(position.ceil() as usize)?;
    Some(lower + (upper - lower) * position.fract()).filter(|value| value.is_finite())
}

/// The 97.5 % quantile of Student's t. No degree of freedom: nothing is known, the quantile is infinite.
fn student_t_975(degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::INFINITY, |student| student.inverse_cdf(0.975))
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
