//! Manifest of a new recording, on each volume.
use std::path::PathBuf;

use keepup_measure::clock::Clock;
use keepup_plan::reduction::Reduction;
use keepup_recording::id::Id;
use keepup_recording::layout::FORMAT_VERSION;
use keepup_recording::manifest::{Manifest, Placement};

use crate::{PlacementKind, RecorderConfig};

/// Manifest of the volume with this index.
pub(super) fn manifest(
    config: &RecorderConfig,
    volumes: &[PathBuf],
    recording: Id,
    index: usize,
    clock: &dyn Clock,
) -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION,
        name: config.name.clone(),
        recording,
        volume: volume_id(recording, index),
        volume_index: index as u32,
        volumes: volumes.iter().map(|v| std::path::absolute(v).unwrap_or_else(|_| v.clone())).collect(),
        placement: match config.placement {
            PlacementKind::Free => Placement::Free,
            PlacementKind::Pinned => Placement::Pinned,
        },
        created_unix_ns: clock.unix_ns(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        keep: config.keep,
        run: config.run,
        metadata: config.metadata.clone(),
        reductions: config.reductions.iter().map(Reduction::to_string).collect(),
        origin: None,
    }
}

/// Different for every volume of a recording.
fn volume_id(recording: Id, index: usize) -> Id {
    let place = (index as u128 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93_a076_1d64_78bd_642f);
    Id((u128::from_be_bytes(recording.0) ^ place).to_be_bytes())
}
