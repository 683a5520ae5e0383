//! Settings of a recorder, and limits that hold whatever a client sends.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_peer::Endpoint;
use keepup_plan::reduction::{Reduction, check_apart};
use keepup_recording::layout::{MESSAGE_HEADER, SECTOR};
use keepup_recording::retention::{Keep, KeepLimit};
use keepup_recording::seal::SegmentIndex;
use keepup_results::printable::is_printable;
use keepup_sources::{MORE_IDS_END, MORE_IDS_MIN, STREAMS_MAX, SourceAddress};
pub use keepup_sys::engine::EngineChoice;
use keepup_sys::pool::{GRAIN_BYTES, HUGE_PAGE_BYTES, Pages, ReusableMemory};

use crate::after_seal::AfterSeal;
use crate::assignment::Assignment;
use crate::series::SeriesConnections;
use crate::tap::Tap;
use crate::{PlacementKind, RecorderError};

/// Default number of connections served at a time.
pub const CONNECTIONS_MAX: usize = 1024;
/// Default size of the largest accepted event, in bytes.
pub const EVENT_BYTES_MAX: u64 = 512 << 20;
/// Smallest size of a block for several events, however slow its stream is and however many share the pool,
/// in bytes of messages.
pub const BLOCK_BYTES_MIN: usize = 16 << 10;
/// The part of the pool that open blocks may take is its size divided by this number: one block of each
/// stream is open, one is in flight, and half is free for stalls.
pub(crate) const OPEN_DIVISOR: usize = 4;

/// Most intake threads.
const INTAKE_THREADS_MAX: usize = 64;

/// Most reducer threads.
const REDUCE_THREADS_MAX: usize = 256;

/// Least number of segments per volume for a recording with a retention limit: the one being
/// written, the next one, and two sealed ones.
const KEPT_SEGMENTS_MIN: u64 = 4;

/// The kernel sends at most one keepalive probe per second.
const PEER_TIMEOUT_MIN: Duration = Duration::from_secs(1);
const PEER_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// Destination of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One directory per disk; the recording is a subdirectory of each.
    Volumes(Vec<PathBuf>),
    /// Blocks are sealed, checksummed and dropped: measures the path without the disk.
    Null,
}

/// Settings of one recording.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// Address to listen on: the first one that works; port 0 lets the kernel choose.
    pub listen: Endpoint,
    /// Destination of blocks.
    pub target: Target,
    /// Name of the recording's directory on every volume.
    pub name: String,
    /// Rule that chooses the volume of a stream's next block.
    pub placement: PlacementKind,
    /// Memory for blocks, in bytes: all memory that the recorder uses for events.
    pub pool_bytes: usize,
    /// Where that memory comes from: recordings that follow one another with clones of these settings use the
    /// same.
    pub pool_memory: ReusableMemory,
    /// When it gets its pages.
    pub pool_pages: Pages,
    /// Events are packed into blocks of at most about this many bytes, fewer where their stream is slow or
    /// many share the pool.
    pub block_bytes: usize,
    /// Size of a segment file, in bytes; with `segment_auto` that of the smallest.
    pub segment_bytes: u64,
    /// Segments may grow up to 16 times, so that one lasts about 4 s. Not with a retention limit.
    pub segment_auto: bool,
    /// Largest event accepted, in bytes.
    pub event_bytes_max: u64,
    /// Longest time that an event waits in a block that is not full.
    pub seal_after: Duration,
    /// Interval between flushes of a volume to stable storage.
    pub sync_every: Duration,
    /// Reductions applied to events before they are written.
    pub reductions: Vec<Reduction>,
    /// Number of reducer threads.
    pub reduce_threads: usize,
    /// Writes in flight per volume; more when blocks are smaller than `block_bytes`.
    pub depth: usize,
    /// I/O engine that writes blocks.
    pub engine: EngineChoice,
    /// Number of intake threads. A connection, with all its streams, is served by one of them; each has an
    /// equal part of the pool.
    pub intake_threads: usize,
    /// CPUs of the recorder's threads; empty means not pinned.
    pub cpus: Vec<usize>,
    /// CPUs of the intake threads instead of `cpus`, if not empty. With at least as many CPUs as threads,
    /// each thread has its own.
    pub intake_cpus: Vec<usize>,
    /// CPUs of the writer threads instead of `cpus`, if not empty.
    pub writer_cpus: Vec<usize>,
    /// Retention limit; `None` keeps the whole recording.
    pub keep: Option<Keep>,
    /// Command that runs after each sealed segment.
    pub after_seal: Option<AfterSeal>,
    /// A volume is taken out of rotation when it has not completed a write for this long while
    /// another volume has.
    pub slow_after: Duration,
    /// Connections served at a time.
    pub connections_max: usize,
    /// Detectors that the recorder connects to. If there are any, it accepts no connections.
    pub sources: Vec<SourceAddress>,
    /// Connections to detectors that continue with the next run; `None`: a run ends them.
    pub series: Option<Arc<SeriesConnections>>,
    /// Names of streams of one document each, which the owner sends with [`Recorder::document_senders`]. The
    /// recording does not end before that; only with `sources`.
    ///
    /// [`Recorder::document_senders`]: crate::Recorder::document_senders
    pub documents: Vec<String>,
    /// The only address from which connections are accepted; `None`: any.
    pub only_from: Option<IpAddr>,
    /// A connection that has not sent hello within this time is closed.
    pub hello_timeout: Duration,
    /// A connection is closed when its peer does not answer for this long. One that sends nothing
    /// for this long may be replaced by another connection for the same streams.
    pub peer_timeout: Duration,
    /// Memory for blocks that are written and not yet flushed, in bytes; they are written to
    /// another volume when their own fails. They use only free pool memory. `None` means a
    /// quarter of the pool.
    pub unflushed_bytes: Option<usize>,
    /// Keep running after the last connection ended (until stopped).
    pub stay: bool,
    /// Names of clients or streams that must end before the recording does. Without any, the recording waits
    /// for every stream whose connection was lost before its end.
    pub expect: Vec<String>,
    /// Longest wait for clients that are expected or were lost, after the last connection ended; `None`:
    /// until stopped.
    pub return_timeout: Option<Duration>,
    /// Streams of this recorder in a fleet; `None`: it takes all streams, at any time.
    pub assignment: Option<Arc<dyn Assignment>>,
    /// Where copies of events for live subscribers go.
    pub tap: Option<Arc<Tap>>,
    /// Receive rate limit, in bytes per second: a deliberately slow sink.
    pub rate_max: Option<f64>,
    /// Run number, where runs are numbered.
    pub run: Option<u64>,
    /// Metadata stored with the recording, such as sample or operator.
    pub metadata: BTreeMap<String, String>,
    /// Copy run number and metadata from the first drain that names its recording.
    pub is_copy: bool,
    /// Packets that arrive before [`Recorder::open`](crate::Recorder::open) are recorded, too.
    pub records_early: bool,
}

impl RecorderConfig {
    /// Defaults for a recording to `target` under `name`, listening on `listen`.
    pub fn new(listen: Endpoint, target: Target, name: impl Into<String>) -> Self {
        Self {
            listen,
            target,
            name: name.into(),
            placement: PlacementKind::Free,
            pool_bytes: 512 << 20,
            pool_memory: ReusableMemory::default(),
            pool_pages: Pages::default(),
            block_bytes: 1 << 20,
            segment_bytes: 1 << 30,
            segment_auto: false,
            event_bytes_max: EVENT_BYTES_MAX,
            seal_after: Duration::from_millis(200),
            sync_every: Duration::from_millis(500),
            reductions: Vec::new(),
            reduce_threads: 1,
            depth: 8,
            engine: EngineChoice::Auto,
            intake_threads: 1,
            cpus: Vec::new(),
            intake_cpus: Vec::new(),
            writer_cpus: Vec::new(),
            connections_max: CONNECTIONS_MAX,
            sources: Vec::new(),
            series: None,
            documents: Vec::new(),
            only_from: None,
            keep: None,
            after_seal: None,
            slow_after: Duration::from_secs(5),
            hello_timeout: Duration::from_secs(10),
            peer_timeout: Duration::from_secs(5),
            unflushed_bytes: None,
            stay: false,
            expect: Vec::new(),
            return_timeout: None,
            assignment: None,
            tap: None,
            rate_max: None,
            run: None,
            metadata: BTreeMap::new(),
            is_copy: false,
            records_early: true,
        }
    }

    /// Number of volumes; the null target counts as one.
    pub fn volumes(&self) -> usize {
        match &self.target {
            Target::Volumes(volumes) => volumes.len(),
            Target::Null => 1,
        }
    }

    /// Number of reducer threads: 0 without reductions, and otherwise at least one for each intake.
    pub fn reducers(&self) -> usize {
        if self.reductions.is_empty() { 0 } else { self.reduce_threads.max(self.intake_threads) }
    }

    /// Whether segments grow with the rate.
    pub fn segment_grows(&self) -> bool {
        self.segment_auto && self.keep.is_none()
    }

    /// CPUs of an intake thread; empty means not pinned.
    pub fn cpus_of_intake(&self, index: usize) -> &[usize] {
        let (all, threads) = (&self.intake_cpus, self.intake_threads.max(1));
        if all.is_empty() {
            return &self.cpus;
        }
        if all.len() < threads {
            return all;
        }
        &all[index * all.len() / threads..(index + 1) * all.len() / threads]
    }

    /// CPUs of the writer threads; empty means not pinned.
    pub fn cpus_of_writers(&self) -> &[usize] {
        if self.writer_cpus.is_empty() { &self.cpus } else { &self.writer_cpus }
    }

    /// Whether threads run on given CPUs only.
    pub fn is_pinned(&self) -> bool {
        [&self.cpus, &self.intake_cpus, &self.writer_cpus].iter().any(|cpus| !cpus.is_empty())
    }

    /// Pool memory of one intake, in bytes.
    pub fn pool_bytes_per_intake(&self) -> usize {
        self.pool_bytes / self.intake_threads.max(1)
    }

    /// Refuses invalid settings.
    pub fn validate(&self) -> Result<(), RecorderError> {
        let refuse = |what: Cause| Err(RecorderError::Config { what });
        if self.volumes() == 0 {
            return refuse(
                Cause::new("cannot record: no volume given").with_hint("--volume DIR, once for each disk"),
            );
        }
        if let Target::Volumes(volumes) = &self.target
            && let Some(volume) = volumes.iter().find(|volume| volume.to_str().is_none())
        {
            let what = format!("cannot use volume {}: its path is not UTF-8", volume.display());
            return refuse(Cause::new(what).with_hint("rename the directory"));
        }
        let is_hidden = self.name.is_empty() || self.name.starts_with('.');
        if is_hidden || self.name.contains('/') || !self.name.chars().all(is_printable) {
            let what = format!("cannot name a recording {:?}: it becomes a directory", self.name);
            return refuse(
                Cause::new(what).with_hint("--name with visible characters, without / and a dot in front"),
            );
        }
        let more = self.sources.iter().map(|source| source.streams_max().saturating_sub(STREAMS_MAX));
        if self.sources.len() > 1
            && more.fold(0, usize::saturating_add) > (MORE_IDS_END - MORE_IDS_MIN) as usize
        {
            let what = "cannot record these sources: they may have more streams than a recording has ids for";
            return refuse(Cause::new(what).with_hint("a smaller streams= in their addresses"));
        }
        let threads = self.intake_threads;
        if !(1..=INTAKE_THREADS_MAX).contains(&threads) {
            let what =
                format!("cannot start {threads} intake threads: 1 to {INTAKE_THREADS_MAX} are possible");
            return refuse(Cause::new(what).with_hint("--intake-threads 4"));
        }
        if self.block_bytes < SECTOR
            || self.pool_bytes_per_intake() < 4 * block_bytes_needed(self.block_bytes)
        {
            let (pool, block) = (self.pool_bytes, self.block_bytes);
            let each = if threads > 1 { " for each intake thread" } else { "" };
            let what =
                format!("cannot use a pool of {pool} bytes: four blocks of {block} bytes{each} do not fit");
            let fewer = if threads > 1 { ", or fewer --intake-threads" } else { "" };
            return refuse(
                Cause::new(what).with_hint(format!("a larger --pool or a smaller --block{fewer}")),
            );
        }
        if self.segment_bytes < 4 * block_bytes_needed(self.block_bytes) as u64 {
            let (segment, block) = (self.segment_bytes, self.block_bytes);
            let what =
                format!("cannot use a segment of {segment} bytes: four blocks of {block} bytes do not fit");
            return refuse(Cause::new(what).with_hint("a larger --segment"));
        }
        if let Some(Keep { limit: KeepLimit::Bytes(bytes), .. }) = self.keep
            && bytes / (self.volumes() as u64) < KEPT_SEGMENTS_MIN * self.segment_bytes
        {
            let what = format!(
                "cannot keep {bytes} bytes: less than {KEPT_SEGMENTS_MIN} segments of {} bytes per volume",
                self.segment_bytes
            );
            return refuse(Cause::new(what).with_hint("a smaller --segment"));
        }
        if !(PEER_TIMEOUT_MIN..=PEER_TIMEOUT_MAX).contains(&self.peer_timeout) {
            let seconds = self.peer_timeout.as_secs_f64();
            let what = format!("cannot use a peer timeout of {seconds} s: it must be between 1 s and 1 h");
            return refuse(Cause::new(what).with_hint("--peer-timeout '5 s'"));
        }
        check_apart(&self.reductions).map_err(|what| RecorderError::Config { what })?;
        if !(1..=REDUCE_THREADS_MAX).contains(&self.reduce_threads) {
            let threads = self.reduce_threads;
            return refuse(
                format!("cannot use {threads} reducer threads: 1 to {REDUCE_THREADS_MAX} are possible")
                    .into(),
            );
        }
        if !(1..=1024).contains(&self.depth) {
            return refuse(format!("cannot use a depth of {}: 1 to 1024 are possible", self.depth).into());
        }
        Ok(())
    }

    /// Most bytes of blocks kept until they are flushed. The null target has no flush.
    pub fn unflushed_bytes_max(&self) -> usize {
        match self.target {
            Target::Volumes(_) => self.unflushed_bytes.unwrap_or(self.pool_bytes / 4).min(self.pool_bytes),
            Target::Null => 0,
        }
    }

    /// Largest event that the limit, the pool and a segment allow, in bytes.
    pub fn event_bytes_max(&self) -> u64 {
        let pool = (self.pool_bytes_per_intake() / 2).min(keepup_sys::pool::REGION_BYTES);
        let segment = self.segment_bytes.saturating_sub(SegmentIndex::default().tail_bytes_max(1));
        let capacity = segment.min(pool as u64).saturating_sub((4 * SECTOR + GRAIN_BYTES) as u64);
        self.event_bytes_max.min(capacity)
    }
}

/// Pool memory that an intake needs for `streams` streams, in bytes: a smallest block of each is open. Blocks
/// have at most `block_bytes`.
pub fn pool_bytes_needed(streams: usize, block_bytes: usize) -> usize {
    let bytes = streams.saturating_mul(OPEN_DIVISOR * block_bytes_needed(BLOCK_BYTES_MIN.min(block_bytes)));
    bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).unwrap_or(bytes)
}

/// Pool memory that a block with `payload_bytes` of messages needs: first sector, messages,
/// padding.
pub fn block_bytes_needed(payload_bytes: usize) -> usize {
    (SECTOR + payload_bytes + MESSAGE_HEADER + 2 * SECTOR).next_multiple_of(GRAIN_BYTES)
}
