//! Space of the volumes for one run of the detector. Pure.
use keepup_recorder::PlacementKind;
use keepup_results::format::{bytes, rate, seconds};

use crate::judge::DRAIN_SHARE;

/// Space for one run, and what the run needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpace {
    /// Bytes that can be recorded before the first volume is full.
    pub usable_bytes: f64,
    /// Rate at which files grow at the required rate, bytes per second.
    pub written: f64,
    /// Rate at which a drain frees space of a ring, bytes per second; 0 without a drain.
    pub drained: f64,
    /// Length of a run, seconds.
    pub run_seconds: f64,
    /// Whether the profile demands space for a whole run.
    pub is_required: bool,
}

impl RunSpace {
    /// Rate at which the volumes fill, bytes per second.
    pub fn growth(&self) -> f64 {
        (self.written - self.drained).max(0.0)
    }

    /// Bytes that one run leaves on the volumes.
    pub fn run_bytes(&self) -> f64 {
        self.growth() * self.run_seconds
    }

    /// Time until the first volume is full, seconds; `None` if a drain frees space as fast as it is used.
    pub fn full_after(&self) -> Option<f64> {
        (self.growth() > 0.0).then(|| self.usable_bytes / self.growth())
    }

    /// Sentence on a run that does not fit.
    pub fn shortage(&self) -> Option<String> {
        let after = self.full_after().filter(|after| *after < self.run_seconds)?;
        let drain = match self.drained > 0.0 {
            true => " beyond what the drain frees in a ring (record --keep)",
            false => "",
        };
        Some(format!(
            "the volumes are full after {}: a run of {} needs {}{drain}, {} can be used",
            seconds(after),
            seconds(self.run_seconds),
            bytes(self.run_bytes() as u64),
            bytes(self.usable_bytes as u64)
        ))
    }

    /// Sentence on a run that fits only because a drain frees space.
    pub fn ring(&self) -> Option<String> {
        let kept = Self { drained: 0.0, ..*self };
        let after = kept.full_after().filter(|after| *after < self.run_seconds)?;
        (self.drained > 0.0 && self.shortage().is_none()).then(|| {
            format!(
                "a run of {} fits only in a ring (record --keep), where the drain frees {}: otherwise the \
                 volumes are full after {}",
                seconds(self.run_seconds),
                rate(self.drained),
                seconds(after)
            )
        })
    }
}

/// Rate credited to a drain of the `nominal` rate, bytes per second: what it `reached` in a trial. Without a
/// measurement it is the least that passes one.
pub fn credited_drain(nominal: f64, reached: Option<f64>) -> f64 {
    reached.unwrap_or(DRAIN_SHARE * nominal).min(nominal)
}

/// Bytes that `streams` streams of equal rate can record before the first of `volumes` volumes is full, each
/// with `usable_bytes_each` usable bytes.
pub fn usable_bytes(placement: PlacementKind, streams: u32, volumes: usize, usable_bytes_each: u64) -> f64 {
    usable_bytes_each as f64 * spread(placement, streams, volumes)
}

/// All data over the data of the volume that gets most of it.
pub fn spread(placement: PlacementKind, streams: u32, volumes: usize) -> f64 {
    let volumes = volumes.max(1) as f64;
    match placement {
        PlacementKind::Free => volumes,
        PlacementKind::Pinned => {
            let streams = f64::from(streams.max(1));
            streams / (streams / volumes).ceil()
        }
    }
}

#[cfg(test)]
#[path = "run_space_tests.rs"]
mod tests;
