//! Transfer sizes against depths: how large must a request be, and how many must be under way, until a disk
//! gives all it has? Write and read, one surface each.
//!
//! Source: the transfer-size sweeps (512 B to 8 MiB) of the magazine's RAID test, with the depth as a second
//! axis. Each point goes on in one file that was written once before, end to end, so that nothing is read
//! or overwritten that never held data.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::histogram::Latency;
use keepup_results::{DiskPhase, DiskSkipped};
use keepup_sys::engine::{BlockEngine, Completion, EngineChoice, FileSlot, open};
use keepup_sys::file::{Access, create_preallocated, direct_alignment, sync_data};
use keepup_sys::pool::{GRAIN_BYTES, Pool};
use keepup_sys::waker::Waker;

use super::phase::{PhaseClock, RATE_GUESS, told};
use super::{Cost, DiskTest, Found, Place};
use crate::ceiling::system;
use crate::data::{SEED, fill_random};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Memory that the blocks under way may take; points that need more are left out. Bytes.
pub const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Size of the requests that fill the file, and how many of them are under way.
const FILL: Point = Point { bytes: 4 << 20, depth: 8 };
/// Every page is stamped, so that no page is written twice with the same contents.
const PAGE_BYTES: usize = 4096;
/// What no disk writes more than, for the bound on what is written, in bytes per second.
const RATE_MAX: f64 = 10e9;

/// One point of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Bytes of a request.
    pub bytes: usize,
    /// Requests under way.
    pub depth: usize,
}

/// The test.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Points, in the order in which they are measured; first all writes, then all reads.
    pub points: Vec<Point>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How long each point is measured.
    pub time: Duration,
    /// How requests are made.
    pub engine: EngineChoice,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
}

/// The file, open, and what moves its bytes.
struct Target {
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    slot: FileSlot,
    file: Arc<std::os::fd::OwnedFd>,
    path: PathBuf,
    /// What offsets and lengths must be multiples of, in bytes, where the kernel tells.
    align: Option<u32>,
    ended: Vec<Completion>,
    stamp: u64,
}

/// How far a point has got.
struct Run {
    kind: Kind,
    point: Point,
    at: u64,
    requests: u64,
    latency: Latency,
}

impl Kind {
    fn name(self, point: Point) -> String {
        let verb = if self == Self::Write { "write" } else { "read" };
        format!("{verb} {} B depth {}", point.bytes, point.depth)
    }
}

impl Point {
    /// Memory that its requests take, in bytes.
    pub fn memory_bytes(self) -> usize {
        self.bytes.next_multiple_of(GRAIN_BYTES) * self.depth
    }
}

impl Sweep {
    fn target(&self, scratch: &mut Scratch) -> Result<Target, WorkloadError> {
        let path = scratch.file("data");
        let made = create_preallocated(&path, self.file_bytes)?;
        if made.access != Access::Direct {
            return Err(keepup_sys::SysError::NotDirect { path }.into());
        }
        let points = self.points.iter().chain([&FILL]);
        let possible = points.filter(|point| point.memory_bytes() <= MEMORY_BYTES_MAX);
        let memory = possible.clone().map(|point| point.memory_bytes()).max().unwrap_or(0);
        let depth = possible.map(|point| point.depth).max().unwrap_or(1);
        let mut pool = Pool::new(memory + (1 << 20))?;
        if let Some(mut all) = pool.take(pool.block_bytes_max()) {
            fill_random(&mut all, SEED);
            pool.give_back(all);
        }
        let (mut engine, _) = open(self.engine, &pool.memory(), &Waker::new()?, depth)?;
        engine.set_gather(false);
        let file = Arc::new(made.file);
        let slot = engine.add_file(Arc::clone(&file))?;
        let align = direct_alignment(&file);
        Ok(Target { engine, pool, slot, file, path, align, ended: Vec::new(), stamp: 0 })
    }

    /// Why a point cannot be measured here.
    fn obstacle(&self, point: Point, target: &Target) -> Option<String> {
        if point.memory_bytes() > MEMORY_BYTES_MAX {
            return Some(format!("needs {} MiB of memory", point.memory_bytes() >> 20));
        }
        if point.bytes as u64 > self.file_bytes {
            return Some("larger than the file".to_owned());
        }
        let align = target.align? as usize;
        (!point.bytes.is_multiple_of(align)).then(|| format!("direct I/O takes multiples of {align} bytes"))
    }

    /// One point; nothing when it was to stop before its end.
    fn point(
        &self,
        kind: Kind,
        point: Point,
        target: &mut Target,
        context: &mut Context,
    ) -> Result<Option<DiskPhase>, WorkloadError> {
        let clock = Arc::clone(&context.clock);
        let mut run = Run { kind, point, at: 0, requests: 0, latency: Latency::new() };
        let begun = PhaseClock::begin(clock.as_ref());
        let end_ns = clock.now_ns() + self.time.as_nanos() as u64;
        let mut starts = Starts::new(point.depth);
        while clock.now_ns() < end_ns {
            if context.stop.load(Ordering::Acquire) {
                target.settle()?;
                return Ok(None);
            }
            let now_ns = clock.now_ns();
            while target.engine.in_flight() < point.depth
                && target.start(&mut run, self.file_bytes, &mut starts, now_ns)
            {}
            target.wait()?;
            starts.end(&mut target.ended, clock.now_ns(), &mut run.latency, &mut target.pool)?;
        }
        while target.engine.in_flight() > 0 {
            target.wait()?;
            starts.end(&mut target.ended, clock.now_ns(), &mut run.latency, &mut target.pool)?;
        }
        if kind == Kind::Write {
            sync_data(&target.file, &target.path)?;
        }
        let bytes = run.requests * point.bytes as u64;
        let mut phase = begun.end(clock.as_ref(), kind.name(point), 1, bytes);
        phase.operations = Some(run.requests);
        phase.latency = Some(told(&run.latency));
        Ok(Some(phase))
    }
}

/// When each request under way began, by its token.
struct Starts {
    begun_ns: Vec<u64>,
    free: Vec<usize>,
}

impl Starts {
    fn new(depth: usize) -> Self {
        Self { begun_ns: vec![0; depth], free: (0..depth).collect() }
    }

    fn begin(&mut self, now_ns: u64) -> u64 {
        let token = self.free.pop().unwrap_or(0);
        self.begun_ns[token] = now_ns;
        token as u64
    }

    fn end(
        &mut self,
        ended: &mut Vec<Completion>,
        now_ns: u64,
        latency: &mut Latency,
        pool: &mut Pool,
    ) -> Result<(), WorkloadError> {
        let mut outcome = Ok(());
        for completion in ended.drain(..) {
            let token = completion.token as usize;
            latency.record_ns(now_ns.saturating_sub(self.begun_ns[token]));
            self.free.push(token);
            if let Some(block) = completion.block {
                pool.give_back(block);
            }
            outcome = outcome.and(completion.result);
        }
        outcome.map_err(system("write to or read from the volume"))
    }
}

impl Target {
    /// Starts a request; false when there is no memory for another.
    fn start(&mut self, run: &mut Run, file_bytes: u64, starts: &mut Starts, now_ns: u64) -> bool {
        let bytes = run.point.bytes;
        let Some(mut block) = self.pool.take(bytes) else { return false };
        let token = starts.begin(now_ns);
        if run.at + bytes as u64 > file_bytes {
            run.at = 0;
        }
        match run.kind {
            Kind::Write => {
                for page in (0..bytes).step_by(PAGE_BYTES) {
                    self.stamp += 1;
                    block[page..page + 8].copy_from_slice(&self.stamp.to_le_bytes());
                }
                self.engine.write(self.slot, run.at, block, bytes, token);
            }
            Kind::Read => self.engine.read(self.slot, run.at, block, bytes, token),
        }
        run.at += bytes as u64;
        run.requests += 1;
        true
    }

    fn wait(&mut self) -> Result<(), WorkloadError> {
        Ok(self.engine.wait(Duration::from_secs(1), &mut self.ended)?)
    }

    /// Waits for everything under way, whatever becomes of it.
    fn settle(&mut self) -> Result<(), WorkloadError> {
        while self.engine.in_flight() > 0 {
            self.wait()?;
        }
        for block in self.ended.drain(..).filter_map(|completion| completion.block) {
            self.pool.give_back(block);
        }
        Ok(())
    }

    /// Writes the whole file once.
    fn fill(&mut self, file_bytes: u64, context: &Context) -> Result<(), WorkloadError> {
        let mut run = Run { kind: Kind::Write, point: FILL, at: 0, requests: 0, latency: Latency::new() };
        let mut starts = Starts::new(FILL.depth);
        let clock = context.clock.as_ref();
        let mut left = file_bytes / FILL.bytes as u64;
        while (left > 0 && !context.stop.load(Ordering::Acquire)) || self.engine.in_flight() > 0 {
            while left > 0
                && self.engine.in_flight() < FILL.depth
                && self.start(&mut run, file_bytes, &mut starts, clock.now_ns())
            {
                left -= 1;
            }
            self.wait()?;
            starts.end(&mut self.ended, clock.now_ns(), &mut run.latency, &mut self.pool)?;
        }
        Ok(sync_data(&self.file, &self.path)?)
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

    fn measure(
        &self,
        place: &mut Place,
        found: &mut Found,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let mut target = self.target(&mut place.first)?;
        target.fill(self.file_bytes, context)?;
        for kind in [Kind::Write, Kind::Read] {
            for &point in &self.points {
                if let Some(why) = self.obstacle(point, &target) {
                    found.skipped.push(DiskSkipped { name: kind.name(point), why });
                    continue;
                }
                match self.point(kind, point, &mut target, context)? {
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
