//! Result of `keepup soak`: bytes written and read back, all wrong bytes, and the error rate.
//!
//! `None` means "not measured" and is written as null. Times are ns, sizes bytes, MB = 10^6 bytes.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::head::Kind;
use crate::load::LoadResult;
use crate::test::test_summary;

mod figures;

test_summary! {
    /// Result of one soak over all its sessions. Its start is that of the first session, its
    /// command that of the last; its identity is in every stamp.
    pub struct SoakSummary: Kind::Soak, version 3 {
        /// Digests of the reference files, in the order of the plan.
        pub digests: Vec<String>,
        /// Number of sessions.
        pub sittings: u64,
        /// Totals of the work done.
        pub totals: SoakTotals,
        /// Totals of the damage found.
        pub damage: SoakDamage,
        /// The first mismatches; `damage` counts all.
        pub mismatches: Vec<SoakMismatch>,
        /// Error rate; `None` before anything was read back.
        pub rate: Option<SoakRate>,
        /// Error counters of the kernel and the disks.
        pub counters: Vec<SoakCounter>,
        /// Background loads of this session.
        pub loads: Vec<LoadResult>,
        /// Notes on how it was measured.
        pub notes: Vec<String>,
    }
}

/// Work done, including interrupted turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakTotals {
    /// Completed turns: each reference copied once, or one generation stamped, on one volume.
    pub turns: u64,
    /// Files read back completely.
    pub files: u64,
    /// Total time of turns.
    pub elapsed_ns: u64,
    /// Generation of data: reading the reference, or stamping pages.
    pub source: SoakPart,
    /// Writing, including flushes.
    pub write: SoakPart,
    /// Reading back, bypassing the page cache.
    pub read: SoakPart,
    /// Comparison.
    pub compare: SoakPart,
}

/// Total of one part of the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakPart {
    /// Bytes that went through it.
    pub bytes: u64,
    /// Duration.
    pub elapsed_ns: u64,
    /// CPU time of this process.
    pub cpu_ns: u64,
}

/// Totals of all damage found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakDamage {
    /// Files that differ from what was written.
    pub mismatches: u64,
    /// Wrong bytes.
    pub bytes: u64,
    /// Wrong bits.
    pub bits: u64,
    /// Mismatches by location of the wrong bytes.
    pub places: BTreeMap<SoakPlace, u64>,
    /// Wrong ranges by kind.
    pub kinds: BTreeMap<SoakKind, u64>,
    /// References that were read wrongly; not counted above, since they are read through the page
    /// cache.
    pub references: u64,
}

/// Kind of a wrong file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoakFile {
    /// A reference while being read for copying.
    Reference,
    /// A copy.
    Copy,
    /// The stamped file.
    Stamped,
}

/// Location of wrong bytes, determined by rereading with direct I/O, through the page cache, and
/// after dropping the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoakPlace {
    /// Only the first read was wrong: on the path from the medium.
    Path,
    /// Only the page cache is wrong.
    Cache,
    /// Wrong again, but differently.
    Unsteady,
    /// The same wrong bytes each time: on the medium, or written that way.
    Medium,
}

/// Kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoakKind {
    /// A few flipped bits.
    Flipped,
    /// Zeros: never written, or lost.
    Blank,
    /// Content of an earlier write: a write was lost.
    Stale,
    /// Parts of two writes in one page.
    Torn,
    /// Content of another position.
    Misplaced,
    /// Wrong file length.
    Length,
    /// None of these.
    Foreign,
}

/// A file that differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakMismatch {
    /// Number of the turn, from 1.
    pub turn: u64,
    /// The volume.
    pub volume: String,
    /// Path of the file when it was read.
    pub file: String,
    /// Kind of file.
    pub what: SoakFile,
    /// Write and read modes.
    pub way: String,
    /// The first wrong ranges.
    pub ranges: Vec<SoakRange>,
    /// All wrong ranges, by kind.
    pub kinds: BTreeMap<SoakKind, u64>,
    /// Wrong bytes.
    pub bytes: u64,
    /// Wrong bits.
    pub bits: u64,
    /// Location; `None` if rereading was impossible.
    pub place: Option<SoakPlace>,
    /// Outcome of each reread.
    pub rereads: Vec<String>,
    /// Path of the kept file, if kept.
    pub kept: Option<String>,
}

/// A range of wrong bytes, including small gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakRange {
    /// Offset of the first wrong byte.
    pub offset: u64,
    /// Length up to the last wrong byte.
    pub bytes: u64,
    /// Wrong bits in the range.
    pub bits: u64,
    /// Kind of damage.
    pub kind: SoakKind,
    /// Expected first bytes, hexadecimal.
    pub expected: String,
    /// Actual first bytes.
    pub found: String,
    /// Exclusive or of both: set bits are wrong bits.
    pub xor: String,
    /// Origin of the content according to its own stamp.
    pub origin: Option<SoakOrigin>,
}

/// Stamp of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakOrigin {
    /// Whether it is of this soak.
    pub is_ours: bool,
    /// Number of the stamped file: that of its volume, from 0.
    pub file: u64,
    /// Intended offset in the file.
    pub offset: u64,
    /// Generation, from 1.
    pub generation: u64,
}

/// Error rate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakRate {
    /// Bytes read back and compared.
    pub bytes: u64,
    /// Wrong bytes per byte.
    pub wrong_bytes_per_byte: f64,
    /// Mismatches per byte; bits of one mismatch are not independent, so the interval counts
    /// mismatches.
    pub mismatches_per_byte: SoakInterval,
    /// Mismatches per bit.
    pub mismatches_per_bit: SoakInterval,
}

/// Estimate with its 95 % interval; without errors the upper bound is one-sided, -ln 0.05 /
/// exposure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakInterval {
    /// Estimate.
    pub value: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// An increasing error counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakCounter {
    /// Device and counter name.
    pub name: String,
    /// Before the first session; `None` if unreadable.
    pub first: Option<u64>,
    /// Before this session; kernel counters restart at boot.
    pub before: Option<u64>,
    /// After this session.
    pub after: Option<u64>,
}

impl SoakPart {
    /// Adds another total.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.elapsed_ns += other.elapsed_ns;
        self.cpu_ns += other.cpu_ns;
    }

    /// Bytes per second; `None` if nothing was transferred.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.elapsed_ns > 0 && self.bytes > 0).then(|| self.bytes as f64 * 1e9 / self.elapsed_ns as f64)
    }

    /// CPU time of this process, seconds per GB.
    #[must_use]
    pub fn cpu_seconds_per_gb(&self) -> Option<f64> {
        // ns per byte equals seconds per GB.
        (self.bytes > 0).then(|| self.cpu_ns as f64 / self.bytes as f64)
    }
}

impl SoakTotals {
    /// Adds other totals.
    pub fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.files += other.files;
        self.elapsed_ns += other.elapsed_ns;
        self.source.add(&other.source);
        self.write.add(&other.write);
        self.read.add(&other.read);
        self.compare.add(&other.compare);
    }
}

impl SoakDamage {
    /// Counts a mismatch.
    pub fn add(&mut self, mismatch: &SoakMismatch) {
        if mismatch.what == SoakFile::Reference {
            self.references += 1;
            return;
        }
        self.mismatches += 1;
        self.bytes += mismatch.bytes;
        self.bits += mismatch.bits;
        if let Some(place) = mismatch.place {
            *self.places.entry(place).or_default() += 1;
        }
        for (kind, count) in &mismatch.kinds {
            *self.kinds.entry(*kind).or_default() += count;
        }
    }
}

/// Serde name, for output.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

impl std::fmt::Display for SoakPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&word(self))
    }
}

impl std::fmt::Display for SoakKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&word(self))
    }
}
