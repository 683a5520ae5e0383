//! Clock of the simulator: common start time, absolute sleeps, CPU time of a thread. The
//! simulator reads no other clock.

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};

use crate::time::clock_ns;

/// Start of a schedule on two clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    monotonic_start_ns: u64,
    unix_start_ns: u64,
}

impl Clock {
    /// A schedule that starts `lead_ns` from now.
    pub(super) fn starting_in(lead_ns: u64) -> Clock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock {
            monotonic_start_ns: clock_ns(ClockId::Monotonic) + lead_ns,
            unix_start_ns: unix.as_nanos() as u64 + lead_ns,
        }
    }

    /// Time since the start, ns; 0 before it.
    pub(super) fn now_ns(&self) -> u64 {
        clock_ns(ClockId::Monotonic).saturating_sub(self.monotonic_start_ns)
    }

    /// Converts a time since the start to ns since the Unix epoch.
    pub(super) fn unix_ns(&self, since_start_ns: u64) -> u64 {
        self.unix_start_ns.saturating_add(since_start_ns)
    }

    /// Sleeps until this time after the start.
    pub(super) fn sleep_until(&self, since_start_ns: u64) {
        let wake_ns = self.monotonic_start_ns.saturating_add(since_start_ns);
        let wake =
            Timespec { tv_sec: (wake_ns / 1_000_000_000) as i64, tv_nsec: (wake_ns % 1_000_000_000) as i64 };
        while clock_nanosleep_absolute(ClockId::Monotonic, &wake) == Err(Errno::INTR) {}
    }
}

/// CPU time of the calling thread, ns.
pub(super) fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Requests wake-ups within 1 us instead of Linux's default of 50 us. If refused, the effect
/// shows as lateness.
pub(super) fn want_precise_wakeups() {
    let _ = set_current_timer_slack(NonZeroU64::new(1_000));
}
