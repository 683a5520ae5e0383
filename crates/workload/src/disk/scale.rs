//! Scaling with the number of volumes: added throughput and CPU cost per volume.
//!
//! Source: the acoustic camera's case study, which ran Iometer (2 MB sequential writes for 1 min
//! after 10 s of ramp-up) against the number of disks; and the event logger's, which ran its two
//! disk controllers alone and together.
use std::path::PathBuf;
use std::time::Duration;

use keepup_measure::stats::least_squares_slope;
use keepup_results::{DiskFinding, DiskPhase, ScaleFinding};

use super::fio::FioFile;
use super::lanes::{Lane, Pace, Until, run_lanes};
use super::phase::RATE_GUESS;
use super::sweep::RATE_MAX;
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::file_io::mode::{Mode, Space, Target};
use crate::file_io::{IoDirection, Mover, Point};
use crate::{Context, WorkloadError};

/// Minimum gain of a useful additional volume, as a share of the first one's throughput.
const GAIN_MIN: f64 = 0.5;

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Groups of volumes to test together, one per phase.
    pub steps: Vec<Step>,
    /// Direction; the paper wrote.
    pub kind: IoDirection,
    /// Request size and queue depth per volume.
    pub point: Point,
    /// File size per volume, bytes.
    pub file_bytes: u64,
    /// Warm-up time, not measured.
    pub ramp: Duration,
    /// Measurement time.
    pub run: Duration,
    /// I/O settings.
    pub mode: Mode,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name.
    pub name: String,
    /// Indices of the volumes.
    pub volumes: Vec<usize>,
}

impl Step {
    /// Steps with 1 to `volumes` volumes.
    pub fn up_to(volumes: usize) -> Vec<Self> {
        let name = |n: usize| if n == 1 { "1 volume".to_owned() } else { format!("{n} volumes") };
        (1..=volumes).map(|n| Self { name: name(n), volumes: (0..n).collect() }).collect()
    }

    /// Steps with each group alone, then all together; `groups` are the group sizes.
    pub fn groups(groups: &[usize]) -> Vec<Self> {
        let mut first = 0;
        let mut steps = Vec::new();
        for (n, &volumes) in groups.iter().enumerate() {
            let range = first..first + volumes;
            steps.push(Self { name: format!("group {}", n + 1), volumes: range.collect() });
            first += volumes;
        }
        steps.push(Self { name: format!("{} groups", groups.len()), volumes: (0..first).collect() });
        steps
    }
}

impl Scale {
    fn lanes(&self, place: &mut TestDirectories, context: &mut Context) -> Result<Vec<Lane>, WorkloadError> {
        let mut lanes = Vec::new();
        for scratch in std::iter::once(&mut place.first).chain(&mut place.others) {
            let target = Target::create(&scratch.file("data"), self.file_bytes, &self.mode)?;
            let volume = scratch.volume();
            let target = match self.kind {
                IoDirection::Write if self.mode.space != Space::Overwritten => target,
                _ => {
                    (context.note)(&format!("filling {:.1} GB on {volume}", self.file_bytes as f64 / 1e9));
                    Mover::fill(target, &self.mode, context)?
                }
            };
            let (kind, point, pace) = (self.kind, self.point, Pace::Free);
            lanes.push(Lane { name: volume.clone(), volume, target, kind, point, pace });
        }
        Ok(lanes)
    }
}

impl DiskTest for Scale {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn cost(&self) -> Cost {
        let steps = self.steps.len() as u32;
        let running = (self.ramp + self.run) * steps;
        let fill = Duration::from_secs_f64(self.file_bytes as f64 / RATE_GUESS);
        let writes = if self.kind == IoDirection::Write { running.as_secs_f64() * RATE_MAX } else { 0.0 };
        Cost {
            bytes_written: self.file_bytes + writes as u64,
            space_bytes: self.file_bytes,
            time: fill + running,
        }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&self.mode);
        for step in &self.steps {
            for (n, volume) in step.volumes.iter().filter_map(|volume| volumes.get(*volume)).enumerate() {
                file.job(&step.name, volume, self.kind, self.point, n == 0);
                file.set("filename", "keepup-fio-data");
                file.set("size", self.file_bytes);
                file.timed(self.ramp, self.run);
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
        let lanes = self.lanes(place, context)?;
        let until = Until::Time { ramp: self.ramp, run: self.run };
        for step in &self.steps {
            (context.note)(&format!("{}: {:.0} s", step.name, (self.ramp + self.run).as_secs_f64()));
            let chosen = step.volumes.iter().filter_map(|volume| lanes.get(*volume));
            let mut chosen: Vec<Lane> = chosen.cloned().collect();
            match run_lanes(step.name.clone(), &self.mode, &mut chosen, until, context)? {
                Some(phase) => found.phases.push(phase),
                None => return Ok(()),
            }
        }
        let numbers: Vec<usize> = self.steps.iter().map(|step| step.volumes.len()).collect();
        if numbers.iter().copied().eq(1..=numbers.len()) {
            found.finding = finding(&found.phases).map(DiskFinding::Scale);
        }
        Ok(())
    }
}

/// Finding of phases with 1, 2, ... volumes; none if the first transferred nothing.
fn finding(phases: &[DiskPhase]) -> Option<ScaleFinding> {
    let rates: Vec<f64> = phases.iter().map(|phase| phase.bytes_per_second().unwrap_or(0.0)).collect();
    let first = rates.first().copied().filter(|rate| *rate > 0.0)?;
    let gains: Vec<f64> = rates.windows(2).map(|pair| (pair[1] - pair[0]) / first).collect();
    let knee = 1 + gains.iter().take_while(|gain| **gain >= GAIN_MIN).count();
    let cpu = |phase: &DiskPhase| phase.cpu_seconds / phase.seconds;
    let points: Vec<(f64, f64)> =
        phases[..knee].iter().enumerate().map(|(n, phase)| ((n + 1) as f64, cpu(phase))).collect();
    Some(ScaleFinding {
        knee_volumes: knee as u32,
        knee_is_beyond: knee == phases.len(),
        cpu_per_volume: least_squares_slope(&points),
        gains,
    })
}

#[cfg(test)]
#[path = "scale_tests.rs"]
mod tests;
