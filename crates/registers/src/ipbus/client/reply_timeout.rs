//! Adaptive timeout of replies: at first a few typical reply times, then doubling up to the full timeout.
//!
//! An early status request costs one packet and is harmless, since a target executes nothing twice. So only
//! waits of the full timeout count as attempts.
use std::time::Duration;

/// Ratio of the full timeout to the shortest wait.
const SHORTEST_DIVISOR: u32 = 10;
/// Limit of the exponent when waits double.
const DOUBLINGS_MAX: u32 = 10;
/// Ratio of a wait to the slowest recent reply.
const REPLY_TIMES: u64 = 4;
/// The slowest reply time decays by this part with each later reply.
const DECAY_DIVISOR: u64 = 16;

/// Adaptive timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyTimeout {
    timeout: Duration,
    /// Decaying maximum of the reply times; none before the first reply.
    slowest_ns: Option<u64>,
    /// Expired waits since the last reply.
    waits: u32,
    /// Expired waits of the full timeout since the last reply.
    attempts: u32,
}

impl ReplyTimeout {
    /// Without a measured reply time, each wait lasts for `timeout`.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, slowest_ns: None, waits: 0, attempts: 0 }
    }

    /// Duration of the next wait.
    pub(super) fn limit(&self) -> Duration {
        let Some(slowest_ns) = self.slowest_ns else { return self.timeout };
        let usual = Duration::from_nanos(slowest_ns.saturating_mul(REPLY_TIMES));
        let mut limit = self.timeout / SHORTEST_DIVISOR;
        while limit < usual && limit < self.timeout {
            limit *= 2;
        }
        limit.saturating_mul(1 << self.waits.min(DOUBLINGS_MAX)).min(self.timeout)
    }

    /// Records an expired wait. Returns the number of attempts.
    pub(super) fn expired(&mut self) -> u32 {
        if self.limit() == self.timeout {
            self.attempts += 1;
        }
        self.waits = self.waits.saturating_add(1);
        self.attempts
    }

    /// Expired waits of the full timeout.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Starts over after a reply.
    pub(super) fn reset(&mut self) {
        (self.waits, self.attempts) = (0, 0);
    }

    /// Records the reply time of a request that was sent once.
    pub(super) fn record(&mut self, ns: u64) {
        let before = self.slowest_ns.unwrap_or(0);
        self.slowest_ns = Some(ns.max(before - before / DECAY_DIVISOR));
    }

    /// The timeout for a new request, with the same reply times.
    pub(super) fn for_new_request(mut self) -> Self {
        self.reset();
        self
    }
}

#[cfg(test)]
#[path = "reply_timeout_tests.rs"]
mod tests;
