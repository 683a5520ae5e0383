//! What a recorder is told before it starts, with the limits that hold whatever a client sends.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_peer::Endpoint;
use keepup_plan::reduction::{Reduction, check_apart};
use keepup_recording::layout::{MESSAGE_HEADER, SECTOR};
use keepup_recording::retention::{Keep, KeepLimit};
use keepup_recording::seal::SegmentIndex;
pub use keepup_sys::engine::EngineChoice;
use keepup_sys::pool::GRAIN_BYTES;

use crate::tap::Tap;
use crate::{PlacementKind, RecorderError};

/// Connections that are served at a time unless told otherwise.
pub const CONNECTIONS_MAX: usize = 1024;
/// Largest event accepted unless told otherwise, in bytes.
pub const EVENT_BYTES_MAX: u64 = 512 << 20;
/// Block size below which many streams do not push it, in bytes.
pub const BLOCK_BYTES_MIN: usize = 64 << 10;

/// Most threads that reduce.
const REDUCE_THREADS_MAX: usize = 256;

/// Segments that a recording that is kept in part has room for on each volume, at least: the one being
/// written, the next one, and two that are sealed.
const KEPT_SEGMENTS_MIN: u64 = 4;

/// Keepalive probes are sent at most once per second.
const PEER_TIMEOUT_MIN: Duration = Duration::from_secs(1);
const PEER_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// Where blocks go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One directory per disk; the recording is a directory of its own below each.
    Volumes(Vec<PathBuf>),
    /// Blocks are sealed, checksummed and dropped: the path without the disk.
    Null,
}

/// Settings of one recording.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// Where to listen: the first address that works; port 0 lets the kernel choose.
    pub listen: Endpoint,
    /// Where to record to.
    pub target: Target,
    /// Name of the recording's directory on every volume.
    pub name: String,
    /// Which volume a stream's next block goes to.
    pub placement: PlacementKind,
    /// Memory for blocks, in bytes: all that the recorder uses for events.
    pub pool_bytes: usize,
    /// Events are packed into blocks of about this many bytes.
    pub block_bytes: usize,
    /// Size of a segment file, in bytes.
    pub segment_bytes: u64,
    /// Largest event accepted, in bytes.
    pub event_bytes_max: u64,
    /// No event waits longer than this in a block that is not full.
    pub seal_after: Duration,
    /// Pause between two flushes of a volume to stable storage.
    pub sync_every: Duration,
    /// What is done to events before they are written.
    pub reductions: Vec<Reduction>,
    /// Threads that do it.
    pub reduce_threads: usize,
    /// Blocks under way per volume; more of them where they are smaller than `block_bytes`.
    pub depth: usize,
    /// How blocks are written.
    pub engine: EngineChoice,
    /// Processors of the intake and writer threads; empty leaves them free.
    pub cpus: Vec<usize>,
    /// How much of the recording is kept; all when nothing is said.
    pub keep: Option<Keep>,
    /// A volume that has owed an answer for so long is taken out of rotation until it has answered, when
    /// another one is quicker.
    pub slow_after: Duration,
    /// Connections served at a time.
    pub connections_max: usize,
    /// A connection that has not said hello by then is closed.
    pub hello_timeout: Duration,
    /// A peer that answers nothing for this long is gone, and its connection is closed; one that sends
    /// nothing for this long may be replaced by another connection for the same streams.
    pub peer_timeout: Duration,
    /// Memory for blocks that are written and not yet flushed, in bytes, taken from the pool while it has
    /// memory free: they are written again elsewhere when their volume fails. Nothing means a quarter of the
    /// pool.
    pub unflushed_bytes: Option<usize>,
    /// Go on after the last connection ended (until stopped).
    pub stay: bool,
    /// Where copies of events go, for those who only look.
    pub tap: Option<Arc<Tap>>,
    /// Receive no faster than this, in bytes per second: a slow sink on purpose.
    pub rate_max: Option<f64>,
    /// Number of the run, where runs are counted.
    pub run: Option<u64>,
    /// What the recording carries along, as sample or operator.
    pub metadata: BTreeMap<String, String>,
    /// Take run and metadata over from the first drain that says which recording it sends.
    pub is_copy: bool,
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
            block_bytes: 1 << 20,
            segment_bytes: 1 << 30,
            event_bytes_max: EVENT_BYTES_MAX,
            seal_after: Duration::from_millis(200),
            sync_every: Duration::from_millis(500),
            reductions: Vec::new(),
            reduce_threads: 1,
            depth: 8,
            engine: EngineChoice::Auto,
            cpus: Vec::new(),
            connections_max: CONNECTIONS_MAX,
            keep: None,
            slow_after: Duration::from_secs(5),
            hello_timeout: Duration::from_secs(10),
            peer_timeout: Duration::from_secs(5),
            unflushed_bytes: None,
            stay: false,
            tap: None,
            rate_max: None,
            run: None,
            metadata: BTreeMap::new(),
            is_copy: false,
        }
    }

    /// Number of volumes; the null target counts as one.
    pub fn volumes(&self) -> usize {
        match &self.target {
            Target::Volumes(volumes) => volumes.len(),
            Target::Null => 1,
        }
    }

    /// Threads that reduce: none when nothing is to be reduced.
    pub fn reducers(&self) -> usize {
        if self.reductions.is_empty() { 0 } else { self.reduce_threads }
    }

    /// Refuses settings that cannot work.
    pub fn validate(&self) -> Result<(), RecorderError> {
        let refuse = |what: String| Err(RecorderError::Config { what });
        if self.volumes() == 0 {
            return refuse("no volume given\nhint: --volume DIR, once for each disk".into());
        }
        if self.name.is_empty() || self.name.starts_with('.') || self.name.contains(['/', '\0', '\n']) {
            return refuse(format!("{:?} cannot name a recording: it becomes a directory", self.name));
        }
        if self.block_bytes < SECTOR || self.pool_bytes < 4 * block_room(self.block_bytes) {
            return refuse(format!(
                "a pool of {} bytes cannot hold four blocks of {} bytes\n\
                 hint: a larger --pool or a smaller --block",
                self.pool_bytes, self.block_bytes
            ));
        }
        if self.segment_bytes < 4 * block_room(self.block_bytes) as u64 {
            return refuse(format!(
                "a segment of {} bytes cannot hold four blocks of {} bytes\nhint: a larger --segment",
                self.segment_bytes, self.block_bytes
            ));
        }
        if let Some(Keep { limit: KeepLimit::Bytes(bytes), .. }) = self.keep
            && bytes / (self.volumes() as u64) < KEPT_SEGMENTS_MIN * self.segment_bytes
        {
            return refuse(format!(
                "--keep of {bytes} bytes is less than {KEPT_SEGMENTS_MIN} segments of {} bytes on each \
                 volume\nhint: a smaller --segment",
                self.segment_bytes
            ));
        }
        if !(PEER_TIMEOUT_MIN..=PEER_TIMEOUT_MAX).contains(&self.peer_timeout) {
            let seconds = self.peer_timeout.as_secs_f64();
            return refuse(format!(
                "cannot use a peer timeout of {seconds} s: it must be between 1 s and 1 h\n\
                 hint: --peer-timeout '5 s'"
            ));
        }
        check_apart(&self.reductions).map_err(|what| RecorderError::Config { what })?;
        if !(1..=REDUCE_THREADS_MAX).contains(&self.reduce_threads) {
            let threads = self.reduce_threads;
            return refuse(format!("{threads} threads that reduce are not 1 to {REDUCE_THREADS_MAX}"));
        }
        if !(1..=1024).contains(&self.depth) {
            return refuse(format!("a depth of {} is not between 1 and 1024", self.depth));
        }
        Ok(())
    }

    /// Most bytes of blocks that are kept until they are flushed. The null target has no flush.
    pub fn unflushed_bytes_max(&self) -> usize {
        match self.target {
            Target::Volumes(_) => self.unflushed_bytes.unwrap_or(self.pool_bytes / 4).min(self.pool_bytes),
            Target::Null => 0,
        }
    }

    /// Largest event that the limit, the pool and a segment allow, in bytes.
    pub fn event_bytes_max(&self) -> u64 {
        let pool = (self.pool_bytes / 2).min(keepup_sys::pool::REGION_BYTES);
        let segment = self.segment_bytes.saturating_sub(SegmentIndex::default().tail_bytes_max(1));
        let room = segment.min(pool as u64).saturating_sub((4 * SECTOR + GRAIN_BYTES) as u64);
        self.event_bytes_max.min(room)
    }
}

/// Pool memory that a block for `payload_bytes` of messages takes: first sector, messages, padding.
pub fn block_room(payload_bytes: usize) -> usize {
    (SECTOR + payload_bytes + MESSAGE_HEADER + 2 * SECTOR).next_multiple_of(GRAIN_BYTES)
}
