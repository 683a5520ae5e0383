//! Disks and RAID layouts.

use serde::{Deserialize, Serialize};

/// Bytes of a sector of the disks described by their geometry.
pub const SECTOR_BYTES: f64 = 512.0;

/// Direction of data, as seen from the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Into memory: from a disk or the network.
    Read,
    /// Out of memory: to a disk or the network.
    Write,
}

/// RAID layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Independent disks.
    #[default]
    Each,
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Striped over mirrored pairs.
    Raid10,
    /// Single parity.
    Raid5,
    /// Double parity.
    Raid6,
}

/// Media rate of a zone, bytes per second: sectors per track and turn, less the part of a turn lost
/// at the end of a track (`skew_share`). It is an angle, so shorter tracks skip fewer sectors.
/// Geometry as in DiskSim's models.
#[must_use]
pub(crate) fn track_rate(sectors: f64, turns_per_second: f64, skew_share: f64) -> f64 {
    sectors * SECTOR_BYTES * turns_per_second / (1.0 + skew_share)
}

/// Bytes per second of random requests: access time plus transfer at the disk's rate.
#[must_use]
pub(crate) fn random_rate(request_bytes: f64, access_seconds: f64, stream_bytes_per_second: f64) -> f64 {
    request_bytes / (access_seconds + request_bytes / stream_bytes_per_second)
}

impl Layout {
    /// Minimum number of disks.
    #[must_use]
    pub(crate) fn disks_min(self) -> u32 {
        match self {
            Self::Each | Self::Raid0 => 1,
            Self::Raid1 | Self::Raid10 => 2,
            Self::Raid5 => 3,
            Self::Raid6 => 4,
        }
    }

    /// Whether the layout is possible with this number of disks.
    #[must_use]
    pub fn takes(self, disks: u32) -> bool {
        disks >= self.disks_min() && (self != Self::Raid10 || disks.is_multiple_of(2))
    }

    /// Disk bytes per payload byte for long sequential requests of full stripes. Mirrors are all
    /// written, and read in turns. Parity is written with the data, and passes below the heads when
    /// reading (Chen et al., RAID, ACM Computing Surveys 1994).
    #[must_use]
    pub(crate) fn stream_cost(self, direction: Direction, disks: u32) -> f64 {
        let all = f64::from(disks);
        match (self, direction) {
            (Self::Each | Self::Raid0, _) | (Self::Raid1 | Self::Raid10, Direction::Read) => 1.0,
            (Self::Raid1, Direction::Write) => all,
            (Self::Raid10, Direction::Write) => 2.0,
            (Self::Raid5, _) => all / (all - 1.0),
            (Self::Raid6, _) => all / (all - 2.0),
        }
    }

    /// Disk accesses per small random request. With parity a write reads and writes the data and
    /// each parity (same source).
    #[must_use]
    pub(crate) fn random_cost(self, direction: Direction, disks: u32) -> f64 {
        match (self, direction) {
            (_, Direction::Read) | (Self::Each | Self::Raid0, _) => 1.0,
            (Self::Raid1, Direction::Write) => f64::from(disks),
            (Self::Raid10, Direction::Write) => 2.0,
            (Self::Raid5, Direction::Write) => 4.0,
            (Self::Raid6, Direction::Write) => 6.0,
        }
    }
}
