//! Placement: chooses the volume of a stream's next block. One trait, one file per rule.
mod free;
mod pinned;

use serde::{Deserialize, Serialize};

pub(crate) use free::Free;
pub(crate) use pinned::Pinned;

/// Placement rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementKind {
    /// The volume with the least waiting data; another one when it fails.
    Free,
    /// A stream stays on its volume: no multiplexing, no re-assembly.
    Pinned,
}

/// State of a volume for placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VolumeLoad {
    /// Whether it takes blocks.
    pub(crate) usable: bool,
    /// Bytes handed to it and not yet written.
    pub(crate) bytes_waiting: u64,
}

/// Chooses a volume for the next block of a stream.
pub(crate) trait Placement: Send {
    /// Index of the volume, or `None` when none is usable.
    fn choose(&mut self, stream: u32, volumes: &[VolumeLoad]) -> Option<usize>;
}

impl PlacementKind {
    /// The rule for one of several intakes, which begin with different volumes.
    pub(crate) fn build(self, intake: usize) -> Box<dyn Placement> {
        match self {
            Self::Free => Box::new(Free::beginning_with(intake)),
            Self::Pinned => Box::new(Pinned),
        }
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
