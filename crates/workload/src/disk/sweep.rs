//! Transfer sizes against depths: how large must a request be, and how many must be under way, until a disk
//! gives all it has? Write and read, one surface each.
//!
//! Source: the transfer-size sweeps (512 B to 8 MiB) of the magazine's RAID test, with the depth as a second
//! axis. Each point goes on in one file that was written once before, end to end, so that nothing is read
//! or overwritten that never held data.
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::histogram::Latency;
use keepup_results::{DiskPhase, DiskSkipped};
use keepup_sys::file::{Access, direct_alignment, forget_cached};

use super::fio::FioFile;
use super::mode::{Mode, Space, Target};
use super::mover::{Ended, Kind, Mover, Point};
use super::phase::{PhaseClock, RATE_GUESS, told};
use super::{Cost, DiskTest, Found, Place};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Memory that the blocks under way may take; points that need more are left out. Bytes.
pub const MEMORY_BYTES_MAX: usize = 512 << 20;
/// What no disk writes more than, for the bound on what is written, in bytes per second.
pub(super) const RATE_MAX: f64 = 10e9;

/// The test.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Points, in the order in which they are measured; first all writes, then all reads.
    pub points: Vec<Point>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How long each point is measured.
    pub time: Duration,
    /// How requests are made; the space is always overwritten.
    pub mode: Mode,
}

fn name(kind: Kind, point: Point) -> String {
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

    /// Why a point cannot be measured here; `align` is what offsets and lengths must be multiples of, in
    /// bytes, where the kernel tells.
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

    /// One point; nothing when it was to stop before its end.
    fn point(
        &self,
        kind: Kind,
        point: Point,
        mover: &mut Mover,
        context: &Context,
    ) -> Result<Option<DiskPhase>, WorkloadError> {
        let clock = context.clock.as_ref();
        if kind == Kind::Read {
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
        if kind == Kind::Write {
            mover.flush()?;
        }
        let mut phase = begun.end(clock, name(kind, point), 1, requests * point.bytes as u64);
        phase.operations = Some(requests);
        phase.latency = Some(told(&latency));
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
            for kind in [Kind::Write, Kind::Read] {
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
        place: &mut Place,
        found: &mut Found,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let mut mover = self.mover(&mut place.first, context)?;
        let align = direct_alignment(&mover.target.file);
        for kind in [Kind::Write, Kind::Read] {
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
