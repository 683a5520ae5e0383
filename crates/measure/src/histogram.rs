//! Latencies: a histogram of constant relative error and its summary.
//!
//! Invariants: recording neither allocates nor fails; from 1 us to 100 s a figure read back is at most 0.1 %
//! above what was recorded; longer latencies count as 100 s.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::error::MeasureError;

/// The longest latency told apart, in ns (100 s).
pub const LATENCY_NS_MAX: u64 = 100_000_000_000;
/// Decimal digits kept of each value. One such histogram takes about 220 kB.
const DIGITS: u8 = 3;

/// Counts of latencies in ns.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
}

/// What people read of a latency histogram; all zero when nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencySummary {
    /// Number of latencies recorded.
    pub count: u64,
    /// Arithmetic mean in ns.
    pub mean_ns: f64,
    /// Median in ns.
    pub p50_ns: u64,
    /// 90th percentile in ns.
    pub p90_ns: u64,
    /// 99th percentile in ns.
    pub p99_ns: u64,
    /// 99.9th percentile in ns.
    pub p99_9_ns: u64,
    /// Longest in ns.
    pub max_ns: u64,
}

impl Latency {
    /// An empty histogram.
    pub fn new() -> Self {
        match Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS) {
            Ok(histogram) => Self { histogram },
            // The bounds are constants that the library accepts; every test here would fail otherwise.
            Err(why) => unreachable!("constant histogram bounds: {why}"),
        }
    }

    /// Counts one latency; one above [`LATENCY_NS_MAX`] counts as that.
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for bucket in other.histogram.iter_recorded() {
            self.histogram.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
    }

    /// What the share `q` of all latencies, 0 to 1, is not above, in ns.
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

    /// The whole histogram as the HdrHistogram project writes it in its logs: V2, deflated, base64.
    /// Values are in ns. Fails only if the encoder does.
    pub fn to_v2_base64(&self) -> Result<String, MeasureError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .map_err(|why| MeasureError::Encode { why: why.to_string() })?;
        Ok(base64(&bytes))
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

/// Base64 with the standard alphabet and padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let sextet = (group >> (18 - 6 * position)) as usize & 63;
            text.push(if position <= chunk.len() { ALPHABET[sextet] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
