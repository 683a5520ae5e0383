//! Concurrent readers or writers: aggregate throughput compared with a single stream.
//!
//! Source: the event logger's RAID test, which timed one 1 GB file while N-1 files of 2 GB were
//! written (or read), and multiplied its rate by N. The actual total is reported beside that value.
use std::path::PathBuf;
use std::time::Duration;

use keepup_measure::sum::Sums;

use super::fio::FioFile;
use super::lanes::{Lane, Pace, Until, run_lanes};
use super::phase::RATE_GUESS;
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::file_io::mode::{Mode, Target};
use crate::file_io::{IoDirection, Mover, Point};
use crate::{Context, WorkloadError};

/// Size ratio of the other files to the timed one, so that they outlast it.
const OTHERS: u64 = 2;

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct Concurrent {
    /// Directions to test, in order.
    pub kinds: Vec<IoDirection>,
    /// Maximum number of concurrent files; the test starts with one.
    pub most: u32,
    /// Request size and queue depth per file.
    pub point: Point,
    /// Size of the timed file, bytes.
    pub file_bytes: u64,
    /// Whether all use parts of one file.
    pub is_shared: bool,
    /// I/O settings.
    pub mode: Mode,
}

impl Concurrent {
    /// Name of a phase.
    pub fn phase_name(kind: IoDirection, files: u32) -> String {
        format!("{} {files} at once", kind.verb())
    }

    fn bytes_of(&self, n: u32) -> u64 {
        self.file_bytes * if n == 0 && !self.is_shared { 1 } else { OTHERS }
    }

    fn targets(&self, place: &mut TestDirectories) -> Result<Vec<Target>, WorkloadError> {
        if self.is_shared {
            let path = place.first.file("shared");
            return Target::create_shared(&path, self.bytes_of(0), self.most as usize, &self.mode);
        }
        (0..self.most)
            .map(|n| Target::create(&place.first.file(&format!("file{n}")), self.bytes_of(n), &self.mode))
            .collect()
    }
}

impl DiskTest for Concurrent {
    fn name(&self) -> &'static str {
        "concurrent"
    }

    fn cost(&self) -> Cost {
        let space = (0..self.most).map(|n| self.bytes_of(n)).saturating_sum::<u64>();
        // During one pass of the first file each of the others makes at most one pass.
        let moved: u64 = (1..=self.most)
            .map(|n| (0..n).map(|n| self.bytes_of(n)).saturating_sum::<u64>())
            .saturating_sum();
        let each = |kind: &IoDirection| if *kind == IoDirection::Write { moved } else { space };
        let written = self.kinds.iter().map(each).saturating_sum();
        let time = Duration::from_secs_f64((moved * self.kinds.len() as u64) as f64 / RATE_GUESS);
        Cost { bytes_written: written, space_bytes: space, time }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&self.mode);
        for (&kind, volume) in self.kinds.iter().flat_map(|kind| volumes.iter().map(move |v| (kind, v))) {
            for files in 1..=self.most {
                for n in 0..files {
                    file.job(&Self::phase_name(kind, files), volume, kind, self.point, n == 0);
                    // All jobs end with the first one that finishes.
                    file.set("exitall", 1);
                    file.set("size", self.bytes_of(n));
                    match self.is_shared {
                        true => {
                            file.set("filename", "keepup-fio-shared");
                            file.set("offset", self.bytes_of(n) * u64::from(n));
                        }
                        false => file.set("filename", format!("keepup-fio-file{n}")),
                    }
                }
            }
        }
        Ok(file)
    }

    fn measure(
        &self,
        place: &mut TestDirectories,
        found: &mut DiskMeasured,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let volume = place.first.volume();
        let mut targets = self.targets(place)?;
        for &kind in &self.kinds {
            if kind == IoDirection::Read {
                (context.note)("preparing files for reading");
                let filled = targets.into_iter().map(|target| Mover::fill(target, &self.mode, context));
                targets = filled.collect::<Result<_, _>>()?;
            }
            for files in 1..=self.most {
                let name = Self::phase_name(kind, files);
                (context.note)(&name);
                let lane = |(n, target): (usize, &Target)| Lane {
                    name: format!("file {}", n + 1),
                    volume: volume.clone(),
                    target: target.clone(),
                    kind,
                    point: self.point,
                    pace: Pace::Free,
                };
                let mut lanes: Vec<Lane> =
                    targets.iter().take(files as usize).enumerate().map(lane).collect();
                match run_lanes(name, &self.mode, &mut lanes, Until::First(self.file_bytes), context)? {
                    Some(phase) => found.phases.push(phase),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "concurrent_tests.rs"]
mod tests;
