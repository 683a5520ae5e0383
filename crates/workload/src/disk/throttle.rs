//! Paced writers and readers on one disk: reader throughput and write latency as a function of the
//! number and rate of sensors.
//!
//! Source: the event logger's test with N writers that paused after each event and one unthrottled
//! reader; the map of paced readers against paced writers is that of diskplorer.
use std::path::PathBuf;
use std::time::Duration;

use keepup_measure::sum::Sums;

use super::fio::FioFile;
use super::lanes::{Lane, Pace, Until, run_lanes};
use super::phase::RATE_GUESS;
use super::sweep::RATE_MAX;
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::file_io::mode::{Mode, Space, Target};
use crate::file_io::{IoDirection, Mover, Point};
use crate::{Context, WorkloadError};

/// Parameters of the test. On several volumes at once, every volume has all writers and readers.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// Settings to measure, in order.
    pub settings: Vec<Setting>,
    /// Event size and queue depth per writer or reader.
    pub point: Point,
    /// File size, bytes.
    pub file_bytes: u64,
    /// Warm-up time, not measured.
    pub ramp: Duration,
    /// Measurement time.
    pub run: Duration,
    /// I/O settings.
    pub mode: Mode,
    /// Whether its volumes are used at once, for the fio job.
    pub together: bool,
}

/// A number of writers or readers with the same pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientGroup {
    /// Number of clients.
    pub number: u32,
    /// Schedule of each client.
    pub pace: Pace,
}

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Writers.
    pub writers: ClientGroup,
    /// Readers.
    pub readers: ClientGroup,
}

impl ClientGroup {
    /// All combinations of numbers and paces; zero clients appear only once.
    pub fn all(numbers: &[u32], paces: &[Pace]) -> Vec<Self> {
        let mut groups = Vec::new();
        for &number in numbers {
            for &pace in paces {
                let group = Self { number, pace: if number == 0 { Pace::Free } else { pace } };
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
        groups
    }

    fn label(self, kind: IoDirection) -> String {
        let plural = if self.number == 1 { "" } else { "s" };
        let pace = match self.pace {
            _ if self.number == 0 => String::new(),
            Pace::Free => " flat out".to_owned(),
            Pace::Every(period) => format!(" every {period:?}"),
            Pace::Pause(pause) => format!(" pausing {pause:?}"),
        };
        format!("{} {}{plural}{pace}", self.number, kind.agent())
    }
}

impl Setting {
    /// All combinations of readers and writers, except none of both.
    pub fn all(writers: &[ClientGroup], readers: &[ClientGroup]) -> Vec<Self> {
        let pairs =
            readers.iter().flat_map(|&readers| writers.iter().map(move |&writers| Self { writers, readers }));
        pairs.filter(|setting| setting.writers.number + setting.readers.number > 0).collect()
    }

    /// Name of the phase.
    pub fn name(&self) -> String {
        format!("{}, {}", self.writers.label(IoDirection::Write), self.readers.label(IoDirection::Read))
    }
}

impl Throttle {
    fn most(&self, kind: IoDirection) -> u32 {
        let number = |setting: &Setting| match kind {
            IoDirection::Write => setting.writers.number,
            IoDirection::Read => setting.readers.number,
        };
        self.settings.iter().map(number).max().unwrap_or(0)
    }

    /// One client per file on each volume, as many as the largest number of writers or readers of all
    /// settings. A client of a setting is one with a lower number than the setting has clients.
    fn clients(
        &self,
        kind: IoDirection,
        place: &mut TestDirectories,
        context: &mut Context,
    ) -> Result<Vec<(u32, Lane)>, WorkloadError> {
        let mut clients = Vec::new();
        let is_alone = place.others.is_empty();
        for scratch in std::iter::once(&mut place.first).chain(&mut place.others) {
            let volume = scratch.volume();
            for n in 0..self.most(kind) {
                let path = scratch.file(&format!("{}{n}", kind.verb()));
                let target = Target::create(&path, self.file_bytes, &self.mode)?;
                let target = match kind {
                    IoDirection::Write if self.mode.space != Space::Overwritten => target,
                    _ => Mover::fill(target, &self.mode, context)?,
                };
                let name = format!("{} {}", kind.agent(), n + 1);
                let name = if is_alone { name } else { format!("{name} on {volume}") };
                let (point, pace, volume) = (self.point, Pace::Free, volume.clone());
                clients.push((n, Lane { name, volume, target, kind, point, pace }));
            }
        }
        Ok(clients)
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
        let files = self.file_bytes * u64::from(self.most(IoDirection::Write) + self.most(IoDirection::Read));
        let written: f64 = self.settings.iter().map(|setting| self.written_bytes(setting)).float_sum();
        let running = (self.ramp + self.run) * self.settings.len() as u32;
        let fill = Duration::from_secs_f64(files as f64 / RATE_GUESS);
        Cost { bytes_written: files + written as u64, space_bytes: files, time: fill + running }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&self.mode);
        let places = || volumes.iter().enumerate();
        for (setting, (place, volume)) in self.settings.iter().flat_map(|s| places().map(move |v| (s, v))) {
            let is_later = self.together && place > 0;
            let groups = [(IoDirection::Write, setting.writers), (IoDirection::Read, setting.readers)];
            for (n, (kind, group)) in groups.into_iter().filter(|(_, c)| c.number > 0).enumerate() {
                file.job(&setting.name(), volume, kind, self.point, n == 0 && !is_later);
                file.set("numjobs", group.number);
                file.set("filename_format", format!("keepup-fio-{}.$jobnum", kind.verb()));
                file.set("size", self.file_bytes);
                file.timed(self.ramp, self.run);
                file.paced(group.pace, self.point);
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
        if self.most(IoDirection::Read) > 0 {
            (context.note)("preparing files for reading");
        }
        let readers = self.clients(IoDirection::Read, place, context)?;
        let writers = self.clients(IoDirection::Write, place, context)?;
        let until = Until::Time { ramp: self.ramp, run: self.run };
        for setting in &self.settings {
            (context.note)(&setting.name());
            let of = |group: ClientGroup, clients: &[(u32, Lane)]| {
                let chosen = clients.iter().filter(|(n, _)| *n < group.number);
                chosen.map(|(_, lane)| Lane { pace: group.pace, ..lane.clone() }).collect::<Vec<_>>()
            };
            let mut lanes = of(setting.writers, &writers);
            lanes.extend(of(setting.readers, &readers));
            match run_lanes(setting.name(), &self.mode, &mut lanes, until, context)? {
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
