//! The clock of a phase: time, CPU of the process, CPU of the machine.
use keepup_measure::clock::Clock;
use keepup_results::DiskPhase;

pub(super) use crate::spent::told;
use crate::spent::{Spent, SpentClock};

/// What a slow disk writes, for estimates of time, in bytes per second.
pub(super) const RATE_GUESS: f64 = 200e6;

/// A phase that has begun.
pub(super) struct PhaseClock(SpentClock);

impl PhaseClock {
    pub(super) fn begin(clock: &dyn Clock) -> Self {
        Self(SpentClock::begin(clock))
    }

    /// The phase counts from `begin_ns`, a moment ago: this thread was late.
    pub(super) fn since(self, begin_ns: u64) -> Self {
        Self(self.0.since(begin_ns))
    }

    /// The phase ends now.
    pub(super) fn end(self, clock: &dyn Clock, name: String, files: u64, bytes: u64) -> DiskPhase {
        let Spent { seconds, cpu_seconds, machine_cpu_seconds, steal_seconds, .. } = self.0.end(clock);
        DiskPhase {
            name,
            // On the clock; whoever repeats the test knows when the run began.
            begin_seconds: self.0.begin_ns() as f64 / 1e9,
            files,
            bytes,
            operations: None,
            seconds,
            cpu_seconds,
            machine_cpu_seconds,
            steal_seconds,
            latency: None,
            parts: Vec::new(),
            load_rates: Vec::new(),
        }
    }
}
