//! What a trace says of itself: where it came from, what its figures mean, and what was put right in it.
use serde::{Deserialize, Serialize};

use super::format::Format;

/// What a format's offsets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Sectors of 512 bytes.
    Sectors,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Bytes in one of it.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Sectors => 512,
            Self::Bytes => 1,
        }
    }

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sectors => "sectors",
            Self::Bytes => "bytes",
        }
    }
}

/// Where in the machine requests were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Calls of a program, above the page cache and the file system; also what keepup records of itself.
    File,
    /// Requests that enter the block layer's queue.
    Block,
    /// Requests as the device, a controller or a virtual disk gets them.
    Device,
    /// The source does not say.
    Unknown,
}

impl Level {
    /// What people read.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "above the file system",
            Self::Block => "at the block layer's queue",
            Self::Device => "at the device",
            Self::Unknown => "not known",
        }
    }
}

/// What the times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceClock {
    /// Each request has its time of issue.
    Issue,
    /// Each request had its time of completion; that of issue was computed.
    Completion,
    /// There are none: the order is all that is known.
    None,
}

/// How a trace came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Origin {
    /// Recorded from something that ran.
    Captured,
    /// Made up.
    Synthetic {
        /// Which personality.
        personality: String,
        /// The seed of all its chances.
        seed: u64,
    },
}

impl Origin {
    /// What people read.
    pub fn told(&self) -> String {
        match self {
            Self::Captured => "captured".into(),
            Self::Synthetic { personality, seed } => format!("synthetic: {personality}, seed {seed}"),
        }
    }
}

/// What is known of a trace before its first request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHeader {
    /// Format that it was in when it was first read.
    pub format: Format,
    /// Names of the files that it was in, without their directories.
    pub source: Vec<String>,
    /// What offsets counted there.
    pub unit: Unit,
    /// What the times are.
    pub clock: TraceClock,
    /// The shortest time that its clock tells apart, ns.
    pub resolution_ns: u64,
    /// Where in the machine requests were seen.
    pub level: Level,
    /// How it came to be.
    pub origin: Origin,
}

/// One device, or file, that requests went to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceDevice {
    /// What the source calls it.
    pub name: String,
    /// Its size in bytes, where the source tells.
    pub bytes: Option<u64>,
}

/// What was put right or left out while a trace was read, in requests unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corrections {
    /// Came after a later one and were put into their place.
    pub reordered: u64,
    /// Have the same time as the one before; nothing was changed.
    pub duplicate_times: u64,
    /// Had a negative time; all times were moved up.
    pub negative_times: u64,
    /// Left out: their time is weeks away from those around them.
    pub absurd_times: u64,
    /// Left out: they have no size.
    pub zero_sizes: u64,
    /// Left out: longer than 4 GiB, or they end beyond 2^63 bytes.
    pub too_large: u64,
    /// Left out: they neither read, write, flush nor discard.
    pub other_operations: u64,
    /// Left out: they are of another device than the one that was asked for.
    pub other_devices: u64,
    /// Events or lines that are not requests: other stages, opening of files, summaries.
    pub other_events: u64,
    /// Completions before their issue; the request counts as one without.
    pub early_completions: u64,
    /// Completions without a request that they belong to.
    pub lone_completions: u64,
    /// Requests without a completion, in a trace that has completions.
    pub without_completion: u64,
    /// 1 when the last line has no end: it may have lost digits.
    pub unfinished_lines: u64,
    /// Failed when they were recorded; they count as any other.
    #[serde(default)]
    pub failed: u64,
    /// Not in the trace: it could not be written as fast as they came, or had 65 535 files already.
    #[serde(default)]
    pub not_kept: u64,
}

impl Corrections {
    /// Each count with what it means, those that are not 0.
    pub fn told(&self) -> Vec<(u64, &'static str)> {
        let all = [
            (self.reordered, "requests came after a later one: sorted"),
            (self.duplicate_times, "requests have the time of the one before: kept"),
            (self.negative_times, "requests had a negative time: all times were moved up"),
            (self.absurd_times, "requests have a time weeks away from those around them: LEFT OUT"),
            (self.zero_sizes, "requests have no size: LEFT OUT"),
            (self.too_large, "requests are longer than 4 GiB or end beyond 2^63 bytes: LEFT OUT"),
            (self.other_operations, "requests neither read, write, flush nor discard: LEFT OUT"),
            (self.other_devices, "requests are of other devices: left out as asked"),
            (self.other_events, "events or lines are not requests: passed over"),
            (self.early_completions, "completions lie before their request: not used"),
            (self.lone_completions, "completions belong to no request that was seen"),
            (self.without_completion, "requests have no completion"),
            (self.unfinished_lines, "last line has no end: the file may have been cut off there"),
            (self.failed, "requests failed when they were recorded: kept"),
            (self.not_kept, "requests came too fast to be recorded, or to more than 65 535 files: LEFT OUT"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).collect()
    }

    /// Requests that were left out because something was wrong with them.
    pub fn dropped(&self) -> u64 {
        self.absurd_times + self.zero_sizes + self.too_large + self.other_operations + self.not_kept
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.reordered, other.reordered),
            (&mut self.duplicate_times, other.duplicate_times),
            (&mut self.negative_times, other.negative_times),
            (&mut self.absurd_times, other.absurd_times),
            (&mut self.zero_sizes, other.zero_sizes),
            (&mut self.too_large, other.too_large),
            (&mut self.other_operations, other.other_operations),
            (&mut self.other_devices, other.other_devices),
            (&mut self.other_events, other.other_events),
            (&mut self.early_completions, other.early_completions),
            (&mut self.lone_completions, other.lone_completions),
            (&mut self.without_completion, other.without_completion),
            (&mut self.unfinished_lines, other.unfinished_lines),
            (&mut self.failed, other.failed),
            (&mut self.not_kept, other.not_kept),
        ];
        for (sum, count) in pairs {
            *sum = sum.saturating_add(count);
        }
    }
}
