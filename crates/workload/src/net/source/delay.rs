//! Delay of reports between two machines whose clocks have nothing in common. Pure.
//!
//! The report that arrived fastest relates the clocks: its delivery counts as no time. All times
//! are therefore late by that one delivery, at most half of a round trip on a symmetrical path.

/// Times of the reports received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delay {
    /// Smallest difference of the clocks, ours minus theirs, ns.
    offset_ns: Option<i128>,
    /// Time of the last report on their clock, ns.
    reported_ns: u64,
    /// Largest difference between an arrival on our clock and the report before it on theirs, ns.
    gap_ns: i128,
}

impl Delay {
    /// Takes a report made at `their_ns` and received at `our_ns`.
    pub(super) fn take(&mut self, our_ns: u64, their_ns: u64) {
        let offset_ns = i128::from(our_ns) - i128::from(their_ns);
        match self.offset_ns {
            None => {
                self.offset_ns = Some(offset_ns);
                self.gap_ns = offset_ns;
            }
            Some(earlier_ns) => {
                self.offset_ns = Some(earlier_ns.min(offset_ns));
                self.gap_ns = self.gap_ns.max(i128::from(our_ns) - i128::from(self.reported_ns));
            }
        }
        self.reported_ns = self.reported_ns.max(their_ns);
    }

    /// A time of their clock on ours, ns; none without a report.
    pub(super) fn on_our_clock(&self, their_ns: u64) -> Option<u64> {
        let ns = self.offset_ns? + i128::from(their_ns);
        Some(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    /// Greatest age of the last received report, ns: the error of counters read between two
    /// reports.
    pub(super) fn age_ns_max(&self) -> u64 {
        let age_ns = self.offset_ns.map_or(0, |offset_ns| self.gap_ns - offset_ns);
        u64::try_from(age_ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
