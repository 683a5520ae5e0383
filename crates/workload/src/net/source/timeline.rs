//! Counters of a source over time, on the client's clock. Pure.
//!
//! The clocks of the two machines have nothing in common. The report that arrived fastest relates
//! them: its delivery counts as no time, so all times are late by that one delivery. How long other
//! reports waited behind events on a full path does not matter, because each has its own time.

use crate::net::wire::source::SourceProgress;

/// Most reports that are kept; beyond them every second one is dropped, and of later ones too.
const REPORTS_MAX: usize = 1 << 16;

/// Counts of a source at one moment, payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Due.
    pub due_bytes: u64,
    /// Lost at the source.
    pub lost_bytes: u64,
    /// Handed to the kernel.
    pub sent_bytes: u64,
}

/// Reports of one source.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Smallest difference of the clocks, ours minus theirs, ns.
    offset_ns: Option<i128>,
    /// Times on their clock, rising, and counts.
    reports: Vec<(u64, SourceCounts)>,
    /// Longest time between two kept reports on their clock, ns.
    gap_ns_max: u64,
    /// Number of times that every second report was dropped, and of reports received since the last kept.
    halvings: u32,
    skipped: u64,
}

impl Timeline {
    /// Takes a report that was received at `our_ns`.
    pub(super) fn take(&mut self, our_ns: u64, progress: &SourceProgress) {
        let offset_ns = i128::from(our_ns) - i128::from(progress.t_ns);
        self.offset_ns = Some(self.offset_ns.map_or(offset_ns, |earlier_ns| earlier_ns.min(offset_ns)));
        let counts = SourceCounts {
            due_bytes: progress.due_bytes,
            lost_bytes: progress.lost_bytes,
            sent_bytes: progress.sent_bytes,
        };
        self.skipped += 1;
        if self.skipped >> self.halvings > 0 {
            self.skipped = 0;
            self.add(progress.t_ns, counts);
        }
    }

    /// Adds counts at a time of their clock; none is earlier than the last report.
    pub(super) fn add(&mut self, their_ns: u64, counts: SourceCounts) {
        let last_ns = self.reports.last().map_or(0, |(ns, _)| *ns);
        let their_ns = their_ns.max(last_ns);
        if self.reports.len() >= REPORTS_MAX {
            self.halvings += 1;
            // The number is even, so the last report stays.
            let mut is_kept = true;
            self.reports.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            let pairs = self.reports.windows(2).map(|pair| pair[1].0 - pair[0].0);
            self.gap_ns_max = pairs.max().unwrap_or(0).max(self.gap_ns_max);
        }
        self.gap_ns_max = self.gap_ns_max.max(their_ns - last_ns);
        self.reports.push((their_ns, counts));
    }

    /// A time of their clock on ours, ns; none without a report.
    pub(super) fn on_our_clock(&self, their_ns: u64) -> Option<u64> {
        let ns = self.offset_ns? + i128::from(their_ns);
        Some(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    /// Counts at a time of our clock, between those of the reports before and after; none without a
    /// report. Nothing counts before the start.
    pub fn at(&self, our_ns: u64) -> Option<SourceCounts> {
        let their_ns = i128::from(our_ns) - self.offset_ns?;
        let their_ns = u64::try_from(their_ns.max(0)).unwrap_or(u64::MAX);
        let next = self.reports.partition_point(|(ns, _)| *ns <= their_ns);
        let earlier = next.checked_sub(1).and_then(|index| self.reports.get(index).copied());
        let (from_ns, from) = earlier.unwrap_or_default();
        let Some((to_ns, to)) = self.reports.get(next).copied() else { return Some(from) };
        let (part, whole) = (u128::from(their_ns - from_ns), u128::from(to_ns - from_ns).max(1));
        let between = |from: u64, to: u64| from + (u128::from(to.saturating_sub(from)) * part / whole) as u64;
        Some(SourceCounts {
            due_bytes: between(from.due_bytes, to.due_bytes),
            lost_bytes: between(from.lost_bytes, to.lost_bytes),
            sent_bytes: between(from.sent_bytes, to.sent_bytes),
        })
    }

    /// Longest time between two reports, ns: counts in between are known to within what happened in
    /// that time.
    pub fn gap_ns_max(&self) -> u64 {
        self.gap_ns_max
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
