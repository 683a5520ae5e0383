//! Clock of a process in a fleet.
use keepup_measure::clock::Clock;

/// Readings at the start.
const READINGS: usize = 8;

/// Monotonic clock that starts at the time of the wall clock. It never jumps, and differences between hosts
/// are differences between their wall clocks.
#[derive(Debug)]
pub(crate) struct AnchoredClock<C> {
    clock: C,
    /// Wall clock less monotonic clock at the start, ns.
    anchor_ns: u64,
}

impl<C: Clock> AnchoredClock<C> {
    pub(crate) fn new(clock: C) -> Self {
        // The process may be preempted between two readings: the quickest pair counts.
        let anchor = |_| {
            let before_ns = clock.now_ns();
            let unix_ns = clock.unix_ns();
            let took_ns = clock.now_ns().saturating_sub(before_ns);
            (took_ns, unix_ns.saturating_sub(before_ns.saturating_add(took_ns / 2)))
        };
        let anchor_ns = (0..READINGS).map(anchor).min().map_or(0, |(_, anchor_ns)| anchor_ns);
        Self { clock, anchor_ns }
    }

    /// A time of this clock by the clock that it was made of, ns.
    pub(crate) const fn monotonic_ns(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.anchor_ns)
    }

    /// Time, ns.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_add(self.anchor_ns)
    }
}

#[cfg(test)]
#[path = "wall_tests.rs"]
mod tests;
