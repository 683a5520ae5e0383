//! Paced writers and readers on one disk: with how many sensors of which rate does a reader still get what he
//! needs, and how long does a write wait?
//!
//! Source: the event logger's test, where N writers made a pause after each event and one reader went as fast
//! as he could; the map of paced readers against paced writers is that of diskplorer.
use std::path::PathBuf;
use std::time::Duration;

use super::fio::FioFile;
use super::lanes::{Lane, Pace, Until, together};
use super::mode::{Mode, Space, Target};
use super::mover::{Kind, Mover, Point};
use super::phase::RATE_GUESS;
use super::sweep::RATE_MAX;
use super::{Cost, DiskTest, Found, Place};
use crate::{Context, WorkloadError};

/// The test.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// What is measured, in order.
    pub settings: Vec<Setting>,
    /// Size of an event, and how many of a writer or reader are under way.
    pub point: Point,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// Before the window opens.
    pub ramp: Duration,
    /// The window.
    pub run: Duration,
    /// How requests are made.
    pub mode: Mode,
}

/// So many of a kind, of one pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// How many.
    pub number: u32,
    /// When each of them does the next.
    pub pace: Pace,
}

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The writers.
    pub writers: Crowd,
    /// The readers.
    pub readers: Crowd,
}

impl Crowd {
    /// Every number with every pace; nobody has no pace.
    pub fn all(numbers: &[u32], paces: &[Pace]) -> Vec<Self> {
        let mut crowds = Vec::new();
        for &number in numbers {
            for &pace in paces {
                let crowd = Self { number, pace: if number == 0 { Pace::Free } else { pace } };
                if !crowds.contains(&crowd) {
                    crowds.push(crowd);
                }
            }
        }
        crowds
    }

    fn told(self, kind: Kind) -> String {
        let plural = if self.number == 1 { "" } else { "s" };
        let pace = match self.pace {
            _ if self.number == 0 => String::new(),
            Pace::Free => " flat out".to_owned(),
            Pace::Every(period) => format!(" every {period:?}"),
            Pace::Pause(pause) => format!(" pausing {pause:?}"),
        };
        format!("{} {}{plural}{pace}", self.number, kind.doer())
    }
}

impl Setting {
    /// All readers with all writers; nobody with nobody is left out.
    pub fn all(writers: &[Crowd], readers: &[Crowd]) -> Vec<Self> {
        let pairs =
            readers.iter().flat_map(|&readers| writers.iter().map(move |&writers| Self { writers, readers }));
        pairs.filter(|setting| setting.writers.number + setting.readers.number > 0).collect()
    }

    /// What its phase is called.
    pub fn name(&self) -> String {
        format!("{}, {}", self.writers.told(Kind::Write), self.readers.told(Kind::Read))
    }
}

impl Throttle {
    fn most(&self, kind: Kind) -> u32 {
        let number = |setting: &Setting| match kind {
            Kind::Write => setting.writers.number,
            Kind::Read => setting.readers.number,
        };
        self.settings.iter().map(number).max().unwrap_or(0)
    }

    /// Files for the most writers or readers that are ever there.
    fn targets(
        &self,
        kind: Kind,
        place: &mut Place,
        context: &mut Context,
    ) -> Result<Vec<Target>, WorkloadError> {
        let mut targets = Vec::new();
        for n in 0..self.most(kind) {
            let path = place.first.file(&format!("{}{n}", kind.verb()));
            let target = Target::create(&path, self.file_bytes, &self.mode)?;
            targets.push(match kind {
                Kind::Write if self.mode.space != Space::Overwritten => target,
                _ => Mover::fill(target, &self.mode, context)?,
            });
        }
        Ok(targets)
    }

    fn written_bytes(&self, setting: &Setting) -> f64 {
        let time = (self.ramp + self.run).as_secs_f64();
        let each = self.point.bytes as f64;
        let (writers, all) = (f64::from(setting.writers.number), RATE_MAX * time);
        match setting.writers.pace {
            _ if setting.writers.number == 0 => 0.0,
            Pace::Every(time_each) | Pace::Pause(time_each) => {
                (writers * each * (time / time_each.as_secs_f64()).ceil()).min(all)
            }
            Pace::Free => all,
        }
    }
}

impl DiskTest for Throttle {
    fn name(&self) -> &'static str {
        "throttle"
    }

    fn cost(&self) -> Cost {
        let files = self.file_bytes * u64::from(self.most(Kind::Write) + self.most(Kind::Read));
        let written: f64 = self.settings.iter().map(|setting| self.written_bytes(setting)).sum();
        let running = (self.ramp + self.run) * self.settings.len() as u32;
        let fill = Duration::from_secs_f64(files as f64 / RATE_GUESS);
        Cost { bytes_written: files + written as u64, space_bytes: files, time: fill + running }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&self.mode);
        for (setting, volume) in self.settings.iter().flat_map(|s| volumes.iter().map(move |v| (s, v))) {
            let crowds = [(Kind::Write, setting.writers), (Kind::Read, setting.readers)];
            for (n, (kind, crowd)) in crowds.into_iter().filter(|(_, c)| c.number > 0).enumerate() {
                file.job(&setting.name(), volume, kind, self.point, n == 0);
                file.set("numjobs", crowd.number);
                file.set("filename_format", format!("keepup-fio-{}.$jobnum", kind.verb()));
                file.set("size", self.file_bytes);
                file.timed(self.ramp, self.run);
                file.paced(crowd.pace, self.point);
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
        if self.most(Kind::Read) > 0 {
            (context.note)("writing what will be read");
        }
        let readers = self.targets(Kind::Read, place, context)?;
        let writers = self.targets(Kind::Write, place, context)?;
        let until = Until::Time { ramp: self.ramp, run: self.run };
        for setting in &self.settings {
            (context.note)(&setting.name());
            let crowd = |kind: Kind, crowd: Crowd, targets: &[Target]| {
                let lane = |(n, target): (usize, &Target)| Lane {
                    name: format!("{} {}", kind.doer(), n + 1),
                    volume: volume.clone(),
                    target: target.clone(),
                    kind,
                    point: self.point,
                    pace: crowd.pace,
                };
                targets.iter().take(crowd.number as usize).enumerate().map(lane).collect::<Vec<_>>()
            };
            let mut lanes = crowd(Kind::Write, setting.writers, &writers);
            lanes.extend(crowd(Kind::Read, setting.readers, &readers));
            match together(setting.name(), &self.mode, &mut lanes, until, context)? {
                Some(phase) => found.phases.push(phase),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "throttle_tests.rs"]
mod tests;
