//! When the next piece of a load is due: by the clock, whether or not the last one got through.
//!
//! Invariants: no piece is due before its place in the schedule; what is late is caught up at no more than
//! twice the rate; what is later than [`DEBT`] is left out, so that a load that cannot keep its rate never
//! comes in a rush, and falls short instead.
use std::time::Duration;

/// Work that may be behind the schedule and is still caught up.
pub(super) const DEBT: Duration = Duration::from_secs(1);
/// While it catches up, pieces are this part of their time apart.
const CATCH_UP: f64 = 0.5;

/// The schedule.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    period_ns: f64,
    start_ns: u64,
    /// Pieces begun since `start_ns`.
    begun: u64,
    /// The next one begins no earlier.
    earliest_ns: u64,
}

impl Pacer {
    /// Pieces of `piece` each, `rate` in all each second, the first one at `start_ns`.
    pub(super) fn new(piece: f64, rate: f64, start_ns: u64) -> Self {
        Self { period_ns: piece / rate * 1e9, start_ns, begun: 0, earliest_ns: start_ns }
    }

    /// When the next piece is due.
    pub(super) fn due_ns(&self) -> u64 {
        self.scheduled_ns(self.begun).max(self.earliest_ns)
    }

    /// A piece has begun, at `now_ns`.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.begun += 1;
        self.earliest_ns = now_ns + (self.period_ns * CATCH_UP) as u64;
        let debt_ns = now_ns.saturating_sub(self.scheduled_ns(self.begun));
        self.start_ns += debt_ns.saturating_sub(DEBT.as_nanos() as u64);
    }

    fn scheduled_ns(&self, piece: u64) -> u64 {
        // Each from the start, so that what is rounded off never adds up.
        self.start_ns.saturating_add((self.period_ns * piece as f64) as u64)
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
