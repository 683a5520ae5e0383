//! Photon counts of pixels at a given brightness.

use keepup_measure::sum::Sums;

/// Quantiles in a table: each is drawn with 16 random bits.
const QUANTILES: usize = 1 << 16;
/// Largest mean of a table. Brighter pixels are sums of several draws.
const TABLE_MEAN_MAX: f64 = 512.0;
/// Mean of the dimmest pixels that are not dark, photons, as a power of two.
const DIMMEST: i32 = -8;
/// Mean of the brightest pixels, photons, as a power of two: counts fit 8 and 16 bits with a margin of eight
/// standard deviations.
const BRIGHTEST_OF_8_BITS: i32 = 6;
const BRIGHTEST: i32 = 14;

/// Brightness of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Brightness {
    /// No photons.
    Dark,
    /// Poisson distribution with this mean, photons.
    Mean(f64),
    /// Every value equally likely: no compressor can save anything.
    Noise,
}

impl Brightness {
    /// From dark to noise, for pixels of this many bytes.
    pub(super) fn levels(pixel_bytes: usize) -> impl Iterator<Item = Brightness> {
        let brightest = if pixel_bytes == 1 { BRIGHTEST_OF_8_BITS } else { BRIGHTEST };
        let means = (DIMMEST..=brightest).map(|power| Brightness::Mean(2f64.powi(power)));
        std::iter::once(Brightness::Dark).chain(means).chain([Brightness::Noise])
    }
}

/// Source of pixels of one brightness.
pub(super) struct Photons {
    brightness: Brightness,
    /// Quantiles of the Poisson distribution; empty if there is none.
    table: Vec<u16>,
    /// Number of draws whose sum is a pixel.
    draws: u32,
}

impl Photons {
    pub(super) fn new(brightness: Brightness) -> Self {
        let Brightness::Mean(mean) = brightness else {
            return Self { brightness, table: Vec::new(), draws: 0 };
        };
        let draws = (mean / TABLE_MEAN_MAX).ceil().max(1.0);
        Self { brightness, table: quantiles(mean / draws), draws: draws as u32 }
    }

    /// Fills `pixels` of `pixel_bytes`, little endian.
    pub(super) fn fill(&self, rng: &mut fastrand::Rng, pixels: &mut [u8], pixel_bytes: usize) {
        match self.brightness {
            Brightness::Dark => pixels.fill(0),
            Brightness::Noise => rng.fill(pixels),
            Brightness::Mean(_) => {
                for pixel in pixels.chunks_mut(pixel_bytes) {
                    let draw = |_| u32::from(self.table[usize::from(rng.u16(..))]);
                    let photons: u32 = (0..self.draws).map(draw).saturating_sum();
                    pixel.copy_from_slice(&photons.to_le_bytes()[..pixel.len()]);
                }
            }
        }
    }
}

/// Quantiles of the Poisson distribution with this mean (at most [`TABLE_MEAN_MAX`]), by adding up its
/// probabilities.
fn quantiles(mean: f64) -> Vec<u16> {
    let (mut count, mut probability) = (0u16, (-mean).exp());
    let mut sum = probability;
    let quantile = |index: usize| {
        let wanted = (index as f64 + 0.5) / QUANTILES as f64;
        while sum < wanted && count < u16::MAX {
            count += 1;
            probability *= mean / f64::from(count);
            sum += probability;
        }
        count
    };
    (0..QUANTILES).map(quantile).collect()
}

#[cfg(test)]
#[path = "photons_tests.rs"]
mod tests;
