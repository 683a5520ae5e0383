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
/// Products that are summed apart, so that a processor can make several at a time.
const LANES: usize = 8;

/// The step `decimate`.
pub(super) struct Decimate<T: Sample> {
    bytes: usize,
    row: usize,
    by: usize,
    reach: usize,
    taps: Vec<T::Real>,
    /// A row with what stands in for samples beyond its ends.
    line: Vec<T::Real>,
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
        let reach = REACH * by;
        Self {
            bytes,
            row,
            by,
            reach,
            taps: taps(by).into_iter().map(T::Real::of).collect(),
            line: vec![T::Real::default(); row + 2 * reach],
        }
    }

    fn fill_line(&mut self, row: &[u8]) {
        let samples = row.chunks_exact(T::BYTES).map(|sample| T::get(sample).real());
        let middle = self.reach..self.reach + self.row;
        self.line[middle.clone()].iter_mut().zip(samples).for_each(|(to, sample)| *to = sample);
        let (first, last) = (self.line[middle.start], self.line[middle.end - 1]);
        self.line[..middle.start].fill(first);
        self.line[middle.end..].fill(last);
    }
}

fn product<R: Real>(left: &[R], right: &[R]) -> R {
    let mut sums = [R::default(); LANES];
    let (left, right) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest = left.remainder().iter().zip(right.remainder()).map(|(&a, &b)| a * b).sum::<R>();
    for (left, right) in left.zip(right) {
        for (sum, (&left, &right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    sums.into_iter().sum::<R>() + rest
}

impl<T: Sample> Kernel for Decimate<T> {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        let made = self.bytes / self.by;
        let output = output.get_mut(..made).filter(|_| event.len() == self.bytes)?;
        let row_bytes = self.row * T::BYTES;
        for (row, to) in event.chunks_exact(row_bytes).zip(output.chunks_exact_mut(row_bytes / self.by)) {
            self.fill_line(row);
            for (index, to) in to.chunks_exact_mut(T::BYTES).enumerate() {
                let first = index * self.by;
                T::nearest(product(&self.taps, &self.line[first..first + self.taps.len()])).put(to);
            }
        }
        Some(made)
    }
}

#[cfg(test)]
#[path = "decimate_tests.rs"]
mod tests;
