//! A disk: requests to one file in a directory of its own, a few under way, from its front to its end and
//! again; past the page cache where the file system can do that.
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_plan::DiskWay;
use keepup_sys::SysError;
use keepup_sys::file::forget_cached;

use super::pace::Pacer;
use super::{LOOK, Load, Shift};
use crate::disk::mode::{Access, Mode, Space, Target};
use crate::disk::mover::{Kind, Mover, Point};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Name of the file.
const FILE: &str = "load";
/// Size of a request: what this time brings, within these bounds.
const REQUEST_SECONDS: f64 = 0.004;
const REQUEST_BYTES: (usize, usize) = (64 << 10, 1 << 20);
/// Requests under way at most.
const DEPTH: usize = 4;
/// What is written is brought to the disk so often.
const FLUSH_NS: u64 = 1_000_000_000;
/// EINVAL: what the kernel answers where a file system has no direct I/O.
const NOT_DIRECT: i32 = 22;

/// The load.
pub(super) struct DiskLoad {
    rate: f64,
    directory: PathBuf,
    kind: Kind,
    bytes: u64,
    mode: Mode,
    target: Option<Target>,
    scratch: Option<Scratch>,
}

impl DiskLoad {
    /// `rate` in bytes per second, to or from a file of `bytes` in `directory`.
    pub(super) fn new(rate: f64, directory: PathBuf, way: DiskWay, bytes: u64) -> Self {
        let kind = match way {
            DiskWay::Read => Kind::Read,
            DiskWay::Write => Kind::Write,
        };
        // Written anew where it was written, so that it never grows.
        let mode = Mode { space: Space::Overwritten, ..Mode::default() };
        Self { rate, directory, kind, bytes, mode, target: None, scratch: None }
    }

    /// Size of its requests, and how many are under way.
    fn point(&self) -> Point {
        let wanted = (self.rate * REQUEST_SECONDS) as usize;
        let bytes = wanted.clamp(REQUEST_BYTES.0, REQUEST_BYTES.1);
        let lower = 1 << bytes.ilog2();
        // The power of two that is nearer.
        Point { bytes: if bytes - lower > lower / 2 { 2 * lower } else { lower }, depth: DEPTH }
    }
}

/// Removes what the process of a load left in `directory`, which is nothing unless it was killed.
pub(super) fn remove_left(directory: &Path, name: &str) {
    Scratch::remove_left(directory, name, &[FILE]);
}

impl Load for DiskLoad {
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
                notes.push(format!("no direct I/O in {where_to}: it goes through the page cache"));
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

    fn run(&mut self, shift: &Shift<'_>) -> Result<(), WorkloadError> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let point = self.point();
        let mut mover = Mover::new(target, &self.mode, &[point], 1)?;
        let outcome = self.work(&mut mover, point, shift);
        // What is under way uses memory that goes with the mover.
        mover.settle()?;
        outcome
    }

    fn clean_up(&mut self) {
        self.target = None;
        self.scratch = None;
    }
}

impl DiskLoad {
    fn work(&self, mover: &mut Mover, point: Point, shift: &Shift<'_>) -> Result<(), WorkloadError> {
        let mut pacer = Pacer::new(point.bytes as f64, self.rate, shift.begin_ns);
        let mut flush_ns = shift.begin_ns + FLUSH_NS;
        while !shift.is_over() {
            let now_ns = shift.clock.now_ns();
            if self.kind == Kind::Write && now_ns >= flush_ns {
                mover.flush()?;
                flush_ns = shift.clock.now_ns() + FLUSH_NS;
                continue;
            }
            let mut has_room = mover.in_flight() < point.depth;
            if has_room && pacer.due_ns() <= now_ns {
                if self.mode.access == Access::Buffered && mover.target.is_full(point.bytes) {
                    // Else the next round would be one of memory.
                    forget_cached(&mover.target.file, &mover.target.path)?;
                }
                has_room = mover.start(self.kind, point.bytes, now_ns, now_ns)?;
                if has_room {
                    pacer.begin(now_ns);
                    continue;
                }
            }
            let until_due = match has_room {
                true => Duration::from_nanos(pacer.due_ns().saturating_sub(now_ns)),
                false => LOOK,
            };
            mover.wait(until_due.min(LOOK), shift.clock, &mut |ended| shift.add(ended.bytes as u64))?;
        }
        Ok(())
    }
}
