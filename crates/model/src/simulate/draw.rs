//! Times that are fixed, by chance, or as they were measured.

use fastrand::Rng;

/// Longest time that is drawn, seconds: far beyond what an exponential distribution of the longest mean
/// gives.
const DRAWN_SECONDS_MAX: f64 = 1e6;
const PICOSECONDS: f64 = 1e12;

/// Where a time comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Draw {
    /// Always the same, seconds.
    Fixed(f64),
    /// By chance with an exponential distribution of this mean, seconds.
    Exponential(f64),
    /// One of these, each as likely as the others, seconds.
    Measured(Vec<f64>),
}

impl Draw {
    /// Its mean, seconds; none for no values.
    pub(super) fn mean(&self) -> f64 {
        self.values().iter().sum::<f64>() / self.values().len() as f64
    }

    pub(super) fn values(&self) -> &[f64] {
        match self {
            Self::Fixed(value) | Self::Exponential(value) => std::slice::from_ref(value),
            Self::Measured(values) => values,
        }
    }

    /// The next time, ps.
    pub(super) fn next_ps(&self, random: &mut Rng) -> u64 {
        match self {
            Self::Fixed(seconds) => picoseconds(*seconds),
            Self::Exponential(mean) => exponential_ps(*mean, random),
            Self::Measured(values) => random.choice(values).map_or(0, |seconds| picoseconds(*seconds)),
        }
    }
}

/// A time with an exponential distribution, ps.
pub(super) fn exponential_ps(mean_seconds: f64, random: &mut Rng) -> u64 {
    picoseconds(-mean_seconds * (1.0 - random.f64()).ln())
}

/// Whole picoseconds of a time.
pub(super) fn picoseconds(seconds: f64) -> u64 {
    (seconds.min(DRAWN_SECONDS_MAX) * PICOSECONDS).round() as u64
}

/// The time of whole picoseconds.
pub(super) fn seconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / PICOSECONDS
}
