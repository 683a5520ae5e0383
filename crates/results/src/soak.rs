//! What `keepup soak` found: bytes written and read back, every byte that was wrong, and what follows from
//! both.
//!
//! `None` means "not measured" and is written as null. Times are ns, sizes bytes, MB = 10^6 bytes.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::LoadResult;
use crate::summary::Kind;
use crate::test::test_summary;

mod figures;

test_summary! {
    /// What one soak found, over all its sittings. Its beginning is that of the first one; its command that
    /// of the last; its identity is in every stamp that it writes.
    pub struct SoakSummary: Kind::Soak, version 3 {
        /// Digests of the reference files, in the order of the plan.
        pub digests: Vec<String>,
        /// How often it was begun or gone on with.
        pub sittings: u64,
        /// What was done.
        pub totals: SoakTotals,
        /// What was wrong.
        pub damage: SoakDamage,
        /// Mismatches, the first ones; `damage` counts all.
        pub mismatches: Vec<SoakMismatch>,
        /// What follows for the rate of errors; `None` when nothing was read back.
        pub rate: Option<SoakRate>,
        /// Counters of errors that the kernel and the disks keep.
        pub counters: Vec<SoakCounter>,
        /// What ran beside it on purpose, in this sitting.
        pub loads: Vec<LoadResult>,
        /// What the reader should know of how it was measured.
        pub notes: Vec<String>,
    }
}

/// What was done, also in turns that were cut short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakTotals {
    /// Turns that came to their end: each reference copied once, or one generation stamped, on one volume.
    pub turns: u64,
    /// Files read back to their end.
    pub files: u64,
    /// Time in turns.
    pub elapsed_ns: u64,
    /// Making what is written: reading the reference, or stamping pages.
    pub source: SoakPart,
    /// Writing, with the flush.
    pub write: SoakPart,
    /// Reading back past the page cache.
    pub read: SoakPart,
    /// Comparing what was read back.
    pub compare: SoakPart,
}

/// One part of the work, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakPart {
    /// Bytes that went through it.
    pub bytes: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// CPU of this process in that time.
    pub cpu_ns: u64,
}

/// What was wrong in what was read back, all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakDamage {
    /// Files read back that were not as written.
    pub mismatches: u64,
    /// Bytes in them that were wrong.
    pub bytes: u64,
    /// Bits in them that were wrong.
    pub bits: u64,
    /// Mismatches by where the wrong bytes are.
    pub places: BTreeMap<SoakPlace, u64>,
    /// Wrong places by kind.
    pub kinds: BTreeMap<SoakKind, u64>,
    /// References that were read wrongly; not counted above, since they are read through the page cache.
    pub references: u64,
}

/// Which file was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoakFile {
    /// A reference, when it was read to be copied.
    Reference,
    /// A copy.
    Copy,
    /// The stamped file.
    Stamped,
}

/// Where wrong bytes are, by reading them again: directly, through the cache, and after dropping the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoakPlace {
    /// Only the first reading was wrong: on the way from the medium.
    Path,
    /// Only what the page cache holds is wrong.
    Cache,
    /// Wrong again, but not the same.
    Unsteady,
    /// The same wrong bytes each time: so they lie on the medium, or were written so.
    Medium,
}

/// What wrong bytes look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoakKind {
    /// A few bits differ from what was written.
    Flipped,
    /// Nothing but zeros: never written, or lost.
    Blank,
    /// What an earlier write put there: a write was lost.
    Stale,
    /// Parts of two writes in one page.
    Torn,
    /// What belongs to another place.
    Misplaced,
    /// The file ends too early or too late.
    Length,
    /// None of these.
    Foreign,
}

/// A file that was not as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakMismatch {
    /// Number of the turn, from 1.
    pub turn: u64,
    /// The volume.
    pub volume: String,
    /// The file as it was called when it was read.
    pub file: String,
    /// What it is.
    pub what: SoakFile,
    /// How it had been written and read.
    pub way: String,
    /// Wrong places, the first ones.
    pub ranges: Vec<SoakRange>,
    /// Wrong places in all, by kind.
    pub kinds: BTreeMap<SoakKind, u64>,
    /// Wrong bytes.
    pub bytes: u64,
    /// Wrong bits.
    pub bits: u64,
    /// Where they are; `None` when nothing could be read again.
    pub place: Option<SoakPlace>,
    /// What reading again gave, reading by reading.
    pub rereads: Vec<String>,
    /// Where the file was kept, if it was.
    pub kept: Option<String>,
}

/// Wrong bytes in a row, or nearly so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakRange {
    /// Where the first wrong byte lies in the file.
    pub offset: u64,
    /// From there to the last wrong byte.
    pub bytes: u64,
    /// Wrong bits within.
    pub bits: u64,
    /// What it looks like.
    pub kind: SoakKind,
    /// The first bytes as they should be, hexadecimal.
    pub expected: String,
    /// The same as they are.
    pub found: String,
    /// Their exclusive or: set bits are wrong bits.
    pub xor: String,
    /// Where the contents belong, by their own stamp.
    pub origin: Option<SoakOrigin>,
}

/// What a stamp says of the sector that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakOrigin {
    /// Whether it is of this soak.
    pub is_ours: bool,
    /// Number of the stamped file: that of its volume, from 0.
    pub file: u64,
    /// Where in the file it was to be.
    pub offset: u64,
    /// Which generation it is of, from 1.
    pub generation: u64,
}

/// The rate of errors, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakRate {
    /// Bytes read back and compared.
    pub bytes: u64,
    /// Wrong bytes for each of them.
    pub wrong_bytes_per_byte: f64,
    /// Mismatches for each byte; the bits of one mismatch are not independent, so the interval counts these.
    pub mismatches_per_byte: SoakInterval,
    /// The same for each bit.
    pub mismatches_per_bit: SoakInterval,
}

/// An estimate with its 95 % interval; without any error the upper end is the one-sided bound,
/// -ln 0.05 / exposure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakInterval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// A counter of errors, which rises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoakCounter {
    /// Whose it is and what it counts.
    pub name: String,
    /// Before the first sitting; `None` where it cannot be read.
    pub first: Option<u64>,
    /// Before this sitting; the kernel's own begin anew at a start of the machine.
    pub before: Option<u64>,
    /// After this sitting.
    pub after: Option<u64>,
}

impl SoakPart {
    /// Adds what another has.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.elapsed_ns += other.elapsed_ns;
        self.cpu_ns += other.cpu_ns;
    }

    /// Bytes per second; `None` where nothing was moved.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.elapsed_ns > 0 && self.bytes > 0).then(|| self.bytes as f64 * 1e9 / self.elapsed_ns as f64)
    }

    /// CPU of this process, seconds per GB.
    #[must_use]
    pub fn cpu_seconds_per_gb(&self) -> Option<f64> {
        // ns per byte are seconds per GB.
        (self.bytes > 0).then(|| self.cpu_ns as f64 / self.bytes as f64)
    }
}

impl SoakTotals {
    /// Adds what another has.
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

/// What serde calls it, for people.
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
