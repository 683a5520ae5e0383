//! Result of `keepup disk cache`: amount of written data that the page cache keeps.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Amount of data written until the first file is evicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheFinding {
    /// File size, bytes.
    pub file_bytes: u64,
    /// Largest total, first file included, after which the first file was still cached; 0 if none.
    /// The cache size is between this and `evicted_bytes`.
    pub cached_bytes: u64,
    /// Smallest total after which it was evicted; `None` if none was found.
    pub evicted_bytes: Option<u64>,
    /// Reason for a missing result: the limit was reached, or cached and uncached reads take the
    /// same time.
    pub unanswered: Option<String>,
    /// Maximum amount of data written at a time, bytes.
    pub limit_bytes: u64,
    /// Reason for that limit.
    pub limit: String,
    /// Read rate of a cached file, bytes per second.
    pub cached_bytes_per_second: Option<f64>,
    /// Read rate of an evicted file, bytes per second.
    pub cold_bytes_per_second: Option<f64>,
    /// All tried totals, in order.
    pub steps: Vec<CacheStep>,
    /// Memory counters of the kernel before the first file.
    pub before: Option<CacheMemory>,
}

/// One tried total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheStep {
    /// Number of files written, including the first.
    pub files: u64,
    /// Total size of the files.
    pub total_bytes: u64,
    /// Read time of the first file, seconds.
    pub seconds: f64,
    /// Cached share of the first file according to that time, 0 to 1.
    pub cached_share: f64,
    /// Cached share according to the kernel, queried before the read; `None` if unavailable.
    pub resident_share: Option<f64>,
    /// Memory counters of the kernel at that time.
    pub memory: Option<CacheMemory>,
}

/// Memory counters of the kernel, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheMemory {
    /// Total memory.
    pub total_bytes: u64,
    /// Available without swapping.
    pub available_bytes: u64,
    /// Page cache.
    pub cached_bytes: u64,
}

impl CacheStep {
    /// Whether most of the first file was cached, according to its read time.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.cached_share >= 0.5
    }

    /// Whether the kernel contradicts this.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.resident_share.is_some_and(|share| (share >= 0.5) != self.is_cached())
    }
}
