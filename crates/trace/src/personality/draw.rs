//! Random sizes and times.
//!
//! Invariant: the only source of randomness is the generator passed in.
use fastrand::Rng;

use super::IO_BYTES;

/// Shape of filebench's gamma distribution of file sizes (`cvar-gamma`, `gamma:1.5`).
pub(super) const SHAPE: f64 = 1.5;
/// Maximum file length as a multiple of the mean; truncates at most 1 in 10 000.
pub(super) const LONGEST: f64 = 8.0;

/// Distribution of file or request lengths, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sizes {
    /// Gamma with [`SHAPE`] and this mean.
    Gamma(f64),
    /// Constant.
    Fixed(u64),
    /// Lognormal, as file sizes on personal computers are (Douceur and Bolosky, "A large-scale
    /// study of file-system contents", SIGMETRICS 1999); truncated at [`IO_BYTES`].
    Lognormal { median: f64, mean: f64 },
}

impl Sizes {
    /// Maximum, bytes.
    pub(super) fn longest(self) -> u64 {
        match self {
            Self::Gamma(mean) => (mean * LONGEST) as u64,
            Self::Fixed(bytes) => bytes,
            Self::Lognormal { .. } => IO_BYTES,
        }
    }

    /// Draws a length, bytes; at least 1.
    pub(super) fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Gamma(mean) => (gamma(rng) / SHAPE * mean).clamp(1.0, mean * LONGEST) as u64,
            Self::Fixed(bytes) => bytes,
            Self::Lognormal { median, mean } => {
                // The mean of a lognormal distribution is its median times exp(deviation^2 / 2).
                let deviation = (2.0 * (mean / median).ln()).sqrt();
                (median * (deviation * normal(rng)).exp()).clamp(1.0, IO_BYTES as f64) as u64
            }
        }
    }
}

/// Draws an exponential waiting time with this mean.
pub(super) fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    // In (0, 1], so that the logarithm is finite.
    -(1.0 - rng.f64()).ln() * mean
}

/// Draws from the standard normal distribution (Box and Muller, "A note on the generation of random
/// normal deviates", Annals of Mathematical Statistics 29, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Draws from the gamma distribution of [`SHAPE`] and scale 1 (Marsaglia and Tsang, "A simple
/// method for generating gamma variables", ACM Transactions on Mathematical Software 26, 2000).
pub(super) fn gamma(rng: &mut Rng) -> f64 {
    let d = SHAPE - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = normal(rng);
        let v = (1.0 + c * normal).powi(3);
        let u = 1.0 - rng.f64();
        if v > 0.0 && u.ln() < normal * normal / 2.0 + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}
