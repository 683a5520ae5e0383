//! Settings and limits of a soak.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_sys::file::{Access, Durability};
use keepup_workload::Footprint;
use md5::Digest as _;
use serde::{Deserialize, Serialize};

use crate::piece::PIECE_BYTES;

/// Throughput of a slow disk, for time estimates, bytes per second.
const RATE_GUESS: f64 = 200e6;
/// Upper bound of a disk's throughput, for the estimate of bytes written, bytes per second.
const RATE_MAX: f64 = 10e9;
/// Request sizes of the burn-in cycle, bytes.
const REQUESTS: [usize; 3] = [PIECE_BYTES, 64 << 10, 4 << 10];

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Copies reference files and reads the copies back.
    Copy,
    /// Rewrites a file of self-describing pages in place and reads it back.
    Stamp,
    /// Alternates both, over all combinations of write, flush and read modes.
    BurnIn,
}

/// Digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DigestKind {
    /// BLAKE3, 256 bits.
    Blake3,
    /// MD5, as in the paper.
    Md5,
}

/// Source of a copied file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReferencePlan {
    /// A file of the user.
    File {
        /// Path of the file.
        path: PathBuf,
    },
    /// A generated incompressible file on each volume.
    Made {
        /// Size in bytes.
        bytes: u64,
    },
}

/// Settings of every turn; a soak can only be resumed with the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakPlan {
    /// Kind of work.
    pub mode: Mode,
    /// Digest algorithm.
    pub digest: DigestKind,
    /// Directories on the tested disks, one turn on each per round.
    pub volumes: Vec<PathBuf>,
    /// References; empty for stamping only.
    pub references: Vec<ReferencePlan>,
    /// Size of the stamped file per volume, bytes; 0 for copying only.
    pub stamped_bytes: u64,
}

/// Limits of a soak over all its sessions; unlimited without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Turns per volume.
    pub rounds: Option<u64>,
    /// Total time of turns.
    pub time: Option<Duration>,
}

/// Write and read modes of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnMode {
    pub(crate) stamps: bool,
    pub(crate) write: Access,
    pub(crate) durability: Durability,
    /// Buffered reads ask the kernel to drop the file's pages first.
    pub(crate) read: Access,
    pub(crate) request_bytes: usize,
}

impl SoakPlan {
    /// Mode of the turn in `round` (from 0). `is_direct`: whether the volume supports direct I/O.
    pub(crate) fn turn_mode(&self, round: u64, is_direct: bool) -> TurnMode {
        let direct = if is_direct { Access::Direct } else { Access::Buffered };
        let plain = TurnMode {
            stamps: self.mode == Mode::Stamp,
            write: Access::Buffered,
            durability: Durability::Flushed,
            read: direct,
            request_bytes: PIECE_BYTES,
        };
        if self.mode != Mode::BurnIn {
            return plain;
        }
        // Cycles through all combinations in 48 rounds.
        let n = round / 2;
        TurnMode {
            stamps: round % 2 == 1,
            write: if n.is_multiple_of(2) { Access::Buffered } else { direct },
            durability: if (n / 2).is_multiple_of(2) { Durability::Flushed } else { Durability::EachWrite },
            read: if (n / 4).is_multiple_of(2) { direct } else { Access::Buffered },
            request_bytes: REQUESTS[(n / 8 % REQUESTS.len() as u64) as usize],
        }
    }

    /// Space used and maximum bytes written per round, on each volume.
    fn bytes(&self) -> (u64, u64) {
        let made = self.references.iter().filter(|plan| matches!(plan, ReferencePlan::Made { .. }));
        let made: u64 = made.map(ReferencePlan::bytes).saturating_sum();
        let sizes = || self.references.iter().map(ReferencePlan::bytes);
        let space = made + sizes().max().unwrap_or(0) + self.stamped_bytes;
        (space, sizes().saturating_sum::<u64>().max(self.stamped_bytes))
    }

    /// Estimated writes within `limits` and time on a slow disk.
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
    /// Size in bytes; 0 if the file's metadata cannot be read.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Made { bytes } => *bytes,
            Self::File { path } => std::fs::metadata(path).map_or(0, |file| file.len()),
        }
    }
}

impl std::fmt::Display for TurnMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = |access| if access == Access::Direct { "directly" } else { "through the cache" };
        let flush =
            if self.durability == Durability::Flushed { "then flushed" } else { "each write durable" };
        let read = if self.read == Access::Direct { "directly" } else { "after dropping the cache" };
        let kib = self.request_bytes >> 10;
        write!(f, "{kib} KiB at a time, written {}, {flush}, read {read}", access(self.write))
    }
}

/// A running digest.
pub(crate) enum Hasher {
    Blake3(Box<blake3::Hasher>),
    Md5(md5::Md5),
}

impl DigestKind {
    pub(crate) fn hasher(self) -> Hasher {
        match self {
            Self::Blake3 => Hasher::Blake3(Box::default()),
            Self::Md5 => Hasher::Md5(md5::Md5::new()),
        }
    }
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
            Self::Md5(hasher) => hasher.update(bytes),
        }
    }

    /// Digest in the format of `b3sum` and `md5sum`.
    pub(crate) fn end(self) -> String {
        match self {
            Self::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Md5(hasher) => hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
