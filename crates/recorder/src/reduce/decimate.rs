//! Decimation: a low-pass filter along the last dimension, then every so manieth sample.
//!
//! The filter is a sinc cut off by a Hamming window, of an odd number of taps, so that no sample is shifted.
//! Its stop band (beyond -50 dB) begins at half the new sampling rate: nothing folds back. Beyond both ends
//! of a row the first and last sample are taken again.
use std::f64::consts::PI;

use super::Kernel;
use super::sample::{Real, Sample};

/// Taps on either side of the middle one, for each unit of the factor.
const REACH: usize = 10;
/// From pass to stop, in units of the sampling rate over the number of taps: the Hamming window's (Oppenheim
/// and Schafer, Discrete-Time Signal Processing, windows for filters: 6.6 pi over half the taps).
const TRANSITION: f64 = 3.3;
/// Samples that are made at a time, so that a processor makes several with each instruction and need not wait
/// for one sum to be ready before the next product is added to it.
const BLOCK: usize = 32;

/// The step `decimate`.
///
/// Of `by` samples that follow each other each belongs to another phase. One tap then meets samples that
/// stand side by side in one phase, for results that stand side by side.
pub(super) struct Decimate<T: Sample> {
    bytes: usize,
    row: usize,
    by: usize,
    taps: Vec<T::Real>,
    /// Phase after phase, each of [`Self::stride`] samples, with what stands in for those beyond its ends.
    phases: Vec<T::Real>,
}

/// The filter's taps, for one sample of `by`; their sum is 1.
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
    let sum: f64 = taps.iter().sum();
    taps.into_iter().map(|tap| tap / sum).collect()
}

impl<T: Sample> Decimate<T> {
    /// For events of `bytes` with rows of `row` samples, of which one in `by` stays.
    pub(super) fn new(bytes: usize, row: usize, by: usize) -> Self {
        let taps = taps(by).into_iter().map(T::Real::of).collect();
        let empty = Self { bytes, row, by, taps, phases: Vec::new() };
        Self { phases: vec![T::Real::default(); by * empty.stride()], ..empty }
    }

    /// Samples that a row has in one phase, with whole blocks of results in mind.
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

    /// The results from number `first` on.
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
