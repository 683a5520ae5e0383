//! What a soak does in every turn, and how long it goes on.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use keepup_sys::file::{Access, Durability};
use md5::Digest as _;
use serde::{Deserialize, Serialize};

use super::turn::PIECE_BYTES;
use crate::Footprint;

/// What a slow disk writes and reads, for estimates of time, in bytes per second.
const RATE_GUESS: f64 = 200e6;
/// What no disk writes more than, for the bound on what is written, in bytes per second.
const RATE_MAX: f64 = 10e9;
/// Request sizes that burn-in goes through, in bytes.
const REQUESTS: [usize; 3] = [PIECE_BYTES, 64 << 10, 4 << 10];

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reference files are copied, and the copies read back.
    Copy,
    /// A file whose pages say where they belong is written anew in place, and read back.
    Stamp,
    /// Both in turns, in every way of writing, flushing and reading.
    BurnIn,
}

/// Which digest is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestKind {
    /// BLAKE3, 256 bits.
    Blake3,
    /// MD5, as the paper has it.
    Md5,
}

/// A file that is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReferencePlan {
    /// A file of the user's.
    File {
        /// Where it is.
        path: PathBuf,
    },
    /// One that is made on each volume, of data that cannot be compressed.
    Made {
        /// Its size in bytes.
        bytes: u64,
    },
}

/// What every turn does; a soak is gone on with only by the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakPlan {
    /// What is done.
    pub mode: Mode,
    /// Which digest is compared.
    pub digest: DigestKind,
    /// Directories on the disks; one turn on each, then the next round.
    pub volumes: Vec<PathBuf>,
    /// What is copied; nothing when only pages are stamped.
    pub references: Vec<ReferencePlan>,
    /// Size of the stamped file on each volume, in bytes; 0 when nothing is stamped.
    pub stamped_bytes: u64,
}

/// How long a soak goes on, over all its sittings; without a limit until it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Turns on each volume.
    pub rounds: Option<u64>,
    /// Time in turns.
    pub time: Option<Duration>,
}

/// How a turn writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) stamps: bool,
    pub(super) write: Access,
    pub(super) durability: Durability,
    /// Buffered: the kernel is asked to drop the file's pages first.
    pub(super) read: Access,
    pub(super) request_bytes: usize,
}

impl SoakPlan {
    /// How the turn of `round` (from 0) writes and reads. `is_direct`: whether the volume can do direct I/O.
    pub(super) fn way(&self, round: u64, is_direct: bool) -> Way {
        let direct = if is_direct { Access::Direct } else { Access::Buffered };
        let plain = Way {
            stamps: self.mode == Mode::Stamp,
            write: Access::Buffered,
            durability: Durability::Flushed,
            read: direct,
            request_bytes: PIECE_BYTES,
        };
        if self.mode != Mode::BurnIn {
            return plain;
        }
        // Every combination comes once in 48 rounds.
        let n = round / 2;
        Way {
            stamps: round % 2 == 1,
            write: if n.is_multiple_of(2) { Access::Buffered } else { direct },
            durability: if (n / 2).is_multiple_of(2) { Durability::Flushed } else { Durability::EachWrite },
            read: if (n / 4).is_multiple_of(2) { direct } else { Access::Buffered },
            request_bytes: REQUESTS[(n / 8 % REQUESTS.len() as u64) as usize],
        }
    }

    /// Space that is held at a time, and what a round writes at most, on each volume, in bytes.
    fn bytes(&self) -> (u64, u64) {
        let made = self.references.iter().filter(|plan| matches!(plan, ReferencePlan::Made { .. }));
        let made: u64 = made.map(ReferencePlan::bytes).sum();
        let sizes = || self.references.iter().map(ReferencePlan::bytes);
        let space = made + sizes().max().unwrap_or(0) + self.stamped_bytes;
        (space, sizes().sum::<u64>().max(self.stamped_bytes))
    }

    /// What will be written within `limits`, and how long it takes on a slow disk.
    pub fn footprint(&self, limits: Limits) -> Footprint {
        let (space, round) = self.bytes();
        let volumes = self.volumes.len() as f64;
        let by_rounds = limits.rounds.map(|rounds| rounds as f64 * round as f64);
        let by_time = limits.time.map(|time| time.as_secs_f64() * RATE_MAX);
        let written = space as f64 + by_rounds.into_iter().chain(by_time).fold(f64::INFINITY, f64::min);
        let each = |bytes: u64| -> BTreeMap<PathBuf, u64> {
            self.volumes.iter().map(|volume| (volume.clone(), bytes)).collect()
        };
        // Written and read back.
        let seconds = by_rounds.map_or(f64::INFINITY, |bytes| 2.0 * bytes * volumes / RATE_GUESS);
        let seconds = seconds.min(limits.time.map_or(f64::INFINITY, |time| time.as_secs_f64()));
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Footprint { bytes_written: each(written as u64), space_bytes: each(space), time }
    }
}

impl ReferencePlan {
    /// Its size in bytes; 0 for a file that cannot be looked at.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Made { bytes } => *bytes,
            Self::File { path } => std::fs::metadata(path).map_or(0, |file| file.len()),
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = |access| if access == Access::Direct { "directly" } else { "through the cache" };
        let flush =
            if self.durability == Durability::Flushed { "then flushed" } else { "each write durable" };
        let read = if self.read == Access::Direct { "directly" } else { "after dropping the cache" };
        let kib = self.request_bytes >> 10;
        write!(f, "{kib} KiB at a time, written {}, {flush}, read {read}", access(self.write))
    }
}

/// A digest under way.
pub(super) enum Hasher {
    Blake3(Box<blake3::Hasher>),
    Md5(md5::Md5),
}

impl DigestKind {
    pub(super) fn hasher(self) -> Hasher {
        match self {
            Self::Blake3 => Hasher::Blake3(Box::default()),
            Self::Md5 => Hasher::Md5(md5::Md5::new()),
        }
    }
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
            Self::Md5(hasher) => hasher.update(bytes),
        }
    }

    /// The digest, as `b3sum` and `md5sum` print it.
    pub(super) fn end(self) -> String {
        match self {
            Self::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Md5(hasher) => hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
