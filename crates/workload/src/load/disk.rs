//! Disk load: sequential requests to one file in a loop, with a small queue depth and direct I/O
//! where supported.
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_plan::DiskWay;
use keepup_sys::SysError;
use keepup_sys::file::forget_cached;

use super::pace::Pacer;
use super::{LOOK, LoadGenerator, LoadRun};
use crate::file_io::mode::{Access, Mode, Space, Target};
use crate::file_io::{IoDirection, Mover, Point};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// File name.
const FILE: &str = "load";
/// Target duration of a request; its size is bounded by the next two constants.
const REQUEST_SECONDS: f64 = 0.004;
const REQUEST_BYTES: (usize, usize) = (64 << 10, 1 << 20);
/// Maximum queue depth.
const DEPTH: usize = 4;
/// Flush interval of written data.
const FLUSH_NS: u64 = 1_000_000_000;
/// EINVAL: returned by file systems without direct I/O.
const NOT_DIRECT: i32 = 22;

/// State of a disk load.
pub(super) struct DiskLoad {
    rate: f64,
    directory: PathBuf,
    kind: IoDirection,
    bytes: u64,
    mode: Mode,
    target: Option<Target>,
    scratch: Option<Scratch>,
}

impl DiskLoad {
    /// A load of `rate` bytes per second to or from a file of `bytes` in `directory`.
    pub(super) fn new(rate: f64, directory: PathBuf, way: DiskWay, bytes: u64) -> Self {
        let kind = match way {
            DiskWay::Read => IoDirection::Read,
            DiskWay::Write => IoDirection::Write,
        };
        // Overwriting in place keeps the file size constant.
        let mode = Mode { space: Space::Overwritten, ..Mode::default() };
        Self { rate, directory, kind, bytes, mode, target: None, scratch: None }
    }

    /// Request size and queue depth.
    fn point(&self) -> Point {
        let wanted = (self.rate * REQUEST_SECONDS) as usize;
        let bytes = wanted.clamp(REQUEST_BYTES.0, REQUEST_BYTES.1);
        let lower = 1 << bytes.ilog2();
        // Nearest power of two.
        Point { bytes: if bytes - lower > lower / 2 { 2 * lower } else { lower }, depth: DEPTH }
    }
}

/// Removes files that a killed worker left in `directory`.
pub(super) fn remove_left(directory: &Path, name: &str) {
    Scratch::remove_left(directory, name, &[FILE]);
}

impl LoadGenerator for DiskLoad {
    fn prepare(&mut self, name: &str, context: &mut Context) -> Result<Vec<String>, WorkloadError> {
        let mut notes = Vec::new();
        let request = self.point().bytes as u64;
        let bytes = self.bytes.next_multiple_of(request);
        let scratch = self.scratch.insert(Scratch::create(&self.directory, name)?);
        let path = scratch.file(FILE);
        let target = match Target::create(&path, bytes, &self.mode) {
            Err(WorkloadError::Sys(SysError::File { source, .. }))
                if source.raw_os_error() == Some(NOT_DIRECT) =>
            {
                let where_to = self.directory.display();
                notes.push(format!("no direct I/O in {where_to}: the load uses the page cache"));
                self.mode.access = Access::Buffered;
                Target::create(&path, bytes, &self.mode)?
            }
            target => target?,
        };
        (context.note)(&format!(
            "disk load: filling {:.1} GB in {}",
            bytes as f64 / 1e9,
            self.directory.display()
        ));
        self.target = Some(Mover::fill(target, &self.mode, context)?);
        Ok(notes)
    }

    fn run(&mut self, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let point = self.point();
        let mut mover = Mover::new(target, &self.mode, &[point], 1)?;
        let outcome = self.work(&mut mover, point, run);
        // In-flight requests use memory owned by the mover.
        mover.settle()?;
        outcome
    }

    fn clean_up(&mut self) {
        self.target = None;
        self.scratch = None;
    }
}

impl DiskLoad {
    fn work(&self, mover: &mut Mover, point: Point, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
        let mut pacer = Pacer::new(point.bytes as f64, self.rate, run.begin_ns);
        let mut flush_ns = run.begin_ns + FLUSH_NS;
        while !run.is_over() {
            let now_ns = run.clock.now_ns();
            if self.kind == IoDirection::Write && now_ns >= flush_ns {
                mover.flush()?;
                flush_ns = run.clock.now_ns() + FLUSH_NS;
                continue;
            }
            let mut has_slot = mover.in_flight() < point.depth;
            if has_slot && pacer.due_ns() <= now_ns {
                if self.mode.access == Access::Buffered && mover.target.is_full(point.bytes) {
                    // Otherwise the next pass would be served from memory.
                    forget_cached(&mover.target.file, &mover.target.path)?;
                }
                has_slot = mover.start(self.kind, point.bytes, now_ns, now_ns)?;
                if has_slot {
                    pacer.begin(now_ns);
                    continue;
                }
            }
            let until_due = match has_slot {
                true => Duration::from_nanos(pacer.due_ns().saturating_sub(now_ns)),
                false => LOOK,
            };
            mover.wait(until_due.min(LOOK), run.clock, &mut |ended| run.add(ended.bytes as u64))?;
        }
        Ok(())
    }
}
