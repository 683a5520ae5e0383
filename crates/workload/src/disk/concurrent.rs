//! Several readers, or several writers, at once: does a disk give as much to many as to one?
//!
//! Source: the event logger's test of its RAID, which timed one file of 1 GB while N-1 files of 2 GB were
//! written (or read) beside it, and multiplied the rate by N. Here stands beside it what really was moved.
use std::path::PathBuf;
use std::time::Duration;

use keepup_results::DiskPhase;

use super::fio::FioFile;
use super::lanes::{Lane, Pace, Until, together};
use super::mode::{Mode, Target};
use super::mover::{Kind, Mover, Point};
use super::phase::RATE_GUESS;
use super::{Cost, DiskTest, Found, Place};
use crate::{Context, WorkloadError};

/// The files beside the first are so many times as large, so that they last until it is through.
const OTHERS: u64 = 2;

/// The test.
#[derive(Clone, Debug)]
pub struct Concurrent {
    /// Writers, readers or both, one after the other.
    pub kinds: Vec<Kind>,
    /// Most of them at once; it begins with one.
    pub most: u32,
    /// Size of a request and how many are under way for each file.
    pub point: Point,
    /// Bytes of the file that is timed.
    pub file_bytes: u64,
    /// Whether all use parts of one file.
    pub is_shared: bool,
    /// How requests are made.
    pub mode: Mode,
}

impl Concurrent {
    /// What a phase is called.
    pub fn phase_name(kind: Kind, files: u32) -> String {
        format!("{} {files} at once", kind.verb())
    }

    /// What the paper calls the normalised rate: that of the first file times the number of files, in bytes
    /// per second.
    pub fn normalised(phase: &DiskPhase) -> Option<f64> {
        Some(phase.parts.first()?.bytes_per_second()? * phase.parts.len() as f64)
    }

    fn bytes_of(&self, n: u32) -> u64 {
        self.file_bytes * if n == 0 && !self.is_shared { 1 } else { OTHERS }
    }

    fn targets(&self, place: &mut Place) -> Result<Vec<Target>, WorkloadError> {
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
        let space = (0..self.most).map(|n| self.bytes_of(n)).sum::<u64>();
        // While the first file is moved once, each of the others is at most through with its own.
        let moved: u64 = (1..=self.most).map(|n| (0..n).map(|n| self.bytes_of(n)).sum::<u64>()).sum();
        let each = |kind: &Kind| if *kind == Kind::Write { moved } else { space };
        let written = self.kinds.iter().map(each).sum();
        let time = Duration::from_secs_f64((moved * self.kinds.len() as u64) as f64 / RATE_GUESS);
        Cost { bytes_written: written, space_bytes: space, time }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&self.mode);
        for (&kind, volume) in self.kinds.iter().flat_map(|kind| volumes.iter().map(move |v| (kind, v))) {
            for files in 1..=self.most {
                for n in 0..files {
                    file.job(&Self::phase_name(kind, files), volume, kind, self.point, n == 0);
                    // All end with the first one that does.
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
        place: &mut Place,
        found: &mut Found,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let volume = place.first.volume();
        let mut targets = self.targets(place)?;
        for &kind in &self.kinds {
            if kind == Kind::Read {
                (context.note)("writing what will be read");
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
                match together(name, &self.mode, &mut lanes, Until::First(self.file_bytes), context)? {
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
