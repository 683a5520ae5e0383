//! Size of each event, from the seed, its stream and its sequence number alone, so that the plan
//! is enough to compute it again. Pure.

use super::plan::EventSize;

impl EventSize {
    /// Payload bytes of event `sequence` of `stream`.
    pub(super) fn bytes(&self, seed: u64, stream: u32, sequence: u64) -> u64 {
        match *self {
            EventSize::Fixed(bytes) => bytes,
            EventSize::Uniform { min, max } => {
                let span = u128::from(max - min) + 1;
                min + ((u128::from(draw(seed, stream, sequence, 0)) * span) >> 64) as u64
            }
            EventSize::LogNormal { median, sigma, max } => {
                // Box-Muller: two uniform numbers, the first above 0, give one normally
                // distributed number.
                let u = (draw(seed, stream, sequence, 0) >> 11) as f64 + 1.0;
                let v = (draw(seed, stream, sequence, 1) >> 11) as f64;
                let scale = (1u64 << 53) as f64;
                let z = (-2.0 * (u / scale).ln()).sqrt() * (std::f64::consts::TAU * v / scale).cos();
                let bytes = median as f64 * (sigma * z).exp();
                (bytes.round() as u64).min(max)
            }
        }
    }

    /// Mean payload, bytes.
    pub(super) fn mean_bytes(&self) -> u64 {
        match *self {
            EventSize::Fixed(bytes) => bytes,
            EventSize::Uniform { min, max } => min + (max - min) / 2,
            EventSize::LogNormal { median, sigma, max } => {
                ((median as f64 * (sigma * sigma / 2.0).exp()) as u64).min(max)
            }
        }
    }
}

/// The `turn`-th random number of an event.
fn draw(seed: u64, stream: u32, sequence: u64, turn: u64) -> u64 {
    mix(mix(mix(seed ^ turn) ^ u64::from(stream)) ^ sequence)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014) with its increment: one-to-one on 64 bits, and
/// neighbouring inputs give unrelated outputs.
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
#[path = "size_tests.rs"]
mod tests;
