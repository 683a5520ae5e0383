//! The controller's clock as a host knows it.
//!
//! Each order answers a heartbeat, so the pair has the four times of an NTP exchange (RFC 5905, section 8).
//! The offset is wrong by at most half of the time that the messages travelled; the best of the last
//! exchanges counts.
use keepup_results::ClockOffset;
use serde::{Deserialize, Serialize};

/// Exchanges that are kept.
const KEPT: usize = 8;
/// Assumed difference in rate between two clocks, parts per million: that of quartz.
const QUARTZ_PPM: u64 = 100;

/// Offset of the controller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// The controller's clock less that of the host, ns.
    pub ns: i64,
    /// Largest error, ns.
    pub error_ns: u64,
}

impl From<Offset> for ClockOffset {
    fn from(Offset { ns, error_ns }: Offset) -> Self {
        Self { ns, error_ns }
    }
}

impl Offset {
    /// Milliseconds with the largest error: "0.06 ±0.21".
    #[must_use]
    pub fn text(&self) -> String {
        format!("{:.2} ±{:.2}", self.ns as f64 / 1e6, self.error_ns as f64 / 1e6)
    }
}

/// The four times of an exchange, ns.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The host sent its heartbeat, by its clock.
    pub heartbeat_sent_ns: u64,
    /// The heartbeat arrived, by the controller's clock.
    pub heartbeat_received_ns: u64,
    /// The order was sent, by the controller's clock.
    pub order_sent_ns: u64,
    /// The order arrived, by the host's clock.
    pub order_received_ns: u64,
}

impl Exchange {
    /// The offset that follows; none if the times contradict each other.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        let there = difference(self.heartbeat_received_ns, self.heartbeat_sent_ns)?;
        let back = difference(self.order_sent_ns, self.order_received_ns)?;
        let total = u64::try_from(difference(self.order_received_ns, self.heartbeat_sent_ns)?).ok()?;
        let held = u64::try_from(difference(self.order_sent_ns, self.heartbeat_received_ns)?).ok()?;
        let travelled = total.checked_sub(held)?;
        let ns = i64::try_from(i128::midpoint(i128::from(there), i128::from(back))).ok()?;
        // The controller held the heartbeat by its own clock.
        Some(Offset { ns, error_ns: travelled.div_ceil(2).saturating_add(drift_ns(held)) })
    }
}

/// What two clocks differ by more after `ns`.
const fn drift_ns(ns: u64) -> u64 {
    ns / 1_000_000 * QUARTZ_PPM
}

/// `a - b`, if it fits.
fn difference(a: u64, b: u64) -> Option<i64> {
    i64::try_from(i128::from(a) - i128::from(b)).ok()
}

/// The last exchanges.
#[derive(Clone, Debug, Default)]
pub struct ClockFilter {
    /// Offsets, and when they were found by the host's clock, ns.
    recent: Vec<(Offset, u64)>,
    next: usize,
}

impl ClockFilter {
    /// Adds an exchange.
    pub fn add(&mut self, exchange: &Exchange) {
        let Some(offset) = exchange.offset() else { return };
        let found = (offset, exchange.order_received_ns);
        if self.recent.len() < KEPT {
            self.recent.push(found);
        } else {
            self.recent[self.next % KEPT] = found;
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// The best offset of them at `now_ns` of the host's clock: an older one may be wrong by more.
    #[must_use]
    pub fn best(&self, now_ns: u64) -> Option<Offset> {
        let aged = self.recent.iter().map(|(offset, found_ns)| {
            let drift_ns = drift_ns(now_ns.saturating_sub(*found_ns));
            Offset { error_ns: offset.error_ns.saturating_add(drift_ns), ..*offset }
        });
        aged.min_by_key(|offset| offset.error_ns)
    }
}

/// The time of the host's clock at `controller_ns` of the controller's, ns; 0 if it has none.
#[must_use]
pub fn to_host_ns(controller_ns: u64, offset: Offset) -> u64 {
    controller_ns.saturating_add_signed(offset.ns.saturating_neg())
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
