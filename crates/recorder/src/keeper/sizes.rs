//! Size of the next segment: fixed, or so that a segment lasts some seconds at the rate of the last one.
//! Pure.
//!
//! A segment costs its volume a file, journal records with their flushes, and a seal, whatever its size. At
//! 10 GB/s a segment of 1 GiB is full ten times a second.
use std::time::Duration;

/// Least time that a segment should take to fill.
const LASTS: Duration = Duration::from_secs(4);
/// Largest segment, as a multiple of the smallest.
const GROWTH_MAX: u64 = 16;
/// A segment takes at most this part of the free space, so that a volume can be filled.
const SHARE_OF_FREE: u64 = 8;

/// Sizes of the segments of one volume.
#[derive(Debug)]
pub(crate) struct SegmentSizes {
    least_bytes: u64,
    grows: bool,
    wanted_bytes: u64,
    activated_ns: Option<u64>,
}

impl SegmentSizes {
    /// All segments have `least_bytes`, or at least that if they grow.
    pub(crate) fn new(least_bytes: u64, grows: bool) -> Self {
        Self { least_bytes, grows, wanted_bytes: least_bytes, activated_ns: None }
    }

    /// Size of the next segment on a volume with `free_bytes`, if they are known.
    pub(super) fn next_bytes(&self, free_bytes: Option<u64>) -> u64 {
        let most = free_bytes.map_or(self.least_bytes, |free| free / SHARE_OF_FREE);
        self.wanted_bytes.min(most).max(self.least_bytes)
    }

    /// A segment is used from now on; the one before took `data_bytes` of its `bytes`.
    pub(super) fn activated(&mut self, before: Option<(u64, u64)>, now_ns: u64) {
        let since_ns = self.activated_ns.replace(now_ns);
        let (Some(since_ns), Some((data_bytes, bytes)), true) = (since_ns, before, self.grows) else {
            return;
        };
        let lasted_s = now_ns.saturating_sub(since_ns).max(1) as f64 / 1e9;
        let wanted = data_bytes as f64 / lasted_s * LASTS.as_secs_f64();
        // A segment that was left half empty was full of events: a larger one would be no better.
        let useful = if data_bytes < bytes / 2 { data_bytes as f64 } else { f64::INFINITY };
        let least = self.least_bytes as f64;
        let doublings = (wanted.min(useful) / least).log2().ceil().clamp(0.0, GROWTH_MAX.ilog2().into());
        self.wanted_bytes = self.least_bytes << (doublings as u32);
    }
}

#[cfg(test)]
#[path = "sizes_tests.rs"]
mod tests;
