//! Transfers between memory and a file for one thread: any request size, several in flight, each
//! with its due time.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::engine::{BlockEngine, Completion, FileSlot};
use keepup_sys::file::{forget_cached, sync_data};
use keepup_sys::pool::{GRAIN_BYTES, Pool};

use super::mode::{Mode, Space, Target};
use crate::{Context, WorkloadError};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoDirection {
    /// Memory to disk.
    Write,
    /// Disk to memory.
    Read,
}

/// Request size and queue depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Request size, bytes.
    pub bytes: usize,
    /// Queue depth.
    pub depth: usize,
}

/// Request size and queue depth for filling a file.
const FILL: Point = Point { bytes: 4 << 20, depth: 8 };

impl IoDirection {
    /// Noun for messages, such as "writer".
    pub fn agent(self) -> &'static str {
        match self {
            Self::Write => "writer",
            Self::Read => "reader",
        }
    }

    /// Verb for messages, such as "write".
    pub fn verb(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

impl Point {
    /// Buffer memory of the requests, bytes.
    pub fn memory_bytes(self) -> usize {
        self.bytes.next_multiple_of(GRAIN_BYTES) * self.depth
    }
}

/// A completed request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// Due time.
    pub(crate) due_ns: u64,
    /// Start time.
    pub(crate) begun_ns: u64,
    /// Completion time.
    pub(crate) ended_ns: u64,
    /// Size.
    pub(crate) bytes: usize,
}

/// Transfers requests to or from one file.
pub(crate) struct Mover {
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    slot: FileSlot,
    /// The file.
    pub(crate) target: Target,
    mode: Mode,
    pages: u64,
    ended: Vec<Completion>,
    /// In-flight requests by token.
    begun: Vec<Ended>,
    free: Vec<usize>,
}

impl Mover {
    /// A mover for requests of all `points`. Different `seed`s write different data.
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

    /// Writes the whole file once, so that no request touches unwritten space, and evicts it from
    /// the page cache. Ends early if interrupted.
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
                if !mover.start(IoDirection::Write, piece, clock.now_ns(), clock.now_ns())? {
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

    /// Number of in-flight requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    /// Starts a request that was due at `due_ns`; false if one must complete first. Wraps around at
    /// the end of the file.
    pub(crate) fn start(
        &mut self,
        kind: IoDirection,
        bytes: usize,
        due_ns: u64,
        now_ns: u64,
    ) -> Result<bool, WorkloadError> {
        if self.target.is_full(bytes) {
            match kind {
                IoDirection::Write if self.in_flight() > 0 && self.mode.space != Space::Overwritten => {
                    return Ok(false);
                }
                IoDirection::Write => self.target.reset(&self.mode)?,
                IoDirection::Read => self.target.rewind(),
            }
        }
        let Some(&token) = self.free.last() else { return Ok(false) };
        let Some(mut block) = self.pool.take(bytes) else { return Ok(false) };
        self.free.pop();
        self.begun[token] = Ended { due_ns, begun_ns: now_ns, ended_ns: 0, bytes };
        let at = self.target.next(bytes);
        match kind {
            IoDirection::Write => {
                self.mode.pattern.stamp(&mut block[..bytes], &mut self.pages);
                self.engine.write(self.slot, at, block, bytes, token as u64);
            }
            IoDirection::Read => self.engine.read(self.slot, at, block, bytes, token as u64),
        }
        Ok(true)
    }

    /// Waits up to `timeout` for completions and passes them to `each`.
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

    /// Waits for all in-flight requests, ignoring their results.
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

    /// Makes all completed writes durable.
    pub(crate) fn flush(&self) -> Result<(), WorkloadError> {
        Ok(sync_data(&self.target.file, &self.target.path)?)
    }
}

#[cfg(test)]
#[path = "mover_tests.rs"]
mod tests;
