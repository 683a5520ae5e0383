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

/// The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom (scipy.stats.t.ppf(0.975, df)).
const STUDENT_T_975: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604,
    2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555,
    2.0518, 2.0484, 2.0452, 2.0423,
];

/// The 97.5 % quantile of Student's t. Above the table the expansion in 1/df (Abramowitz and Stegun, 26.7.5),
/// which is exact to four digits there. No degree of freedom: nothing is known, the quantile is infinite.
fn student_t_975(degrees: usize) -> f64 {
    let Some(row) = degrees.checked_sub(1) else { return f64::INFINITY };
    if let Some(quantile) = STUDENT_T_975.get(row) {
        return *quantile;
    }
    let z: f64 = 1.959_964;
    let df = degrees as f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / df + second / df.powi(2) + third / df.powi(3)
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
