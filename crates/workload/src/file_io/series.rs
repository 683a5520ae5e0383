//! Sequential and repeated writing of a series of files, like the recorder but without events.
//!
//! Invariants: a file is overwritten only after it was completely written; a full file is flushed
//! while the next is written; the next file is ready before it is needed.
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_measure::histogram::Latency;
use keepup_results::SteadyFile;
use keepup_sys::engine::{BlockEngine, Completion, FileSlot};
use keepup_sys::file::{open_file, sync_data};
use keepup_sys::pool::Pool;

use super::mode::{Mode, Target};
use super::mover::Point;
use crate::WorkloadError;

/// Maximum number of files with a pending flush; an engine registers 16 files.
const OPEN_MAX: usize = 8;
/// Token base of flushes, plus the file number. Write tokens are smaller than any depth.
const FLUSH: u64 = 1 << 48;

/// State of a file series.
pub(crate) struct Series {
    paths: Vec<PathBuf>,
    file_bytes: u64,
    point: Point,
    mode: Mode,
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    ended: Vec<Completion>,
    /// Pages written so far.
    pages: u64,
    /// Files with requests in flight; the last one is being written.
    open: VecDeque<Open>,
    /// The next file.
    next: Option<Open>,
    files_begun: u64,
    /// File and start time of in-flight requests, by token.
    requests: Vec<(u64, u64)>,
    free: Vec<usize>,
    started_bytes: u64,
    done_bytes: u64,
    finished: Vec<SteadyFile>,
}

/// An open file.
struct Open {
    number: u64,
    path: PathBuf,
    file: Arc<OwnedFd>,
    slot: FileSlot,
    begun_ns: u64,
    /// Offset of the next request.
    at: u64,
    /// In-flight requests.
    pending: usize,
}

impl Series {
    /// A series with requests of `point` and files of `file_bytes` at `paths`; creates no file yet.
    pub(crate) fn new(
        mode: &Mode,
        point: Point,
        file_bytes: u64,
        paths: Vec<PathBuf>,
    ) -> Result<Self, WorkloadError> {
        let depth = mode.depth(point.depth);
        let (engine, pool) = mode.open(point.memory_bytes(), depth, 0)?;
        Ok(Self {
            paths,
            file_bytes,
            point,
            mode: *mode,
            engine,
            pool,
            ended: Vec::new(),
            pages: 0,
            open: VecDeque::new(),
            next: None,
            files_begun: 0,
            requests: vec![(0, 0); depth],
            free: (0..depth).collect(),
            started_bytes: 0,
            done_bytes: 0,
            finished: Vec::new(),
        })
    }

    pub(crate) fn started_bytes(&self) -> u64 {
        self.started_bytes
    }

    pub(crate) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    pub(crate) fn files_begun(&self) -> u64 {
        self.files_begun
    }

    /// Whether no request is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.engine.in_flight() == 0
    }

    /// Whether the current file is being overwritten.
    pub(crate) fn overwrites(&self) -> bool {
        self.files_begun > self.paths.len() as u64
    }

    /// Files completed since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<SteadyFile> {
        std::mem::take(&mut self.finished)
    }

    /// Starts a request; false if one must complete first or `end_bytes` have been started.
    pub(crate) fn start(&mut self, end_bytes: u64, clock: &dyn Clock) -> Result<bool, WorkloadError> {
        let bytes = self.point.bytes;
        if self.started_bytes >= end_bytes {
            return Ok(false);
        }
        let Some(&token) = self.free.last() else { return Ok(false) };
        let is_full = self.open.back().is_none_or(|file| file.at + bytes as u64 > self.file_bytes);
        if is_full && !self.advance(clock)? {
            return Ok(false);
        }
        let Some(mut block) = self.pool.take(bytes) else { return Ok(false) };
        let Some(file) = self.open.back_mut() else { return Ok(false) };
        self.mode.pattern.stamp(&mut block[..bytes], &mut self.pages);
        self.free.pop();
        self.requests[token] = (file.number, clock.now_ns());
        file.pending += 1;
        self.engine.write(file.slot, file.at, block, bytes, token as u64);
        file.at += bytes as u64;
        self.started_bytes += bytes as u64;
        let (is_half, left) = (file.at > self.file_bytes / 2, self.file_bytes - file.at);
        if is_half && self.next.is_none() && end_bytes - self.started_bytes.min(end_bytes) > left {
            self.next = Some(self.make(self.files_begun)?);
        }
        Ok(true)
    }

    /// Switches to the next file; false while too many flushes are pending.
    fn advance(&mut self, clock: &dyn Clock) -> Result<bool, WorkloadError> {
        if self.open.len() >= OPEN_MAX {
            return Ok(false);
        }
        let next = match self.next.take() {
            Some(next) => next,
            None => self.make(self.files_begun)?,
        };
        let now_ns = clock.now_ns();
        self.close_current(now_ns);
        self.files_begun += 1;
        self.open.push_back(Open { begun_ns: now_ns, ..next });
        self.flush_full();
        Ok(true)
    }

    /// Records the completion time of the current file.
    fn close_current(&mut self, now_ns: u64) {
        let Some(file) = self.open.back().filter(|file| file.at > 0) else { return };
        let seconds = now_ns.saturating_sub(file.begun_ns) as f64 / 1e9;
        self.finished.push(SteadyFile {
            first: file.number,
            files: 1,
            bytes: file.at,
            seconds,
            lowest_bytes_per_second: if seconds > 0.0 { file.at as f64 / seconds } else { 0.0 },
            overwrites: file.number >= self.paths.len() as u64,
        });
    }

    /// Opens file `number`: a new one with space according to the mode, or the oldest for
    /// overwriting.
    fn make(&mut self, number: u64) -> Result<Open, WorkloadError> {
        let count = self.paths.len() as u64;
        let path = self.paths[(number % count) as usize].clone();
        let file = if number < count {
            Target::create(&path, self.file_bytes, &self.mode)?.file
        } else {
            Arc::new(open_file(&path, self.mode.access, self.mode.durability)?)
        };
        let slot = self.engine.add_file(Arc::clone(&file))?;
        Ok(Open { number, path, file, slot, begun_ns: 0, at: 0, pending: 0 })
    }

    /// Starts the flush of every full file without in-flight requests.
    fn flush_full(&mut self) {
        let behind = self.open.len().saturating_sub(1);
        for file in self.open.iter_mut().take(behind).filter(|file| file.pending == 0) {
            // The flush itself is in flight from here on.
            file.pending = 1;
            self.engine.sync(file.slot, FLUSH + file.number);
        }
    }

    /// Waits up to `timeout` for a completion.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        clock: &dyn Clock,
        latency: &mut Latency,
    ) -> Result<(), WorkloadError> {
        self.engine.wait(timeout, &mut self.ended)?;
        let now_ns = clock.now_ns();
        let mut outcome = Ok(());
        let mut ended = std::mem::take(&mut self.ended);
        for completion in ended.drain(..) {
            let (number, verb) = match completion.token.checked_sub(FLUSH) {
                Some(number) => (number, "flush"),
                None => (self.written(completion.token as usize, now_ns, latency), "write to"),
            };
            if let Some(block) = completion.block {
                self.pool.give_back(block);
            }
            let Some(at) = self.open.iter().position(|file| file.number == number) else { continue };
            if let Err(source) = completion.result {
                let action = format!("{verb} {}", self.open[at].path.display());
                outcome = outcome.and(Err(WorkloadError::System { action, source }));
                continue;
            }
            if verb == "flush" {
                self.engine.remove_file(self.open[at].slot);
                self.open.remove(at);
            } else {
                self.open[at].pending -= 1;
                self.done_bytes += self.point.bytes as u64;
            }
        }
        self.ended = ended;
        self.flush_full();
        outcome
    }

    /// Records a completed write and returns its file number.
    fn written(&mut self, token: usize, now_ns: u64, latency: &mut Latency) -> u64 {
        let (number, begun_ns) = self.requests[token];
        latency.record_ns(now_ns.saturating_sub(begun_ns));
        self.free.push(token);
        number
    }

    /// Waits for all in-flight requests and flushes everything.
    pub(crate) fn finish(&mut self, clock: &dyn Clock, latency: &mut Latency) -> Result<(), WorkloadError> {
        while !self.is_idle() {
            self.wait(Duration::from_secs(1), clock, latency)?;
        }
        self.close_current(clock.now_ns());
        for file in self.open.drain(..) {
            self.engine.remove_file(file.slot);
            sync_data(&file.file, &file.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
