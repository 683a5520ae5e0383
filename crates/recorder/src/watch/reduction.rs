//! Figures of the reducer threads since the last sample.
use std::sync::atomic::Ordering::Relaxed;

use keepup_measure::sum::Sums;
use keepup_results::live::ReductionNow;

use crate::counters::ReducerCounters;

/// Counters at the last sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduction {
    input_bytes: u64,
    output_bytes: u64,
    busy_ns: Vec<u64>,
}

impl Reduction {
    /// Current figures, if there are reducer threads; rates are averages over `passed` seconds.
    pub(super) fn sample(&mut self, threads: &[ReducerCounters], passed_s: f64) -> Option<ReductionNow> {
        if threads.is_empty() {
            return None;
        }
        let sum = |of: fn(&ReducerCounters) -> u64| threads.iter().map(of).saturating_sum::<u64>();
        let input_bytes = sum(|t| t.input_bytes.load(Relaxed));
        let output_bytes = sum(|t| t.output_bytes.load(Relaxed));
        let busy_ns: Vec<u64> = threads.iter().map(|t| t.busy_ns.load(Relaxed)).collect();
        let before = std::mem::replace(self, Self { input_bytes, output_bytes, busy_ns: busy_ns.clone() });
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / passed_s;
        let earlier = before.busy_ns.into_iter().chain(std::iter::repeat(0));
        let busy = |(now, before): (u64, u64)| (rate(now, before) / 1e9).min(1.0);
        Some(ReductionNow {
            events: sum(|t| t.events.load(Relaxed)),
            input_bytes,
            output_bytes,
            waiting_bytes: sum(|t| t.handed_bytes.load(Relaxed)).saturating_sub(input_bytes),
            input_bytes_per_second: rate(input_bytes, before.input_bytes),
            output_bytes_per_second: rate(output_bytes, before.output_bytes),
            busy: busy_ns.into_iter().zip(earlier).map(busy).collect(),
        })
    }
}

#[cfg(test)]
#[path = "reduction_tests.rs"]
mod tests;
