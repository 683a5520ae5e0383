//! When a disk is full, from the data of the last seconds. Pure.
use std::collections::VecDeque;

/// Time with data before a forecast, and over which its rate is averaged, in nanoseconds.
const WINDOW_NS: u64 = 10_000_000_000;

/// Rates of the volumes over the last seconds.
#[derive(Debug, Default)]
pub(super) struct Filling {
    /// Times and bytes written to each volume, from the first data on.
    samples: VecDeque<(u64, Vec<u64>)>,
}

impl Filling {
    /// Adds the bytes written to each volume up to `now_ns`. Returns their rates in bytes per second; none
    /// before data have arrived for [`WINDOW_NS`].
    pub(super) fn rates(&mut self, now_ns: u64, written_bytes: Vec<u64>) -> Option<Vec<f64>> {
        if self.samples.is_empty() && written_bytes.iter().all(|bytes| *bytes == 0) {
            return None;
        }
        let from_ns = now_ns.saturating_sub(WINDOW_NS);
        // The oldest sample is the last one at or before the window.
        while self.samples.get(1).is_some_and(|(at_ns, _)| *at_ns <= from_ns) {
            self.samples.pop_front();
        }
        let (begin_ns, begin) = self.samples.front().cloned().unwrap_or((now_ns, written_bytes.clone()));
        let passed_ns = now_ns.saturating_sub(begin_ns);
        let per_second =
            |(now, before): (&u64, &u64)| now.saturating_sub(*before) as f64 * 1e9 / passed_ns.max(1) as f64;
        let rates = written_bytes.iter().zip(&begin).map(per_second).collect();
        self.samples.push_back((now_ns, written_bytes));
        (passed_ns >= WINDOW_NS).then_some(rates)
    }
}

#[cfg(test)]
#[path = "filling_tests.rs"]
mod tests;
