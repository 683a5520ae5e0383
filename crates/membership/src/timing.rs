//! Intervals, leases and deadlines of a fleet.
use serde::{Deserialize, Serialize};

/// Largest difference in rate between two clocks, in parts per million. Quartz is within 100; NTP slews by at
/// most 500.
pub const DRIFT_PPM: u64 = 1_000;

/// Intervals, leases and deadlines, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Time between the heartbeats of a host that changes nothing.
    pub heartbeat_ns: u64,
    /// How long a host is a member after its last heartbeat.
    pub lease_ns: u64,
    /// Longest preparation of a host.
    pub prepare_ns: u64,
    /// From the order to start until the start.
    pub start_delay_ns: u64,
    /// Longest end of a host's part of a run.
    pub finish_ns: u64,
    /// How long a host waits for orders before it ends its part of a run and exits.
    pub orphan_ns: u64,
}

const MS: u64 = 1_000_000;

impl Timing {
    /// For recording: the streams of a silent recorder move within a second.
    #[must_use]
    pub const fn recording() -> Self {
        Self {
            heartbeat_ns: 150 * MS,
            lease_ns: 600 * MS,
            prepare_ns: 20_000 * MS,
            start_delay_ns: 250 * MS,
            finish_ns: 60_000 * MS,
            orphan_ns: 5_000 * MS,
        }
    }

    /// For trials: one message per host and second, because nothing else should use the machines. No stream
    /// moves in a trial.
    #[must_use]
    pub const fn trial() -> Self {
        Self { heartbeat_ns: 1_000 * MS, lease_ns: 3_500 * MS, ..Self::recording() }
    }

    /// The same with at least the intervals of a trial.
    #[must_use]
    pub fn of_trial(&self) -> Self {
        let trial = Self::trial();
        Self {
            heartbeat_ns: self.heartbeat_ns.max(trial.heartbeat_ns),
            lease_ns: self.lease_ns.max(trial.lease_ns),
            orphan_ns: self.orphan_ns.max(trial.orphan_ns),
            ..*self
        }
    }

    /// The lease by the clock of the host, from the time at which it sent its heartbeat. It ends before that
    /// of [`Timing::lease_of_controller`] even if the clocks differ in rate.
    #[must_use]
    pub const fn lease_of_host_ns(&self) -> u64 {
        self.lease_ns - self.lease_ns / 1_000_000 * DRIFT_PPM
    }

    /// The lease by the clock of the controller, from the time at which the heartbeat arrived there.
    #[must_use]
    pub const fn lease_of_controller_ns(&self) -> u64 {
        self.lease_ns + self.lease_ns / 1_000_000 * DRIFT_PPM
    }
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
