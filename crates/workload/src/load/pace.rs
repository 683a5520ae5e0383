//! Open-loop schedule of a load's work.
//!
//! Invariants: no piece starts before its due time; late pieces are caught up at no more than twice
//! the rate; pieces later than [`DEBT`] are dropped, so an overloaded load misses its rate instead
//! of bursting.
use std::time::Duration;

/// Maximum backlog that is caught up.
pub(super) const DEBT: Duration = Duration::from_secs(1);
/// Minimum spacing during catch-up, as a share of the period.
const CATCH_UP: f64 = 0.5;

/// The schedule.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    period_ns: f64,
    start_ns: u64,
    /// Pieces started since `start_ns`.
    begun: u64,
    /// Earliest start of the next piece.
    earliest_ns: u64,
}

impl Pacer {
    /// A schedule of pieces of `piece` each, `rate` per second in total, first due at `start_ns`.
    pub(super) fn new(piece: f64, rate: f64, start_ns: u64) -> Self {
        Self { period_ns: piece / rate * 1e9, start_ns, begun: 0, earliest_ns: start_ns }
    }

    /// Due time of the next piece.
    pub(super) fn due_ns(&self) -> u64 {
        self.scheduled_ns(self.begun).max(self.earliest_ns)
    }

    /// Records the start of a piece.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.begun += 1;
        self.earliest_ns = now_ns + (self.period_ns * CATCH_UP) as u64;
        let debt_ns = now_ns.saturating_sub(self.scheduled_ns(self.begun));
        self.start_ns += debt_ns.saturating_sub(DEBT.as_nanos() as u64);
    }

    fn scheduled_ns(&self, piece: u64) -> u64 {
        // Computed from the start, so that rounding errors do not accumulate.
        self.start_ns.saturating_add((self.period_ns * piece as f64) as u64)
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
