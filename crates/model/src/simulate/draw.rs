//! Constant, random and measured times.

use fastrand::Rng;
use keepup_measure::sum::Sums;

/// Maximum drawn time, seconds: far above what an exponential distribution with the maximum mean
/// gives.
const DRAWN_SECONDS_MAX: f64 = 1e6;
const PICOSECONDS: f64 = 1e12;

/// Distribution of a time.
#[derive(Debug, Clone, PartialEq)]
pub enum Draw {
    /// Constant, seconds.
    Fixed(f64),
    /// Exponential with this mean, seconds.
    Exponential(f64),
    /// Uniform choice of these values, seconds.
    Measured(Vec<f64>),
}

impl Draw {
    /// Mean, seconds; NaN for no values.
    pub(super) fn mean(&self) -> f64 {
        self.values().iter().float_sum() / self.values().len() as f64
    }

    pub(super) fn values(&self) -> &[f64] {
        match self {
            Self::Fixed(value) | Self::Exponential(value) => std::slice::from_ref(value),
            Self::Measured(values) => values,
        }
    }

    /// Draws a time, ps.
    pub(super) fn next_ps(&self, random: &mut Rng) -> u64 {
        match self {
            Self::Fixed(seconds) => picoseconds(*seconds),
            Self::Exponential(mean) => exponential_ps(*mean, random),
            Self::Measured(values) => random.choice(values).map_or(0, |seconds| picoseconds(*seconds)),
        }
    }
}

/// Draws an exponential time, ps.
pub(super) fn exponential_ps(mean_seconds: f64, random: &mut Rng) -> u64 {
    picoseconds(-mean_seconds * (1.0 - random.f64()).ln())
}

/// Converts seconds to whole picoseconds.
pub(super) fn picoseconds(seconds: f64) -> u64 {
    (seconds.min(DRAWN_SECONDS_MAX) * PICOSECONDS).round() as u64
}

/// Converts picoseconds to seconds.
pub(super) fn seconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / PICOSECONDS
}
