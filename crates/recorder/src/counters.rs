//! Live counters of a recording, published by its threads without locks.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keepup_recording::account::{Stalls, VolumeStalls};
use keepup_stream::ledger::LossCause;
use keepup_stream::wire::{SentRecording, StreamInfo};

/// Counters of the intake thread.
#[derive(Debug, Default)]
pub struct IntakeCounters {
    /// Events received whole and in order.
    pub received_events: AtomicU64,
    /// Payload bytes of those.
    pub received_bytes: AtomicU64,
    /// Events missing so far, by cause, in the order of [`LossCause::ALL`].
    gap_events: [AtomicU64; LossCause::ALL.len()],
    /// Open connections.
    pub connections: AtomicU64,
    /// Bytes of the pool in use.
    pub pool_bytes_used: AtomicU64,
    /// Most of the pool in use so far, in bytes.
    pub pool_bytes_used_max: AtomicU64,
    /// Time in which at least one connection waited for a free block, in nanoseconds.
    pub pool_wait_ns: AtomicU64,
    /// Longest uninterrupted wait, in nanoseconds.
    pub pool_wait_ns_max: AtomicU64,
    /// Longest turn of the intake loop, without its wait, in nanoseconds.
    pub turn_ns_max: AtomicU64,
    /// Time in which the intake was idle, in nanoseconds.
    pub idle_ns: AtomicU64,
}

impl IntakeCounters {
    /// Events missing so far, by cause, without the causes that have none.
    pub fn gap_events_by_cause(&self) -> BTreeMap<LossCause, u64> {
        let counts = LossCause::ALL.iter().zip(&self.gap_events).map(|(&cause, n)| (cause, n.load(Relaxed)));
        counts.filter(|(_, events)| *events > 0).collect()
    }

    /// Events missing so far.
    pub fn gap_events(&self) -> u64 {
        self.gap_events.iter().map(|events| events.load(Relaxed)).sum()
    }

    /// Counts missing events.
    pub(crate) fn add_gap(&self, cause: LossCause, events: u64) {
        add(&self.gap_events[cause as usize], events);
    }

    /// Moves missing events from the unknown cause to `cause`.
    pub(crate) fn explain_gap(&self, cause: LossCause, events: u64) {
        let unexplained = &self.gap_events[LossCause::SequenceGap as usize];
        unexplained.store(unexplained.load(Relaxed).saturating_sub(events), Relaxed);
        self.add_gap(cause, events);
    }
}

/// Counters of one stream, updated when a block is sealed or becomes durable.
#[derive(Debug)]
pub struct StreamCounters {
    /// Its declaration.
    pub info: StreamInfo,
    /// Whether a source is connected for it.
    pub connected: AtomicBool,
    /// Whether its source has sent end and none has connected since.
    pub ended: AtomicBool,
    /// Events received whole and in order.
    pub received_events: AtomicU64,
    /// Payload bytes of those.
    pub received_bytes: AtomicU64,
    /// Events on stable storage.
    pub durable_events: AtomicU64,
    /// Payload bytes of those.
    pub durable_bytes: AtomicU64,
    /// Events missing so far.
    pub gap_events: AtomicU64,
    /// Next expected sequence number.
    pub next_sequence: AtomicU64,
}

impl StreamCounters {
    pub(crate) fn new(info: StreamInfo) -> Self {
        Self {
            info,
            connected: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            received_events: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            durable_events: AtomicU64::new(0),
            durable_bytes: AtomicU64::new(0),
            gap_events: AtomicU64::new(0),
            next_sequence: AtomicU64::new(0),
        }
    }
}

/// Streams declared so far. The lock is taken only when a stream is declared for the first time,
/// and by readers.
#[derive(Debug, Default)]
pub struct StreamTable(Mutex<Vec<Arc<StreamCounters>>>);

impl StreamTable {
    /// Appends the streams declared since `known` was last updated.
    pub fn catch_up(&self, known: &mut Vec<Arc<StreamCounters>>) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(all.iter().skip(known.len()).cloned());
    }

    pub(crate) fn add(&self, stream: Arc<StreamCounters>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
}

/// Counters of one volume's writer.
#[derive(Debug, Default)]
pub struct VolumeCounters {
    /// Bytes handed to the writer: whole blocks.
    pub placed_bytes: AtomicU64,
    /// Bytes confirmed by the kernel: whole blocks.
    pub written_bytes: AtomicU64,
    /// Events in those.
    pub written_events: AtomicU64,
    /// Payload bytes of those, as the source sent them.
    pub written_payload_bytes: AtomicU64,
    /// Events on stable storage.
    pub durable_events: AtomicU64,
    /// Payload bytes of those, as the source sent them.
    pub durable_payload_bytes: AtomicU64,
    /// Payload bytes on stable storage, as stored.
    pub stored_payload_bytes: AtomicU64,
    /// Time with at least one write in flight, in nanoseconds.
    pub busy_ns: AtomicU64,
    /// Time with as many writes in flight as allowed, in nanoseconds.
    pub full_ns: AtomicU64,
    /// Time in which blocks waited for the next segment to be prepared, in nanoseconds.
    pub segment_wait_ns: AtomicU64,
    /// Longest uninterrupted wait for a segment, in nanoseconds.
    pub segment_wait_ns_max: AtomicU64,
    /// Longest write from submission to confirmation, in nanoseconds.
    pub write_ns_max: AtomicU64,
    /// Longest flush to stable storage, in nanoseconds.
    pub sync_ns_max: AtomicU64,
    /// Start of the oldest write, flush or wait for a segment in progress, in nanoseconds of the
    /// recorder's clock; 0 when nothing is outstanding.
    pub oldest_ns: AtomicU64,
    /// Number of times that it was taken out of rotation for being slow.
    pub rests: AtomicU64,
    /// Bytes beyond the retention limit that are kept because no drain has copied them.
    pub keep_excess_bytes: AtomicU64,
    /// Flushes completed.
    pub syncs: AtomicU64,
    /// Segments started.
    pub segments: AtomicU64,
    /// Gap entries of the journal that are on stable storage.
    pub gaps_durable: AtomicU64,
    /// Reason why it was taken out of rotation for good.
    pub failure: OnceLock<String>,
    /// First failure of its journal or of sealing a segment.
    pub trouble: OnceLock<String>,
}

/// Counters of one reducer thread.
#[derive(Debug, Default)]
pub struct ReducerCounters {
    /// Payload bytes handed to it.
    pub handed_bytes: AtomicU64,
    /// Payload bytes of the events it reduced, before reduction.
    pub input_bytes: AtomicU64,
    /// Payload bytes of the events it reduced, after reduction.
    pub output_bytes: AtomicU64,
    /// Events reduced.
    pub events: AtomicU64,
    /// Time in which it was busy, in nanoseconds.
    pub busy_ns: AtomicU64,
}

/// All counters of one recording.
#[derive(Debug, Default)]
pub struct Counters {
    /// Intake thread.
    pub intake: IntakeCounters,
    /// One per volume.
    pub volumes: Vec<VolumeCounters>,
    /// One per reducer thread.
    pub reducers: Vec<ReducerCounters>,
    /// One per stream.
    pub streams: StreamTable,
    /// Recording that the first drain said it sends.
    pub sent: OnceLock<SentRecording>,
}

impl Counters {
    pub(crate) fn new(volumes: usize, reducers: usize) -> Self {
        Self {
            intake: IntakeCounters::default(),
            volumes: (0..volumes).map(|_| VolumeCounters::default()).collect(),
            reducers: (0..reducers).map(|_| ReducerCounters::default()).collect(),
            streams: StreamTable::default(),
            sent: OnceLock::new(),
        }
    }

    /// Payload bytes confirmed by the kernel, over all volumes.
    pub fn written_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.written_payload_bytes.load(Relaxed)).sum()
    }

    /// Events confirmed by the kernel, over all volumes.
    pub fn written_events(&self) -> u64 {
        self.volumes.iter().map(|v| v.written_events.load(Relaxed)).sum()
    }

    /// Payload bytes on stable storage, over all volumes.
    pub fn durable_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.durable_payload_bytes.load(Relaxed)).sum()
    }

    /// Payload bytes on stable storage as stored, over all volumes.
    pub fn stored_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.stored_payload_bytes.load(Relaxed)).sum()
    }

    /// Longest stall of every stage so far.
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

/// Adds to a counter with a single writer, the calling thread.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Raises a counter with a single writer, the calling thread.
pub(crate) fn raise(counter: &AtomicU64, value: u64) {
    if value > counter.load(Relaxed) {
        counter.store(value, Relaxed);
    }
}
