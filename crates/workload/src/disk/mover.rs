//! What moves bytes between memory and a file for one thread: requests of any size, several under way, each
//! with the moment when it was due.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::engine::{BlockEngine, Completion, FileSlot};
use keepup_sys::file::{forget_cached, sync_data};
use keepup_sys::pool::{GRAIN_BYTES, Pool};

use super::mode::{Mode, Space, Target};
use crate::{Context, WorkloadError};

/// Whether bytes go to the disk or come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To the disk.
    Write,
    /// From it.
    Read,
}

/// How large requests are and how many are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Bytes of a request.
    pub bytes: usize,
    /// Requests under way.
    pub depth: usize,
}

/// Size of the requests that fill a file, and how many of them are under way.
const FILL: Point = Point { bytes: 4 << 20, depth: 8 };

impl Kind {
    /// As in "writer".
    pub fn doer(self) -> &'static str {
        match self {
            Self::Write => "writer",
            Self::Read => "reader",
        }
    }

    /// As in "write".
    pub fn verb(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

impl Point {
    /// Memory that its requests take, in bytes.
    pub fn memory_bytes(self) -> usize {
        self.bytes.next_multiple_of(GRAIN_BYTES) * self.depth
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// When it should have begun.
    pub(super) due_ns: u64,
    /// When it began.
    pub(super) begun_ns: u64,
    /// When its end was seen.
    pub(super) ended_ns: u64,
    /// Its bytes.
    pub(crate) bytes: usize,
}

/// Moves the bytes of one file.
pub(crate) struct Mover {
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    slot: FileSlot,
    /// The file.
    pub(crate) target: Target,
    mode: Mode,
    pages: u64,
    ended: Vec<Completion>,
    /// What is under way, by its token.
    begun: Vec<Ended>,
    free: Vec<usize>,
}

impl Mover {
    /// Ready for requests of all `points`. Movers with different `seed`s write different data.
    pub(crate) fn new(
        target: Target,
        mode: &Mode,
        points: &[Point],
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let memory = points.iter().map(|point| point.memory_bytes()).max().unwrap_or(0);
        let depth = mode.depth(points.iter().map(|point| point.depth).max().unwrap_or(1));
        let (mut engine, pool) = mode.open(memory, depth, seed)?;
        let slot = engine.add_file(Arc::clone(&target.file))?;
        Ok(Self {
            engine,
            pool,
            slot,
            target,
            mode: *mode,
            pages: seed << 44,
            ended: Vec::with_capacity(depth),
            begun: vec![Ended::default(); depth],
            free: (0..depth).collect(),
        })
    }

    /// Writes the whole file once, so that nothing is read or overwritten that never held data, and leaves
    /// none of it in the page cache. Shorter when it was to stop.
    pub(crate) fn fill(target: Target, mode: &Mode, context: &Context) -> Result<Target, WorkloadError> {
        let bytes = target.bytes;
        let over = Mode { space: Space::Overwritten, ..*mode };
        let mut mover = Self::new(target, &over, &[FILL], 0xf111)?;
        let clock = context.clock.as_ref();
        mover.target.rewind();
        let mut left = bytes;
        while (left > 0 && !context.stop.load(Ordering::Acquire)) || mover.in_flight() > 0 {
            while left > 0 && mover.in_flight() < FILL.depth {
                let piece = left.min(FILL.bytes as u64) as usize;
                if !mover.start(Kind::Write, piece, clock.now_ns(), clock.now_ns())? {
                    break;
                }
                left -= piece as u64;
            }
            mover.wait(Duration::from_secs(1), clock, &mut |_| {})?;
        }
        mover.flush()?;
        forget_cached(&mover.target.file, &mover.target.path)?;
        mover.target.rewind();
        Ok(mover.target)
    }

    /// Requests under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    /// Starts a request that was due at `due_ns`; false when something must end first. At the end of the file
    /// it goes on from the front.
    pub(crate) fn start(
        &mut self,
        kind: Kind,
        bytes: usize,
        due_ns: u64,
        now_ns: u64,
    ) -> Result<bool, WorkloadError> {
        if self.target.is_full(bytes) {
            match kind {
                Kind::Write if self.in_flight() > 0 && self.mode.space != Space::Overwritten => {
                    return Ok(false);
                }
                Kind::Write => self.target.renew(&self.mode)?,
                Kind::Read => self.target.rewind(),
            }
        }
        let Some(&token) = self.free.last() else { return Ok(false) };
        let Some(mut block) = self.pool.take(bytes) else { return Ok(false) };
        self.free.pop();
        self.begun[token] = Ended { due_ns, begun_ns: now_ns, ended_ns: 0, bytes };
        let at = self.target.next(bytes);
        match kind {
            Kind::Write => {
                self.mode.pattern.stamp(&mut block[..bytes], &mut self.pages);
                self.engine.write(self.slot, at, block, bytes, token as u64);
            }
            Kind::Read => self.engine.read(self.slot, at, block, bytes, token as u64),
        }
        Ok(true)
    }

    /// Waits until something ends, at most `timeout`, and tells `each` of it.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        clock: &dyn Clock,
        each: &mut dyn FnMut(Ended),
    ) -> Result<(), WorkloadError> {
        self.engine.wait(timeout, &mut self.ended)?;
        let ended_ns = clock.now_ns();
        let mut outcome = Ok(());
        for completion in self.ended.drain(..) {
            let token = completion.token as usize;
            self.free.push(token);
            if let Some(block) = completion.block {
                self.pool.give_back(block);
            }
            match completion.result {
                Ok(()) => each(Ended { ended_ns, ..self.begun[token] }),
                Err(source) => {
                    let action = format!("write to or read from {}", self.target.path.display());
                    outcome = outcome.and(Err(WorkloadError::System { action, source }));
                }
            }
        }
        outcome
    }

    /// Waits for everything under way, whatever becomes of it.
    pub(crate) fn settle(&mut self) -> Result<(), WorkloadError> {
        while self.in_flight() > 0 {
            self.engine.wait(Duration::from_secs(1), &mut self.ended)?;
        }
        for completion in self.ended.drain(..) {
            self.free.push(completion.token as usize);
            if let Some(block) = completion.block {
                self.pool.give_back(block);
            }
        }
        Ok(())
    }

    /// Makes everything that has ended durable.
    pub(crate) fn flush(&self) -> Result<(), WorkloadError> {
        Ok(sync_data(&self.target.file, &self.target.path)?)
    }
}

#[cfg(test)]
#[path = "mover_tests.rs"]
mod tests;
