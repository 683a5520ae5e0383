//! Latency histogram with constant relative error, and its summary.
//!
//! Invariants: recording neither allocates nor fails; from 1 us to 100 s the error is at most +0.1
//! %; longer latencies count as 100 s.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest distinguishable latency, ns (100 s).
pub const LATENCY_NS_MAX: u64 = 100_000_000_000;
/// Decimal digits of precision. Such a histogram takes about 220 kB.
const DIGITS: u8 = 3;

/// Histogram of latencies in ns.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
}

/// Summary of a histogram; all zero when empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencySummary {
    /// Number of recorded latencies.
    pub count: u64,
    /// Arithmetic mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile in ns.
    pub p90_ns: u64,
    /// 99th percentile in ns.
    pub p99_ns: u64,
    /// 99.9th percentile in ns.
    pub p99_9_ns: u64,
    /// Maximum, ns.
    pub max_ns: u64,
}

impl Latency {
    /// An empty histogram.
    pub fn new() -> Self {
        match Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS) {
            Ok(histogram) => Self { histogram },
            // The library accepts these constant bounds; otherwise every test would fail.
            Err(why) => unreachable!("constant histogram bounds: {why}"),
        }
    }

    /// Records a latency; values above [`LATENCY_NS_MAX`] are clamped.
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for bucket in other.histogram.iter_recorded() {
            self.histogram.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
    }

    /// Quantile `q` (0 to 1), ns.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.histogram.value_at_quantile(q)
    }

    /// Count, mean, percentiles and maximum.
    pub fn summary(&self) -> LatencySummary {
        let quantile_ns = |q| self.quantile_ns(q);
        LatencySummary {
            count: self.histogram.len(),
            mean_ns: self.histogram.mean(),
            p50_ns: quantile_ns(0.5),
            p90_ns: quantile_ns(0.9),
            p99_ns: quantile_ns(0.99),
            p99_9_ns: quantile_ns(0.999),
            max_ns: self.histogram.max(),
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
