//! Live figures of a recording, published by its threads without locks and read by anybody.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keepup_stream::ledger::LossCause;
use keepup_stream::wire::{SentRecording, StreamInfo};

use crate::report::{Stalls, VolumeStalls};

/// Figures of the intake thread.
#[derive(Debug, Default)]
pub struct IntakeCounters {
    /// Events received whole and in order.
    pub received_events: AtomicU64,
    /// Payload bytes of those.
    pub received_bytes: AtomicU64,
    /// Events missing so far, by cause, in the order of [`LossCause::ALL`].
    gap_events: [AtomicU64; LossCause::ALL.len()],
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

impl IntakeCounters {
    /// Events missing so far, by cause; those of which there are any.
    pub fn gap_events_by_cause(&self) -> BTreeMap<LossCause, u64> {
        let counts = LossCause::ALL.iter().zip(&self.gap_events).map(|(&cause, n)| (cause, n.load(Relaxed)));
        counts.filter(|(_, events)| *events > 0).collect()
    }

    /// Events missing so far.
    pub fn gap_events(&self) -> u64 {
        self.gap_events.iter().map(|events| events.load(Relaxed)).sum()
    }

    /// Enters that so many events are missing.
    pub(crate) fn add_gap(&self, cause: LossCause, events: u64) {
        add(&self.gap_events[cause as usize], events);
    }

    /// Enters that so many events, which were missing for no known reason, are missing for `cause`.
    pub(crate) fn explain_gap(&self, cause: LossCause, events: u64) {
        let unexplained = &self.gap_events[LossCause::SequenceGap as usize];
        unexplained.store(unexplained.load(Relaxed).saturating_sub(events), Relaxed);
        self.add_gap(cause, events);
    }
}

/// Figures of one stream, as they stood when its last block was sealed or became durable.
#[derive(Debug)]
pub struct StreamCounters {
    /// What was declared of it.
    pub info: StreamInfo,
    /// Whether a source feeds it.
    pub connected: AtomicBool,
    /// Whether its source said end, and none has come since.
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
    /// Sequence number that is expected next.
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

/// The streams declared so far. The lock is taken when a stream is declared for the first time, and by those
/// who look.
#[derive(Debug, Default)]
pub struct StreamTable(Mutex<Vec<Arc<StreamCounters>>>);

impl StreamTable {
    /// Appends to `known`, which has the first of them, those declared since.
    pub fn catch_up(&self, known: &mut Vec<Arc<StreamCounters>>) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(all.iter().skip(known.len()).cloned());
    }

    pub(crate) fn add(&self, stream: Arc<StreamCounters>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
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
    /// Payload bytes of those, as the source sent them.
    pub written_payload_bytes: AtomicU64,
    /// Events on stable storage.
    pub durable_events: AtomicU64,
    /// Payload bytes of those, as the source sent them.
    pub durable_payload_bytes: AtomicU64,
    /// Payload bytes on stable storage, as they lie there.
    pub stored_payload_bytes: AtomicU64,
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
    /// Gap entries of the journal that are on stable storage.
    pub gaps_durable: AtomicU64,
    /// Why it was taken out of rotation, once it was.
    pub failure: OnceLock<String>,
    /// What its journal or a segment's seal lacks, once something does.
    pub trouble: OnceLock<String>,
}

/// Figures of one thread that reduces.
#[derive(Debug, Default)]
pub struct ReducerCounters {
    /// Payload bytes handed to it.
    pub handed_bytes: AtomicU64,
    /// Payload bytes of the events that it reduced.
    pub input_bytes: AtomicU64,
    /// Payload bytes that they became.
    pub output_bytes: AtomicU64,
    /// Events reduced.
    pub events: AtomicU64,
    /// Time in which it had something to do, in nanoseconds.
    pub busy_ns: AtomicU64,
}

/// All figures of one recording.
#[derive(Debug, Default)]
pub struct Counters {
    /// The intake's.
    pub intake: IntakeCounters,
    /// One per volume.
    pub volumes: Vec<VolumeCounters>,
    /// One per thread that reduces.
    pub reducers: Vec<ReducerCounters>,
    /// One per stream.
    pub streams: StreamTable,
    /// The recording that the first drain said it sends.
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

    /// Payload bytes on stable storage as they lie there, over all volumes.
    pub fn stored_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.stored_payload_bytes.load(Relaxed)).sum()
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
