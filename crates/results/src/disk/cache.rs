//! What `keepup disk cache` found: how much of what was written the page cache keeps.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much may be written until the first of it is no longer in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheFinding {
    /// Bytes of each file.
    pub file_bytes: u64,
    /// Largest total behind which the first file was still in memory, that file included; 0 when there was
    /// none. The size lies between this and `evicted_bytes`.
    pub cached_bytes: u64,
    /// Smallest total behind which it was not; `None` when none was found.
    pub evicted_bytes: Option<u64>,
    /// Why there is no answer, when there is none: the limit came first, or a read from the disk is as fast
    /// as one from memory.
    pub unanswered: Option<String>,
    /// Most that would have been written at a time, in bytes.
    pub limit_bytes: u64,
    /// What set that limit.
    pub limit: String,
    /// How fast a file is read that was written just before, bytes per second.
    pub cached_bytes_per_second: Option<f64>,
    /// How fast one is read that was taken out of memory before, bytes per second.
    pub cold_bytes_per_second: Option<f64>,
    /// Every total that was tried, in order.
    pub steps: Vec<CacheStep>,
    /// What the kernel said before the first file.
    pub before: Option<CacheMemory>,
}

/// One total that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheStep {
    /// Files written, the first included.
    pub files: u64,
    /// Their bytes together.
    pub total_bytes: u64,
    /// How long the first took to read back, seconds.
    pub seconds: f64,
    /// Share of the first file that came from memory, from 0 to 1, by that time.
    pub cached_share: f64,
    /// The same as the kernel has it, looked up before the file was read; `None` where it does not tell.
    pub resident_share: Option<f64>,
    /// What the kernel said at that moment.
    pub memory: Option<CacheMemory>,
}

/// What the kernel says of main memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheMemory {
    /// All of it.
    pub total_bytes: u64,
    /// What can be had without swapping.
    pub available_bytes: u64,
    /// File data in it.
    pub cached_bytes: u64,
}

impl CacheStep {
    /// Whether most of the first file was still in memory, by the time that it took.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.cached_share >= 0.5
    }

    /// Whether the kernel says otherwise.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.resident_share.is_some_and(|share| (share >= 0.5) != self.is_cached())
    }
}
