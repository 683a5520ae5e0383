//! How long an answer is waited for: a few times what answers usually take, then longer, then as long as is
//! allowed.
//!
//! Asking early costs a status packet and does no harm: a target does nothing twice. So early questions do
//! not count as attempts.
use std::time::Duration;

/// The shortest wait is this part of the longest; waits double from there.
const STEPS: u32 = 10;
/// An answer that takes so many times as long as the slowest of the last ones is asked for.
const TIMES: u64 = 4;
/// Part of the slowest answer's time that is forgotten with each later one.
const FORGOTTEN: u64 = 16;

/// What is known of a target's answers, and how long it has been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    timeout: Duration,
    /// Of the last answers, the slowest; none before the first.
    slowest_ns: Option<u64>,
    /// Waits in vain since the last answer.
    waits: u32,
    /// Those of them that lasted as long as is allowed.
    attempts: u32,
}

impl Patience {
    /// With nothing known of the target, each wait lasts for `timeout`.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, slowest_ns: None, waits: 0, attempts: 0 }
    }

    /// How long the next wait lasts.
    pub(super) fn limit(&self) -> Duration {
        let Some(slowest_ns) = self.slowest_ns else { return self.timeout };
        let usual = Duration::from_nanos(slowest_ns.saturating_mul(TIMES));
        let mut limit = self.timeout / STEPS;
        while limit < usual && limit < self.timeout {
            limit *= 2;
        }
        limit.saturating_mul(1 << self.waits.min(STEPS)).min(self.timeout)
    }

    /// A wait was in vain; how many were so for as long as is allowed.
    pub(super) fn waited(&mut self) -> u32 {
        if self.limit() == self.timeout {
            self.attempts += 1;
        }
        self.waits = self.waits.saturating_add(1);
        self.attempts
    }

    /// Waits in vain for as long as is allowed.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Something was answered.
    pub(super) fn answered(&mut self) {
        (self.waits, self.attempts) = (0, 0);
    }

    /// An answer took so long from its request on, which was sent once.
    pub(super) fn took(&mut self, ns: u64) {
        let before = self.slowest_ns.unwrap_or(0);
        self.slowest_ns = Some(ns.max(before - before / FORGOTTEN));
    }

    /// The same for another question, which was not waited for yet.
    pub(super) fn anew(mut self) -> Self {
        self.answered();
        self
    }
}

#[cfg(test)]
#[path = "patience_tests.rs"]
mod tests;
