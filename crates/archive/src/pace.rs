//! Rate limit of a transfer.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;

use crate::error::ArchiveError;

/// A transfer that fell behind its pace catches up for at most this long, in nanoseconds.
const CATCH_UP_NS: f64 = 1e9;

/// Interval at which the stop flag is checked.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Absolute schedule of bytes; a delay beyond one second is not caught up.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Bytes per second.
    rate: Option<f64>,
    due_ns: f64,
}

impl Pace {
    pub(crate) fn new(rate: Option<f64>, now_ns: u64) -> Self {
        Self { rate, due_ns: now_ns as f64 }
    }

    /// Time from which the next `bytes` may be sent, in nanoseconds.
    pub(crate) fn before(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let Some(rate) = self.rate else { return now_ns };
        let due_ns = self.due_ns.max(now_ns as f64 - CATCH_UP_NS);
        self.due_ns = due_ns + bytes as f64 / rate * 1e9;
        due_ns as u64
    }
}

/// Waits until `until_ns`, or for the stop flag, which is an error.
pub(crate) fn wait_until(clock: &dyn Clock, until_ns: u64, stop: &AtomicBool) -> Result<(), ArchiveError> {
    loop {
        let now_ns = clock.now_ns();
        if stop.load(Ordering::Acquire) {
            return Err(ArchiveError::Stopped);
        } else if now_ns >= until_ns {
            return Ok(());
        }
        clock.sleep_until_ns(until_ns.min(now_ns + POLL.as_nanos() as u64));
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
