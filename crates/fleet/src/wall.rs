//! Clock of a process in a fleet.
use keepup_measure::clock::Clock;

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
        let anchor_ns = clock.unix_ns().saturating_sub(clock.now_ns());
        Self { clock, anchor_ns }
    }

    /// Time, ns.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns().saturating_add(self.anchor_ns)
    }
}
