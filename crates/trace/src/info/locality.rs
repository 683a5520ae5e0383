//! Distances of a device's requests from previous ones.
use keepup_measure::sum::Sums;

use super::Jumps;

/// Number of request ends that are tracked, to detect interleaved streams.
const STREAMS: usize = 32;
/// Largest jump that does not count as random: the size of a read-ahead.
const NEAR_BYTES: u64 = 128 << 10;
/// Powers of two of a distance.
const CLASSES: usize = 65;

/// Ends of the last requests, and counts.
pub(super) struct Locality {
    ends: [u64; STREAMS],
    next: usize,
    last_end: Option<u64>,
    records: u64,
    sequential: u64,
    in_streams: u64,
    random: u64,
    jumps: [u64; CLASSES],
}

impl Default for Locality {
    fn default() -> Self {
        Self {
            // No request starts at the largest offset.
            ends: [u64::MAX; STREAMS],
            next: 0,
            last_end: None,
            records: 0,
            sequential: 0,
            in_streams: 0,
            random: 0,
            jumps: [0; CLASSES],
        }
    }
}

impl Locality {
    /// Adds a request from `start` to `end`.
    #[inline]
    pub(super) fn take(&mut self, start: u64, end: u64) {
        if let Some(last_end) = self.last_end {
            self.records += 1;
            let jump = start.abs_diff(last_end);
            if jump == 0 {
                self.sequential += 1;
                self.in_streams += 1;
            } else {
                let is_in_stream = self.ends.contains(&start);
                self.in_streams += u64::from(is_in_stream);
                self.random += u64::from(!is_in_stream && jump > NEAR_BYTES);
                self.jumps[(u64::BITS - jump.leading_zeros()) as usize] += 1;
            }
        }
        self.ends[self.next] = end;
        self.next = (self.next + 1) % STREAMS;
        self.last_end = Some(end);
    }

    /// Adds the counts of another device.
    pub(super) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.sequential += other.sequential;
        self.in_streams += other.in_streams;
        self.random += other.random;
        for (sum, count) in self.jumps.iter_mut().zip(other.jumps) {
            *sum += count;
        }
    }

    pub(super) fn jumps(&self) -> Option<Jumps> {
        let all: u64 = self.jumps.iter().saturating_sum();
        let mut seen = 0;
        let median = self.jumps.iter().position(|count| {
            seen += count;
            all > 0 && seen * 2 >= all
        });
        (self.records > 0).then(|| Jumps {
            records: self.records,
            sequential: self.sequential,
            in_streams: self.in_streams,
            random: self.random,
            median_jump_bytes: median.map(|class| 1u64.checked_shl(class as u32).unwrap_or(u64::MAX)),
        })
    }
}
