//! Decimation: a low-pass filter along the last dimension, then every n-th sample.
//!
//! The filter is a sinc with a Hamming window and an odd number of taps, so that no sample is
//! shifted. Its stop band (beyond -50 dB) starts at half the new sampling rate: no aliasing. The
//! first and last sample of a row are repeated beyond its ends.
use std::f64::consts::PI;

use keepup_measure::sum::Sums;

use super::Kernel;
use super::sample::{Real, Sample};

/// Taps on either side of the middle one, per unit of the decimation factor.
const REACH: usize = 10;
/// Transition width in units of the sampling rate over the number of taps, for the Hamming window
/// (Oppenheim and Schafer, Discrete-Time Signal Processing, windows for filters: 6.6 pi over half
/// the taps).
const TRANSITION: f64 = 3.3;
/// Results computed together, so that the processor uses vector instructions and does not wait
/// for one sum before the next product.
const BLOCK: usize = 32;

/// Step `decimate`.
///
/// Sample i of a row belongs to phase i modulo `by`. One tap then multiplies adjacent samples of
/// one phase for adjacent results.
pub(super) struct Decimate<T: Sample> {
    bytes: usize,
    row: usize,
    by: usize,
    taps: Vec<T::Real>,
    /// Phases one after the other, each of [`Self::stride`] samples, with the repeated samples
    /// beyond the row's ends.
    phases: Vec<T::Real>,
}

/// Filter taps for decimation by `by`; their sum is 1.
fn taps(by: usize) -> Vec<f64> {
    let (reach, by) = (REACH * by, by as f64);
    let count = 2 * reach + 1;
    let cutoff = 0.5 / by - 0.5 * TRANSITION / count as f64;
    let tap = |index: usize| {
        let at = index as f64 - reach as f64;
        let sinc = if index == reach { 2.0 * cutoff } else { (2.0 * PI * cutoff * at).sin() / (PI * at) };
        sinc * (0.54 + 0.46 * (PI * at / reach as f64).cos())
    };
    let taps: Vec<f64> = (0..count).map(tap).collect();
    let sum: f64 = taps.iter().float_sum();
    taps.into_iter().map(|tap| tap / sum).collect()
}

impl<T: Sample> Decimate<T> {
    /// Prepares for events of `bytes` with rows of `row` samples, keeping one in `by`.
    pub(super) fn new(bytes: usize, row: usize, by: usize) -> Self {
        let taps = taps(by).into_iter().map(T::Real::of).collect();
        let empty = Self { bytes, row, by, taps, phases: Vec::new() };
        Self { phases: vec![T::Real::default(); by * empty.stride()], ..empty }
    }

    /// Samples of a row in one phase, rounded up to whole blocks of results.
    fn stride(&self) -> usize {
        (self.row / self.by).next_multiple_of(BLOCK) + 2 * REACH
    }

    fn fill_phases(&mut self, row: &[u8]) {
        let (stride, many, group) = (self.stride(), self.row / self.by, self.by * T::BYTES);
        let sample = |bytes: &[u8]| T::get(&bytes[..T::BYTES]).real();
        let (first, last) = (sample(row), sample(&row[row.len() - T::BYTES..]));
        for (at, phase) in self.phases.chunks_exact_mut(stride).enumerate() {
            let samples = row[at * T::BYTES..].chunks(group).map(sample);
            phase[..REACH].fill(first);
            phase[REACH..].iter_mut().zip(samples).for_each(|(to, sample)| *to = sample);
            phase[REACH + many..].fill(last);
        }
    }

    /// Results from number `first` on.
    fn block(&self, first: usize) -> [T::Real; BLOCK] {
        let stride = self.stride();
        let mut sums = [T::Real::default(); BLOCK];
        for (phase, samples) in self.phases.chunks_exact(stride).enumerate() {
            let taps = self.taps.iter().skip(phase).step_by(self.by);
            for (&tap, samples) in taps.zip(samples[first..].windows(BLOCK)) {
                for (sum, &sample) in sums.iter_mut().zip(samples) {
                    *sum += tap * sample;
                }
            }
        }
        sums
    }
}

impl<T: Sample> Kernel for Decimate<T> {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        let made = self.bytes / self.by;
        let output = output.get_mut(..made).filter(|_| event.len() == self.bytes)?;
        let row_bytes = self.row * T::BYTES;
        for (row, to) in event.chunks_exact(row_bytes).zip(output.chunks_exact_mut(row_bytes / self.by)) {
            self.fill_phases(row);
            for (index, to) in to.chunks_mut(BLOCK * T::BYTES).enumerate() {
                let results = self.block(index * BLOCK);
                to.chunks_exact_mut(T::BYTES)
                    .zip(results)
                    .for_each(|(to, result)| T::nearest(result).put(to));
            }
        }
        Some(made)
    }
}

#[cfg(test)]
#[path = "decimate_tests.rs"]
mod tests;
