//! Clock of a phase: elapsed time, CPU time of the process and of the machine.
use keepup_measure::clock::Clock;
use keepup_results::DiskPhase;

use crate::spent::{Spent, SpentClock};

/// Throughput of a slow disk, for time estimates, bytes per second.
pub(super) const RATE_GUESS: f64 = 200e6;

/// A running phase.
pub(super) struct PhaseClock(SpentClock);

impl PhaseClock {
    pub(super) fn begin(clock: &dyn Clock) -> Self {
        Self(SpentClock::begin(clock))
    }

    /// Backdates the start to `begin_ns` because this thread woke late.
    pub(super) fn since(self, begin_ns: u64) -> Self {
        Self(self.0.since(begin_ns))
    }

    /// Ends the phase.
    pub(super) fn end(self, clock: &dyn Clock, name: String, files: u64, bytes: u64) -> DiskPhase {
        let spent = self.0.end(clock);
        let Spent { seconds, cpu_seconds, machine_cpu_seconds, steal_seconds, .. } = spent;
        DiskPhase {
            name,
            // Absolute; the caller converts to time since the start of the run.
            begin_seconds: self.0.begin_ns() as f64 / 1e9,
            files,
            bytes,
            operations: None,
            seconds,
            cpu_seconds,
            machine_cpu_seconds,
            steal_seconds,
            interrupts: spent.interrupts,
            storage_interrupts: spent.storage_interrupts,
            latency: None,
            parts: Vec::new(),
            load_rates: Vec::new(),
        }
    }
}
