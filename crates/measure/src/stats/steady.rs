//! Steady state, as the rule of solid state disks has it: rounds that neither scatter nor drift.
//!
//! Source: SNIA Solid State Storage Performance Test Specification, definition of steady state.

use serde::{Deserialize, Serialize};

use super::least_squares_slope;

/// Rounds that are looked at together.
pub const STEADY_ROUNDS: usize = 5;
/// Highest less lowest round, as a share of their average, at most.
pub const RANGE_SHARE_MAX: f64 = 0.2;
/// Change of the fitted line from the first round to the last, as a share of the average, at most.
pub const DRIFT_SHARE_MAX: f64 = 0.1;

/// The last rounds, together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyWindow {
    /// Their average.
    pub average: f64,
    /// Highest less lowest, as a share of the average.
    pub range_share: f64,
    /// What the least squares line changes from the first to the last, as a share of the average; negative
    /// when it falls.
    pub drift_share: f64,
}

impl SteadyWindow {
    /// Whether the rule holds.
    pub fn is_steady(&self) -> bool {
        self.range_share <= RANGE_SHARE_MAX && self.drift_share.abs() <= DRIFT_SHARE_MAX
    }
}

/// The last [`STEADY_ROUNDS`] of `rounds`. `None` when there are fewer, one is not finite, or the average is
/// not positive.
pub fn steady_window(rounds: &[f64]) -> Option<SteadyWindow> {
    let window = &rounds[rounds.len().checked_sub(STEADY_ROUNDS)?..];
    let average = window.iter().sum::<f64>() / STEADY_ROUNDS as f64;
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
