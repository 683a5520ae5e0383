//! CPU time of this process, of the calling thread, and of each core.
//!
//! The clocks have nanosecond resolution and include the process's kernel workers (io_uring); /proc/stat has
//! the use of the rest of the machine in that time.

mod cores;

pub use cores::{CoreTimes, CoreUsage, core_usage, interrupts};

use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use crate::clock::read_ns;

/// CPU time used by this process, ns: user and system, all threads including ended ones and
/// io_uring's workers (CLOCK_PROCESS_CPUTIME_ID).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessCpu {
    /// The time used, in ns.
    pub ns: u64,
}

impl ProcessCpu {
    /// CPU time used until now.
    pub fn now() -> Self {
        Self { ns: read_ns(ClockId::ProcessCPUTime) }
    }

    /// CPU time used since `earlier`, ns.
    pub fn since_ns(self, earlier: Self) -> u64 {
        self.ns.saturating_sub(earlier.ns)
    }
}

/// CPU time used by the calling thread, ns (CLOCK_THREAD_CPUTIME_ID).
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// Converts kernel ticks to nanoseconds.
fn ticks_to_ns(ticks: u64, ticks_per_s: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / ticks_per_s.max(1))
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
