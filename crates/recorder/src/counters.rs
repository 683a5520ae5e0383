//! Live counters of a recording, published by its threads without locks.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keepup_measure::sum::Sums;
use keepup_recording::account::{Stalls, VolumeStalls};
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{Rejected, Rejection, Rejections};
use keepup_stream::wire::{METADATA_MAX, SentRecording, StreamInfo};

/// Warnings that wait for the log.
const WARNINGS_MAX: usize = 64;
/// Most entries of metadata of all detectors. The manifest holds fewer, and selects by their importance.
const DETECTOR_ENTRIES_MAX: usize = 16 * METADATA_MAX;

/// Counters of one intake thread. Only that thread writes them; the alignment keeps the counters of two
/// threads out of one cache line and out of the neighbour that a processor fetches with it.
#[derive(Debug)]
#[repr(align(128))]
pub struct IntakeCounters {
    /// Events received whole and in order.
    pub received_events: AtomicU64,
    /// Payload bytes of those.
    pub received_bytes: AtomicU64,
    /// Events missing so far, by cause, in the order of [`LossCause::ALL`].
    gap_events: [AtomicU64; LossCause::ALL.len()],
    /// Open connections.
    pub connections: AtomicU64,
    /// Bytes of its pool in use.
    pub pool_bytes_used: AtomicU64,
    /// Most of its pool in use so far, in bytes.
    pub pool_bytes_used_max: AtomicU64,
    /// Time in which at least one connection waited for a free block, in nanoseconds.
    pub pool_wait_ns: AtomicU64,
    /// Longest uninterrupted wait, in nanoseconds.
    pub pool_wait_ns_max: AtomicU64,
    /// Longest turn of the intake loop, without its wait, in nanoseconds.
    pub turn_ns_max: AtomicU64,
    /// Time in which the intake was idle, in nanoseconds.
    pub idle_ns: AtomicU64,
    /// Bytes handed to the writer of each volume: whole blocks.
    pub placed_bytes: Vec<AtomicU64>,
}

impl IntakeCounters {
    /// All zero.
    pub fn new(volumes: usize) -> Self {
        Self {
            received_events: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            gap_events: Default::default(),
            connections: AtomicU64::new(0),
            pool_bytes_used: AtomicU64::new(0),
            pool_bytes_used_max: AtomicU64::new(0),
            pool_wait_ns: AtomicU64::new(0),
            pool_wait_ns_max: AtomicU64::new(0),
            turn_ns_max: AtomicU64::new(0),
            idle_ns: AtomicU64::new(0),
            placed_bytes: (0..volumes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Events missing so far, by cause, without the causes that have none.
    pub fn gap_events_by_cause(&self) -> BTreeMap<LossCause, u64> {
        let counts = LossCause::ALL.iter().zip(&self.gap_events).map(|(&cause, n)| (cause, n.load(Relaxed)));
        counts.filter(|(_, events)| *events > 0).collect()
    }

    /// Events missing so far.
    pub fn gap_events(&self) -> u64 {
        self.gap_events.iter().map(|events| events.load(Relaxed)).saturating_sum()
    }

    /// Counts missing events.
    pub(crate) fn add_gap(&self, cause: LossCause, events: u64) {
        add(&self.gap_events[cause as usize], events);
    }

    /// Takes back missing events, which another intake counts from now on.
    pub(crate) fn remove_gap(&self, cause: LossCause, events: u64) {
        let counter = &self.gap_events[cause as usize];
        counter.store(counter.load(Relaxed).saturating_sub(events), Relaxed);
    }

    /// Moves missing events from the unknown cause to `cause`.
    pub(crate) fn explain_gap(&self, cause: LossCause, events: u64) {
        self.remove_gap(LossCause::SequenceGap, events);
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
#[repr(align(128))]
pub struct VolumeCounters {
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
    /// Longest write of a block or an end mark from submission to confirmation, in nanoseconds.
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
    /// For each intake, its gap entries in the journal that are on stable storage.
    pub gaps_durable: Vec<AtomicU64>,
    /// Reason why it was taken out of rotation for good.
    pub failure: OnceLock<String>,
    /// First failure of its journal or of sealing a segment.
    pub trouble: OnceLock<String>,
}

/// Counters of one reducer thread.
#[derive(Debug, Default)]
#[repr(align(128))]
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

/// How far a detector is that the recorder connects to.
#[derive(Debug, Default)]
pub struct SourceProgress {
    /// Whether it is connected, so that what it sends from now on arrives.
    pub is_ready: AtomicBool,
    /// Whether the start of a series has arrived in this recording.
    pub has_series: AtomicBool,
    /// Whether the recorder has disconnected from it for good, after an error in its data.
    pub has_failed: AtomicBool,
}

/// All counters of one recording.
#[derive(Debug, Default)]
pub struct Counters {
    /// One per intake thread.
    pub intakes: Vec<IntakeCounters>,
    /// One per volume.
    pub volumes: Vec<VolumeCounters>,
    /// One per reducer thread.
    pub reducers: Vec<ReducerCounters>,
    /// One per stream.
    pub streams: StreamTable,
    /// One per source that the recorder receives from; only detectors with series have progress.
    pub sources: Vec<SourceProgress>,
    /// Recording that the first drain said it sends.
    pub sent: OnceLock<SentRecording>,
    /// A client continued a stream whose first events another recorder has.
    pub continues: AtomicBool,
    /// Data that arrived and are not recorded.
    pub rejections: Mutex<Rejections>,
    /// Warnings for the log that were not taken yet.
    pub warnings: Mutex<Vec<String>>,
    /// What detectors say about themselves, by name.
    pub detectors: Mutex<BTreeMap<String, String>>,
}

impl Counters {
    pub(crate) fn new(intakes: usize, volumes: usize, reducers: usize) -> Self {
        let gaps_durable = || (0..intakes).map(|_| AtomicU64::new(0)).collect();
        let volume = |_| VolumeCounters { gaps_durable: gaps_durable(), ..VolumeCounters::default() };
        Self {
            intakes: (0..intakes).map(|_| IntakeCounters::new(volumes)).collect(),
            volumes: (0..volumes).map(volume).collect(),
            reducers: (0..reducers).map(|_| ReducerCounters::default()).collect(),
            streams: StreamTable::default(),
            sources: Vec::new(),
            sent: OnceLock::new(),
            continues: AtomicBool::new(false),
            rejections: Mutex::default(),
            warnings: Mutex::default(),
            detectors: Mutex::default(),
        }
    }

    /// The same, with the progress of `sources` detectors.
    pub(crate) fn with_sources(self, sources: usize) -> Self {
        Self { sources: (0..sources).map(|_| SourceProgress::default()).collect(), ..self }
    }

    /// Adds what a detector says about itself.
    pub(crate) fn add_metadata(&self, metadata: BTreeMap<String, String>) {
        let mut entries = self.detectors.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in metadata {
            if entries.len() < DETECTOR_ENTRIES_MAX || entries.contains_key(&name) {
                entries.insert(name, value);
            }
        }
    }

    /// Enters data that are not recorded. Warns of the first of them, and returns their row.
    pub(crate) fn reject(&self, source: &str, rejection: &Rejection) -> Option<Rejected> {
        let mut rejections = self.rejections.lock().unwrap_or_else(PoisonError::into_inner);
        let new = rejections.add(source, rejection)?;
        drop(rejections);
        self.warn(new.to_string());
        Some(new)
    }

    /// Enters data that were rejected where the client got its events from. Warns of them, and returns
    /// their row.
    pub(crate) fn copy_rejected(&self, row: &Rejected) -> Option<Rejected> {
        let mut rejections = self.rejections.lock().unwrap_or_else(PoisonError::into_inner);
        let new = rejections.raise(row)?;
        drop(rejections);
        self.warn(new.to_string());
        Some(new)
    }

    /// Data that arrived and are not recorded, so far.
    pub fn rejected(&self) -> Vec<Rejected> {
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner).rows()
    }

    /// Adds a warning for the log.
    pub(crate) fn warn(&self, what: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            warnings.push(what);
        }
    }

    /// Takes the warnings for the log.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What detectors have said about themselves.
    pub(crate) fn metadata(&self) -> BTreeMap<String, String> {
        self.detectors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sum(&self, counter: impl Fn(&IntakeCounters) -> &AtomicU64) -> u64 {
        self.intakes.iter().map(|intake| counter(intake).load(Relaxed)).saturating_sum()
    }

    fn max(&self, counter: impl Fn(&IntakeCounters) -> &AtomicU64) -> u64 {
        self.intakes.iter().map(|intake| counter(intake).load(Relaxed)).max().unwrap_or(0)
    }

    /// Events received whole and in order, by all intakes.
    pub fn received_events(&self) -> u64 {
        self.sum(|intake| &intake.received_events)
    }

    /// Payload bytes of those.
    pub fn received_bytes(&self) -> u64 {
        self.sum(|intake| &intake.received_bytes)
    }

    /// Open connections.
    pub fn connections(&self) -> u64 {
        self.sum(|intake| &intake.connections)
    }

    /// Events missing so far.
    pub fn gap_events(&self) -> u64 {
        self.intakes.iter().map(IntakeCounters::gap_events).saturating_sum()
    }

    /// Events missing so far, by cause, without the causes that have none.
    pub fn gap_events_by_cause(&self) -> BTreeMap<LossCause, u64> {
        let mut all = BTreeMap::new();
        for (cause, events) in self.intakes.iter().flat_map(IntakeCounters::gap_events_by_cause) {
            *all.entry(cause).or_insert(0) += events;
        }
        all
    }

    /// Bytes of the pool in use, over all intakes.
    pub fn pool_bytes_used(&self) -> u64 {
        self.sum(|intake| &intake.pool_bytes_used)
    }

    /// Sum of what each intake had in use at most, in bytes.
    pub fn pool_bytes_used_max(&self) -> u64 {
        self.sum(|intake| &intake.pool_bytes_used_max)
    }

    /// Time in which at least one connection waited for a free block, at the intake where that was longest,
    /// in nanoseconds.
    pub fn pool_wait_ns(&self) -> u64 {
        self.max(|intake| &intake.pool_wait_ns)
    }

    /// Idle time of the busiest intake, in nanoseconds.
    pub fn intake_idle_ns(&self) -> u64 {
        self.intakes.iter().map(|intake| intake.idle_ns.load(Relaxed)).min().unwrap_or(0)
    }

    /// Bytes handed to the writer of a volume: whole blocks.
    pub fn placed_bytes(&self, volume: usize) -> u64 {
        self.intakes.iter().map(|intake| intake.placed_bytes[volume].load(Relaxed)).saturating_sum()
    }

    /// Payload bytes confirmed by the kernel, over all volumes.
    pub fn written_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.written_payload_bytes.load(Relaxed)).saturating_sum()
    }

    /// Events confirmed by the kernel, over all volumes.
    pub fn written_events(&self) -> u64 {
        self.volumes.iter().map(|v| v.written_events.load(Relaxed)).saturating_sum()
    }

    /// Payload bytes on stable storage, over all volumes.
    pub fn durable_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.durable_payload_bytes.load(Relaxed)).saturating_sum()
    }

    /// Payload bytes on stable storage as stored, over all volumes.
    pub fn stored_payload_bytes(&self) -> u64 {
        self.volumes.iter().map(|v| v.stored_payload_bytes.load(Relaxed)).saturating_sum()
    }

    /// Longest stall of every stage so far.
    pub fn stalls(&self) -> Stalls {
        let volume = |v: &VolumeCounters| VolumeStalls {
            segment_ns: v.segment_wait_ns_max.load(Relaxed),
            write_ns: v.write_ns_max.load(Relaxed),
            flush_ns: v.sync_ns_max.load(Relaxed),
        };
        Stalls {
            intake_ns: self.max(|intake| &intake.turn_ns_max),
            pool_ns: self.max(|intake| &intake.pool_wait_ns_max),
            volumes: self.volumes.iter().map(volume).collect(),
        }
    }

    /// Events on stable storage, over all volumes.
    pub fn durable_events(&self) -> u64 {
        self.volumes.iter().map(|v| v.durable_events.load(Relaxed)).saturating_sum()
    }
}

/// Adds to a counter with a single writer, the calling thread.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).saturating_add(amount), Relaxed);
}

/// Raises a counter with a single writer, the calling thread.
pub(crate) fn raise(counter: &AtomicU64, value: u64) {
    if value > counter.load(Relaxed) {
        counter.store(value, Relaxed);
    }
}
