//! Steady-state criterion of solid-state disks: rounds with bounded scatter and drift.
//!
//! Source: SNIA Solid State Storage Performance Test Specification, definition of steady state.

use serde::{Deserialize, Serialize};

use crate::sum::Sums;

use super::least_squares_slope;

/// Rounds in the window.
pub const STEADY_ROUNDS: usize = 5;
/// Maximum range (highest minus lowest round), as a share of the average.
pub const RANGE_SHARE_MAX: f64 = 0.2;
/// Maximum drift of the fitted line over the window, as a share of the average.
pub const DRIFT_SHARE_MAX: f64 = 0.1;

/// The window of the last rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyWindow {
    /// Average.
    pub average: f64,
    /// Highest minus lowest, as a share of the average.
    pub range_share: f64,
    /// Change of the least-squares line from the first to the last round, as a share of the
    /// average; negative for a falling rate.
    pub drift_share: f64,
}

impl SteadyWindow {
    /// Whether the criterion is met.
    pub fn is_steady(&self) -> bool {
        self.range_share <= RANGE_SHARE_MAX && self.drift_share.abs() <= DRIFT_SHARE_MAX
    }
}

/// The last [`STEADY_ROUNDS`] of `rounds`. `None` when there are fewer, one is not finite, or the average is
/// not positive.
pub fn steady_window(rounds: &[f64]) -> Option<SteadyWindow> {
    let window = &rounds[rounds.len().checked_sub(STEADY_ROUNDS)?..];
    let average = window.iter().float_sum() / STEADY_ROUNDS as f64;
    let points: Vec<(f64, f64)> = window.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
    let slope = least_squares_slope(&points)?;
    let highest = window.iter().copied().reduce(f64::max)?;
    let lowest = window.iter().copied().reduce(f64::min)?;
    (average > 0.0).then(|| SteadyWindow {
        average,
        range_share: (highest - lowest) / average,
        drift_share: slope * (STEADY_ROUNDS - 1) as f64 / average,
    })
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
