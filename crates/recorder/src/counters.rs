//! Live figures of a recording, published by its threads without locks and read by anybody.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::report::{Stalls, VolumeStalls};

/// Figures of the intake thread.
#[derive(Debug, Default)]
pub struct IntakeCounters {
    /// Events received whole and in order.
    pub received_events: AtomicU64,
    /// Payload bytes of those.
    pub received_bytes: AtomicU64,
    /// Events missing in the sequence so far.
    pub gap_events: AtomicU64,
    /// Connections open.
    pub connections: AtomicU64,
    /// Bytes of the pool in use.
    pub pool_bytes_used: AtomicU64,
    /// Most of the pool in use so far, in bytes.
    pub pool_bytes_used_max: AtomicU64,
    /// Time in which some connection waited for a free block, in nanoseconds.
    pub pool_wait_ns: AtomicU64,
    /// Longest such time at a stretch.
    pub pool_wait_ns_max: AtomicU64,
    /// Longest time between two looks at the sockets in which the intake did not wait, in nanoseconds.
    pub turn_ns_max: AtomicU64,
    /// Time in which the intake had nothing to do, in nanoseconds.
    pub idle_ns: AtomicU64,
}

/// Figures of one volume's writer.
#[derive(Debug, Default)]
pub struct VolumeCounters {
    /// Bytes handed to the writer: whole blocks.
    pub placed_bytes: AtomicU64,
    /// Bytes confirmed by the kernel: whole blocks.
    pub written_bytes: AtomicU64,
    /// Events in those.
    pub written_events: AtomicU64,
    /// Payload bytes in those.
    pub written_payload_bytes: AtomicU64,
    /// Events on stable storage.
    pub durable_events: AtomicU64,
    /// Payload bytes on stable storage.
    pub durable_payload_bytes: AtomicU64,
    /// Time with at least one write under way, in nanoseconds.
    pub busy_ns: AtomicU64,
    /// Time with as many writes under way as allowed, in nanoseconds.
    pub full_ns: AtomicU64,
    /// Time in which blocks waited for the next segment to be prepared, in nanoseconds.
    pub segment_wait_ns: AtomicU64,
    /// Longest such time at a stretch.
    pub segment_wait_ns_max: AtomicU64,
    /// Longest write from submission to confirmation, in nanoseconds.
    pub write_ns_max: AtomicU64,
    /// Longest flush to stable storage, in nanoseconds.
    pub sync_ns_max: AtomicU64,
    /// When the oldest write, flush or wait for a segment under way began, in nanoseconds of the recorder's
    /// clock; 0 when there is none.
    pub oldest_ns: AtomicU64,
    /// Times that it was taken out of rotation because it was slow.
    pub rests: AtomicU64,
    /// Bytes beyond what is to be kept that must stay, because they are nowhere else.
    pub keep_excess_bytes: AtomicU64,
    /// Flushes made.
    pub syncs: AtomicU64,
    /// Segments begun.
    pub segments: AtomicU64,
    /// Why it was taken out of rotation, once it was.
    pub failure: OnceLock<String>,
}

/// All figures of one recording.
#[derive(Debug, Default)]
pub struct Counters {
    /// The intake's.
    pub intake: IntakeCounters,
    /// One per volume.
    pub volumes: Vec<VolumeCounters>,
}

impl Counters {
    pub(crate) fn new(volumes: usize) -> Self {
        Self {
            intake: IntakeCounters::default(),
            volumes: (0..volumes).map(|_| VolumeCounters::default()).collect(),
        }
    }

    /// Payload bytes confirmed by the kernel, over all volumes.
    pub fn written_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.written_payload_bytes.load(Relaxed)).sum()
    }

    /// Payload bytes on stable storage, over all volumes.
    pub fn durable_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.durable_payload_bytes.load(Relaxed)).sum()
    }

    /// The longest stall of every stage so far.
    pub fn stalls(&self) -> Stalls {
        let volume = |v: &VolumeCounters| VolumeStalls {
            segment_ns: v.segment_wait_ns_max.load(Relaxed),
            write_ns: v.write_ns_max.load(Relaxed),
            flush_ns: v.sync_ns_max.load(Relaxed),
        };
        Stalls {
            intake_ns: self.intake.turn_ns_max.load(Relaxed),
            pool_ns: self.intake.pool_wait_ns_max.load(Relaxed),
            volumes: self.volumes.iter().map(volume).collect(),
        }
    }

    /// Events on stable storage, over all volumes.
    pub fn durable_events(&self) -> u64 {
        self.volumes.iter().map(|v| v.durable_events.load(Relaxed)).sum()
    }
}

/// Adds to a counter that only the calling thread writes.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Raises a counter that only the calling thread writes.
pub(crate) fn raise(counter: &AtomicU64, value: u64) {
    if value > counter.load(Relaxed) {
        counter.store(value, Relaxed);
    }
}
