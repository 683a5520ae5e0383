//! Header and corrections of a trace: its format, its origin, the meaning of its numbers, what was changed.
use serde::{Deserialize, Serialize};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// keepup's native format.
    Native,
    /// fio's iolog, version 2.
    Iolog2,
    /// fio's iolog, version 3.
    Iolog3,
    /// blktrace's binary events.
    Blktrace,
    /// blkparse's default text.
    Blkparse,
    /// blkreplay's load file.
    Blkreplay,
    /// bcc's biosnoop.
    Biosnoop,
    /// MSR Cambridge.
    Msr,
    /// SPC and UMass.
    Spc,
    /// Alibaba 2020.
    Alibaba,
    /// MQSim's text.
    Mqsim,
    /// DiskSim's text.
    Disksim,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 12] = [
        Self::Native,
        Self::Iolog2,
        Self::Iolog3,
        Self::Blktrace,
        Self::Blkparse,
        Self::Blkreplay,
        Self::Biosnoop,
        Self::Msr,
        Self::Spc,
        Self::Alibaba,
        Self::Mqsim,
        Self::Disksim,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Iolog2 => "iolog2",
            Self::Iolog3 => "iolog3",
            Self::Blktrace => "blktrace",
            Self::Blkparse => "blkparse",
            Self::Blkreplay => "blkreplay",
            Self::Biosnoop => "biosnoop",
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Alibaba => "alibaba",
            Self::Mqsim => "mqsim",
            Self::Disksim => "disksim",
        }
    }
}

/// Unit of a format's offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Sectors of 512 bytes.
    Sectors,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Bytes per unit.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Sectors => 512,
            Self::Bytes => 1,
        }
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sectors => "sectors",
            Self::Bytes => "bytes",
        }
    }
}

/// Layer at which requests were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// System calls, above the page cache and the file system; also keepup's own captures.
    File,
    /// Queue of the block layer.
    Block,
    /// Device, controller or virtual disk.
    Device,
    /// Unknown.
    Unknown,
}

impl Level {
    /// Name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "above the file system",
            Self::Block => "at the block layer's queue",
            Self::Device => "at the device",
            Self::Unknown => "not known",
        }
    }
}

/// Meaning of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceClock {
    /// Issue times.
    Issue,
    /// Completion times in the source, from which issue times were computed.
    Completion,
    /// No times, only an order.
    None,
}

/// Origin of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Origin {
    /// Recorded from a running system.
    Captured,
    /// Generated.
    Synthetic {
        /// Personality.
        personality: String,
        /// Random seed.
        seed: u64,
    },
}

impl Origin {
    /// Description for users.
    pub fn describe(&self) -> String {
        match self {
            Self::Captured => "captured".into(),
            Self::Synthetic { personality, seed } => format!("synthetic: {personality}, seed {seed}"),
        }
    }
}

/// Header of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHeader {
    /// Format of the original file.
    pub format: Format,
    /// Names of the original files, without directories.
    pub source: Vec<String>,
    /// Unit of offsets in the original file.
    pub unit: Unit,
    /// Meaning of the times.
    pub clock: TraceClock,
    /// Resolution of the clock, ns.
    pub resolution_ns: u64,
    /// Layer at which requests were recorded.
    pub level: Level,
    /// Origin.
    pub origin: Origin,
}

/// A device or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceDevice {
    /// Name in the source.
    pub name: String,
    /// Size in bytes, if the source contains it.
    pub bytes: Option<u64>,
}

/// Counts of changes and omissions while a trace was read or captured, in requests unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corrections {
    /// Out of order; sorted.
    pub reordered: u64,
    /// Same time as the previous one; unchanged.
    pub duplicate_times: u64,
    /// Negative time; all times were shifted.
    pub negative_times: u64,
    /// Dropped: their time is weeks from those around them.
    pub absurd_times: u64,
    /// Dropped: no size.
    pub zero_sizes: u64,
    /// Dropped: longer than 4 GiB, or end beyond 2^63 bytes.
    pub too_large: u64,
    /// Dropped: not a read, write, flush or discard.
    pub other_operations: u64,
    /// Dropped: not to the selected device.
    pub other_devices: u64,
    /// Events or lines that are not requests: other stages, opened files, summaries.
    pub other_events: u64,
    /// Completions before their issue; ignored.
    pub early_completions: u64,
    /// Completions without a request.
    pub lone_completions: u64,
    /// Requests without a completion, in a trace with completions.
    pub without_completion: u64,
    /// 1 if the last line has no terminator: it may be truncated.
    pub unfinished_lines: u64,
    /// Failed during the recording; kept.
    #[serde(default)]
    pub failed: u64,
    /// Not recorded: they came faster than they could be written, or went to more than 65 535 files.
    #[serde(default)]
    pub not_kept: u64,
    /// Empty files, as blktrace writes them for processors without requests.
    #[serde(default)]
    pub empty_files: u64,
}

impl Corrections {
    /// Counts that are not 0, with a description for users.
    pub fn describe(&self) -> Vec<(u64, &'static str)> {
        let all = [
            (self.reordered, "requests out of order: sorted"),
            (self.duplicate_times, "requests with the time of the previous one: kept"),
            (self.negative_times, "requests with a negative time: all times shifted"),
            (self.absurd_times, "requests with a time weeks from those around them: DROPPED"),
            (self.zero_sizes, "requests without a size: DROPPED"),
            (self.too_large, "requests longer than 4 GiB or beyond 2^63 bytes: DROPPED"),
            (self.other_operations, "requests other than read, write, flush and discard: DROPPED"),
            (self.other_devices, "requests to other devices: not selected"),
            (self.other_events, "events or lines that are not requests: skipped"),
            (self.early_completions, "completions before their request: ignored"),
            (self.lone_completions, "completions without a request: ignored"),
            (self.without_completion, "requests without a completion: kept"),
            (self.unfinished_lines, "last line without a terminator: the file may be truncated"),
            (self.failed, "requests that failed during the recording: kept"),
            (self.not_kept, "requests not recorded: too fast, or to more than 65 535 files: DROPPED"),
            (self.empty_files, "empty files: processors without requests"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).collect()
    }

    /// Requests dropped because of a defect.
    pub fn dropped(&self) -> u64 {
        self.absurd_times + self.zero_sizes + self.too_large + self.other_operations + self.not_kept
    }

    /// Adds the counts of `other`.
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
            (&mut self.empty_files, other.empty_files),
        ];
        for (sum, count) in pairs {
            *sum = sum.saturating_add(count);
        }
    }
}
