//! Processor time: of this process, of the calling thread, of each thread by name, and of each core.
//!
//! The clocks are exact to the nanosecond and see what the process's kernel workers (io_uring) burn;
//! /proc says who in the process, and /proc/stat says what the rest of the machine did meanwhile.

mod cores;
mod threads;

pub use cores::{CoreTimes, CoreUsage, core_usage, interrupts, parse_core_times, parse_interrupts};
pub use threads::{ThreadStat, ThreadUsage, thread_usage};

use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use crate::clock::read_ns;

/// Processor time that this process has used since it began, in ns: user and system, all threads, those that
/// have ended and io_uring's workers included (CLOCK_PROCESS_CPUTIME_ID).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessCpu {
    /// The time used, in ns.
    pub ns: u64,
}

impl ProcessCpu {
    /// The time used until now.
    pub fn now() -> Self {
        Self { ns: read_ns(ClockId::ProcessCPUTime) }
    }

    /// What was used since `earlier`, in ns.
    pub fn since_ns(self, earlier: Self) -> u64 {
        self.ns.saturating_sub(earlier.ns)
    }
}

/// Processor time that the calling thread has used since it began, in ns (CLOCK_THREAD_CPUTIME_ID).
pub fn thread_cpu_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// Nanoseconds in so many ticks of the kernel's accounting.
fn ticks_to_ns(ticks: u64, ticks_per_s: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / ticks_per_s.max(1))
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
