//! Throughput as a function of request size and queue depth, for writes and reads.
//!
//! Source: the transfer-size sweeps (512 B to 8 MiB) of the magazine's RAID test, with queue depth
//! as a second axis. All points use one completely written file, so that no request touches
//! unwritten space.
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::histogram::Latency;
use keepup_results::{DiskPhase, DiskSkipped, LatencyFigures};
use keepup_sys::file::{Access, direct_alignment, forget_cached};

use super::fio::FioFile;
use super::phase::{PhaseClock, RATE_GUESS};
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::file_io::mode::{Mode, Space, Target};
use crate::file_io::{Ended, IoDirection, Mover, Point};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Buffer memory limit; points that need more are skipped, bytes.
pub const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Upper bound of a disk's throughput, for the estimate of bytes written, bytes per second.
pub(super) const RATE_MAX: f64 = 10e9;

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Points in measurement order, first for writes, then for reads.
    pub points: Vec<Point>,
    /// File size, bytes.
    pub file_bytes: u64,
    /// Measurement time per point.
    pub time: Duration,
    /// I/O settings; files are always overwritten.
    pub mode: Mode,
}

fn name(kind: IoDirection, point: Point) -> String {
    format!("{} {} B depth {}", kind.verb(), point.bytes, point.depth)
}

impl Sweep {
    fn mover(&self, scratch: &mut Scratch, context: &Context) -> Result<Mover, WorkloadError> {
        let mode = Mode { space: Space::Overwritten, ..self.mode };
        let target = Target::create(&scratch.file("data"), self.file_bytes, &mode)?;
        let target = Mover::fill(target, &mode, context)?;
        let all = self.points.iter().copied();
        let points: Vec<Point> = all.filter(|point| point.memory_bytes() <= MEMORY_BYTES_MAX).collect();
        Mover::new(target, &mode, &points, 0)
    }

    /// Reason why a point cannot be measured; `align` is the alignment for direct I/O, bytes, if
    /// known.
    fn obstacle(&self, point: Point, align: Option<u32>) -> Option<String> {
        if point.memory_bytes() > MEMORY_BYTES_MAX {
            return Some(format!("needs {} MiB of memory", point.memory_bytes() >> 20));
        }
        if point.bytes as u64 > self.file_bytes {
            return Some("larger than the file".to_owned());
        }
        let align = align.filter(|_| self.mode.access == Access::Direct)? as usize;
        (!point.bytes.is_multiple_of(align)).then(|| format!("direct I/O takes multiples of {align} bytes"))
    }

    /// Measures one point; none if interrupted.
    fn point(
        &self,
        kind: IoDirection,
        point: Point,
        mover: &mut Mover,
        context: &Context,
    ) -> Result<Option<DiskPhase>, WorkloadError> {
        let clock = context.clock.as_ref();
        if kind == IoDirection::Read {
            forget_cached(&mover.target.file, &mover.target.path)?;
        }
        let (mut latency, mut requests) = (Latency::new(), 0);
        let mut each = |ended: Ended| latency.record_ns(ended.ended_ns.saturating_sub(ended.begun_ns));
        mover.target.rewind();
        let begun = PhaseClock::begin(clock);
        let end_ns = clock.now_ns() + self.time.as_nanos() as u64;
        while clock.now_ns() < end_ns {
            if context.stop.load(Ordering::Acquire) {
                mover.settle()?;
                return Ok(None);
            }
            let now_ns = clock.now_ns();
            while mover.in_flight() < point.depth && mover.start(kind, point.bytes, now_ns, now_ns)? {
                requests += 1;
            }
            mover.wait(Duration::from_secs(1), clock, &mut each)?;
        }
        while mover.in_flight() > 0 {
            mover.wait(Duration::from_secs(1), clock, &mut each)?;
        }
        if kind == IoDirection::Write {
            mover.flush()?;
        }
        let mut phase = begun.end(clock, name(kind, point), 1, requests * point.bytes as u64);
        phase.operations = Some(requests);
        phase.latency = Some(LatencyFigures::from(&latency));
        Ok(Some(phase))
    }
}

impl DiskTest for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn cost(&self) -> Cost {
        let points = self.points.len() as u32;
        let fill = Duration::from_secs_f64(self.file_bytes as f64 / RATE_GUESS);
        let written = self.file_bytes + ((self.time * points).as_secs_f64() * RATE_MAX) as u64;
        Cost { bytes_written: written, space_bytes: self.file_bytes, time: fill + self.time * points * 2 }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&Mode { space: Space::Overwritten, ..self.mode });
        for volume in volumes {
            for kind in [IoDirection::Write, IoDirection::Read] {
                for &point in self.points.iter().filter(|point| point.memory_bytes() <= MEMORY_BYTES_MAX) {
                    file.job(&name(kind, point), volume, kind, point, true);
                    file.set("filename", "keepup-fio-data");
                    file.set("size", self.file_bytes);
                    file.timed(Duration::ZERO, self.time);
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
        let mut mover = self.mover(&mut place.first, context)?;
        let align = direct_alignment(&mover.target.file);
        for kind in [IoDirection::Write, IoDirection::Read] {
            for &point in &self.points {
                if let Some(why) = self.obstacle(point, align) {
                    found.skipped.push(DiskSkipped { name: name(kind, point), why });
                    continue;
                }
                match self.point(kind, point, &mut mover, context)? {
                    Some(phase) => found.phases.push(phase),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
