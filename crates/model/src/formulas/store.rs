//! Disks and how they are joined.

use serde::{Deserialize, Serialize};

/// Bytes of a sector of the disks described by their geometry.
pub const SECTOR_BYTES: f64 = 512.0;

/// Which way data go, seen from the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Into memory: from a disk or the network.
    Read,
    /// Out of memory: to a disk or the network.
    Write,
}

/// How disks are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each holds its own data.
    #[default]
    Each,
    /// Striped.
    Raid0,
    /// All hold the same.
    Raid1,
    /// Striped over mirrored pairs.
    Raid10,
    /// Striped, with the parity of one.
    Raid5,
    /// Striped, with two parities.
    Raid6,
}

/// Bytes per second that pass below a head while a disk reads or writes a whole zone: sectors of a track in
/// each turn, less the part of a turn that it waits at the end of a track (`skew_share`). It is an angle, so
/// that tracks of fewer sectors skip fewer. Geometry as in DiskSim's models.
#[must_use]
pub fn track_rate(sectors: f64, turns_per_second: f64, skew_share: f64) -> f64 {
    sectors * SECTOR_BYTES * turns_per_second / (1.0 + skew_share)
}

/// Bytes per second of requests at random places: each pays the access and then moves at the disk's rate.
#[must_use]
pub fn random_rate(request_bytes: f64, access_seconds: f64, stream_bytes_per_second: f64) -> f64 {
    request_bytes / (access_seconds + request_bytes / stream_bytes_per_second)
}

/// Part of the room of all disks that is left for data, 0 to 1.
#[must_use]
pub fn room_share(layout: Layout, disks: u32) -> f64 {
    1.0 / layout.stream_cost(Direction::Write, disks)
}

impl Layout {
    /// Fewest disks that it takes.
    #[must_use]
    pub fn disks_min(self) -> u32 {
        match self {
            Self::Each | Self::Raid0 => 1,
            Self::Raid1 | Self::Raid10 => 2,
            Self::Raid5 => 3,
            Self::Raid6 => 4,
        }
    }

    /// Whether so many disks can be joined so.
    #[must_use]
    pub fn takes(self, disks: u32) -> bool {
        disks >= self.disks_min() && (self != Self::Raid10 || disks.is_multiple_of(2))
    }

    /// Bytes that all disks together move for a byte of payload in long sequential requests of full stripes.
    /// Mirrors are written all and read in turns. Parity is written with the data, and passes below the
    /// heads when these are read (Chen et al., RAID, ACM Computing Surveys 1994).
    #[must_use]
    pub fn stream_cost(self, direction: Direction, disks: u32) -> f64 {
        let all = f64::from(disks);
        match (self, direction) {
            (Self::Each | Self::Raid0, _) | (Self::Raid1 | Self::Raid10, Direction::Read) => 1.0,
            (Self::Raid1, Direction::Write) => all,
            (Self::Raid10, Direction::Write) => 2.0,
            (Self::Raid5, _) => all / (all - 1.0),
            (Self::Raid6, _) => all / (all - 2.0),
        }
    }

    /// Accesses of disks for one small request at a random place. With parity a write reads and writes the data
    /// and each parity (the same source).
    #[must_use]
    pub fn random_cost(self, direction: Direction, disks: u32) -> f64 {
        match (self, direction) {
            (_, Direction::Read) | (Self::Each | Self::Raid0, _) => 1.0,
            (Self::Raid1, Direction::Write) => f64::from(disks),
            (Self::Raid10, Direction::Write) => 2.0,
            (Self::Raid5, Direction::Write) => 4.0,
            (Self::Raid6, Direction::Write) => 6.0,
        }
    }
}
