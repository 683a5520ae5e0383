//! Power spectrum of rows of samples, in single precision.
//!
//! P(k) = |X(k)|^2 / S, X(k) = sum over n of w(n) x(n) exp(-2 pi i k n / N), S = sum over n of
//! w(n)^2, for k = 0 to N/2. This is the periodogram (P. D. Welch, IEEE Trans. Audio
//! Electroacoustics AU-15, 1967, p. 70, for a sampling rate of 1): noise of variance v has mean v
//! in every bin, with any window.
use std::marker::PhantomData;
use std::sync::Arc;

use keepup_measure::sum::Sums;
use keepup_plan::reduction::Window;
use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use super::Kernel;
use super::sample::Sample;

/// Step `spectrum`.
pub(super) struct Spectrum<T> {
    bytes: usize,
    transform: Arc<dyn RealToComplex<f32>>,
    /// w(n) divided by the square root of S.
    weights: Vec<f32>,
    row: Vec<f32>,
    bins: Vec<Complex32>,
    scratch: Vec<Complex32>,
    from: PhantomData<fn(T)>,
}

impl<T: Sample> Spectrum<T> {
    /// Prepares for events of `bytes`, cut into rows of `size` samples.
    pub(super) fn new(bytes: usize, size: usize, window: Window) -> Self {
        let transform = RealFftPlanner::new().plan_fft_forward(size);
        let weight = |index: usize| match window {
            Window::None => 1.0,
            Window::Hann => 0.5 - 0.5 * (2.0 * std::f64::consts::PI * index as f64 / size as f64).cos(),
        };
        let weights: Vec<f64> = (0..size).map(weight).collect();
        let root = weights.iter().map(|w| w * w).float_sum().sqrt();
        Self {
            bytes,
            weights: weights.into_iter().map(|w| (w / root) as f32).collect(),
            row: transform.make_input_vec(),
            bins: transform.make_output_vec(),
            scratch: transform.make_scratch_vec(),
            transform,
            from: PhantomData,
        }
    }
}

impl<T: Sample> Kernel for Spectrum<T> {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        let (row_bytes, made_bytes) = (self.weights.len() * T::BYTES, self.bins.len() * f32::BYTES);
        let made = self.bytes / row_bytes * made_bytes;
        let output = output.get_mut(..made).filter(|_| event.len() == self.bytes)?;
        for (row, to) in event.chunks_exact(row_bytes).zip(output.chunks_exact_mut(made_bytes)) {
            let samples = row.chunks_exact(T::BYTES).zip(&self.weights);
            for (value, (sample, weight)) in self.row.iter_mut().zip(samples) {
                *value = T::get(sample).single() * weight;
            }
            let transformed =
                self.transform.process_with_scratch(&mut self.row, &mut self.bins, &mut self.scratch);
            transformed.ok()?;
            for (bin, to) in self.bins.iter().zip(to.chunks_exact_mut(f32::BYTES)) {
                bin.norm_sqr().put(to);
            }
        }
        Some(made)
    }
}
