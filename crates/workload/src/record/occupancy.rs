//! Occupancy of every stage of the recorder, the basis for finding the bottleneck.
use std::sync::atomic::Ordering::Relaxed;

use keepup_recorder::counters::{Counters, VolumeCounters};

/// Shares of a trial's time, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Occupancy {
    /// The busiest intake was idle.
    pub intake_idle: f64,
    /// A connection waited for a free block.
    pub pool_wait: f64,
    /// Maximum pool usage in bytes; the record report has it as a share.
    pub pool_bytes_used_max: u64,
    /// Busy share of each reducer thread.
    pub reducers: Vec<f64>,
    /// Occupancy of each volume.
    pub volumes: Vec<VolumeOccupancy>,
}

/// Occupancy of one volume, shares of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VolumeOccupancy {
    /// At least one write was in flight.
    pub busy: f64,
    /// The maximum number of writes was in flight.
    pub full: f64,
    /// Blocks waited for the next segment.
    pub segment_wait: f64,
    /// Longest write, ns.
    pub write_ns_max: u64,
    /// Longest flush, ns.
    pub sync_ns_max: u64,
}

impl Occupancy {
    pub(super) fn of(counters: &Counters, elapsed_ns: u64) -> Self {
        let share = |ns: u64| (ns as f64 / elapsed_ns.max(1) as f64).min(1.0);
        let volume = |v: &VolumeCounters| VolumeOccupancy {
            busy: share(v.busy_ns.load(Relaxed)),
            full: share(v.full_ns.load(Relaxed)),
            segment_wait: share(v.segment_wait_ns.load(Relaxed)),
            write_ns_max: v.write_ns_max.load(Relaxed),
            sync_ns_max: v.sync_ns_max.load(Relaxed),
        };
        Self {
            intake_idle: share(counters.intake_idle_ns()),
            pool_wait: share(counters.pool_wait_ns()),
            pool_bytes_used_max: counters.pool_bytes_used_max(),
            reducers: counters.reducers.iter().map(|r| share(r.busy_ns.load(Relaxed))).collect(),
            volumes: counters.volumes.iter().map(volume).collect(),
        }
    }
}
