//! Monotonic clock for schedules and latencies, wall clock for records.
//!
//! Invariant: only this module reads the system time; other code receives a [`Clock`].

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// Source of time, injected so that tests can control it.
pub trait Clock: Send + Sync {
    /// Monotonic time in ns since an arbitrary moment; never decreases.
    fn now_ns(&self) -> u64;
    /// Wall time in ns since 1970-01-01 UTC; may jump.
    fn unix_ns(&self) -> u64;
    /// Returns once [`Clock::now_ns`] has reached `deadline_ns`; at once if that has passed.
    fn sleep_until_ns(&self, deadline_ns: u64);
}

/// The machine's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        read_ns(ClockId::Monotonic)
    }

    fn unix_ns(&self) -> u64 {
        read_ns(ClockId::Realtime)
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        let seconds = i64::try_from(deadline_ns / NS_PER_S).unwrap_or(i64::MAX);
        let request = Timespec { tv_sec: seconds, tv_nsec: (deadline_ns % NS_PER_S) as i64 };
        // An interrupted absolute sleep is resumed with the same deadline.
        while self.now_ns() < deadline_ns {
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &request);
        }
    }
}

/// Reads a clock that always exists, in ns; a time before the epoch reads as 0.
pub(crate) fn read_ns(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(NS_PER_S).saturating_add(nanoseconds)
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
