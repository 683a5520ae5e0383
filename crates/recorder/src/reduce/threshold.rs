//! Zero suppression: samples below a threshold become 0. The shape stays; compression reduces the
//! size.
use super::Kernel;
use super::sample::Sample;

/// Step `threshold`.
pub(super) struct Threshold<T> {
    bytes: usize,
    at: T,
}

impl<T: Sample> Threshold<T> {
    /// Prepares for events of `bytes`; samples below `at` become 0.
    pub(super) fn new(bytes: usize, at: f64) -> Self {
        Self { bytes, at: T::not_below(at) }
    }
}

impl<T: Sample> Kernel for Threshold<T> {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        let output = output.get_mut(..self.bytes).filter(|_| event.len() == self.bytes)?;
        let pairs = event.chunks_exact(T::BYTES).zip(output.chunks_exact_mut(T::BYTES));
        for (from, to) in pairs {
            let sample = T::get(from);
            if sample < self.at { T::default() } else { sample }.put(to);
        }
        Some(self.bytes)
    }
}
