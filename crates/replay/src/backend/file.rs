//! A file, or a device that is only read: the requests are made as keepup's recorder makes its own.
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use keepup_results::ReplayCheck;
use keepup_sys::engine::{BlockEngine, Completion, EngineChoice, FileSlot, open};
use keepup_sys::file::{forget_cached, sync_data};
use keepup_sys::pool::{Block, Pool};
use keepup_sys::waker::Waker;
use keepup_trace::{Flags, Operation, Record};
use keepup_workload::WorkloadError;
use keepup_workload::random_data::{SEED, fill_random};

use super::check::{Stamp, WriteLog, check};
use super::{Done, Target};
use crate::error::ReplayError;

/// Memory for requests under way, bytes, unless the longest request needs more.
const POOL_BYTES: usize = 256 << 20;
/// Requests under way while a file is filled.
const FILL_DEPTH: usize = 8;

/// Requests to one file.
pub(crate) struct FileTarget {
    file: Arc<OwnedFd>,
    path: PathBuf,
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    slot: FileSlot,
    /// The same file opened with `O_DSYNC`, for writes with forced unit access.
    durable_slot: Option<FileSlot>,
    /// Writes that wait for the flush before them, with their memory, by token.
    held: HashMap<usize, (Record, Block)>,
    /// Each piece of so many bytes has a stamp of its own.
    unit: usize,
    /// Writes so far, of all passes.
    writes: u64,
    /// What was written where, if that is to be checked.
    log: Option<WriteLog>,
    ended: Vec<Completion>,
}

impl FileTarget {
    /// For up to `depth` requests of up to `longest` bytes under way, multiples of `unit` where that is to
    /// be checked.
    pub(crate) fn open(
        (file, path): (Arc<OwnedFd>, &Path),
        choice: EngineChoice,
        (longest, unit): (usize, usize),
        depth: usize,
    ) -> Result<Self, ReplayError> {
        let wanted = longest.next_multiple_of(keepup_sys::pool::GRAIN_BYTES).saturating_mul(depth);
        // Memory lies in regions which a request does not cross: some may stay unused at their ends.
        let mut pool = Pool::new(wanted.clamp(longest, POOL_BYTES.max(longest)) + (1 << 20))?;
        if let Some(mut all) = pool.take(pool.block_bytes_max()) {
            fill_random(&mut all, SEED);
            pool.give_back(all);
        }
        let (mut engine, _) = open(choice, &pool.memory(), &Waker::new()?, depth)?;
        engine.set_gather(false);
        let slot = engine.add_file(Arc::clone(&file))?;
        let path = path.to_owned();
        Ok(Self {
            file,
            path,
            engine,
            pool,
            slot,
            durable_slot: None,
            held: HashMap::new(),
            unit,
            writes: 0,
            log: None,
            ended: Vec::with_capacity(depth),
        })
    }

    /// Writes the ranges `runs`, begin and length in bytes, from one end to the other; fewer when `is_over`.
    pub(crate) fn fill(
        &mut self,
        runs: impl Iterator<Item = (u64, u64)>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), ReplayError> {
        let piece = crate::map::EXTENT_BYTES;
        let pieces = runs.flat_map(|(begin, bytes)| {
            (0..bytes.div_ceil(piece)).map(move |n| (begin + n * piece, piece.min(bytes - n * piece)))
        });
        let mut done = Vec::new();
        for (offset, bytes) in pieces {
            let record = Record::new(0, Operation::Write, 0, offset, bytes as u32);
            while self.engine.in_flight() >= FILL_DEPTH || !self.start(&record, 0, 0)? {
                self.wait(Duration::from_secs(1), &mut done)?;
                failed(&mut done)?;
            }
            if is_over() {
                break;
            }
        }
        while self.engine.in_flight() > 0 {
            self.wait(Duration::from_secs(1), &mut done)?;
            failed(&mut done)?;
        }
        Ok(())
    }

    /// Sends writes with forced unit access to `file`, the same file opened with `O_DSYNC`. Otherwise they
    /// are ordinary writes.
    pub(crate) fn set_durable_file(&mut self, file: Arc<OwnedFd>) -> Result<(), ReplayError> {
        // A mapping is not made durable by O_DSYNC.
        if self.engine.name() != "mmap" {
            self.durable_slot = Some(self.engine.add_file(file)?);
        }
        Ok(())
    }

    /// Stamps `block` and starts the write.
    fn write(&mut self, record: &Record, mut block: Block, token: usize) {
        let bytes = record.bytes as usize;
        let first = record.offset / self.unit as u64;
        for (piece, number) in block[..bytes].chunks_mut(self.unit).zip(first..) {
            Stamp { block: number, write: self.writes }.put(piece);
        }
        if let Some(log) = &mut self.log {
            log.begun(token, first..first + (bytes / self.unit) as u64, self.writes);
        }
        self.writes += 1;
        let durable = self.durable_slot.filter(|_| record.flags.has(Flags::FUA));
        self.engine.write(durable.unwrap_or(self.slot), record.offset, block, bytes, token as u64);
    }

    /// From now on it is noted what is written where.
    pub(crate) fn log_writes(&mut self) {
        self.log.get_or_insert_with(WriteLog::default);
    }
}

/// The first error of requests that have ended.
fn failed(done: &mut Vec<Done>) -> Result<(), ReplayError> {
    for Done { result, .. } in done.drain(..) {
        result.map_err(|source| WorkloadError::System {
            action: "fill the file that requests will go to".into(),
            source,
        })?;
    }
    Ok(())
}

impl Target for FileTarget {
    fn start(&mut self, record: &Record, _index: usize, token: usize) -> Result<bool, ReplayError> {
        if record.operation == Operation::Flush {
            self.engine.sync(self.slot, token as u64);
            return Ok(true);
        }
        if record.operation == Operation::Discard {
            let (first, bytes) = (record.offset / self.unit as u64, u64::from(record.bytes));
            if let Some(log) = &mut self.log {
                log.discarded(token, first..first + bytes.div_ceil(self.unit as u64));
            }
            self.engine.discard(self.slot, record.offset, bytes, token as u64);
            return Ok(true);
        }
        let bytes = record.bytes as usize;
        let Some(block) = self.pool.take(bytes) else { return Ok(false) };
        if record.operation == Operation::Read {
            self.engine.read(self.slot, record.offset, block, bytes, token as u64);
            return Ok(true);
        }
        if record.flags.has(Flags::PREFLUSH) {
            self.held.insert(token, (*record, block));
            self.engine.sync(self.slot, token as u64);
        } else {
            self.write(record, block, token);
        }
        Ok(true)
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError> {
        self.engine.wait(timeout, &mut self.ended)?;
        let mut ended = std::mem::take(&mut self.ended);
        for Completion { token, block, result } in ended.drain(..) {
            let token = token as usize;
            match (self.held.remove(&token), result.is_ok()) {
                // The flush has ended, the write follows.
                (Some((record, block)), true) => {
                    self.write(&record, block, token);
                    continue;
                }
                (Some((_, block)), false) => self.pool.give_back(block),
                (None, _) => {}
            }
            if let Some(block) = block {
                self.pool.give_back(block);
            }
            if let Some(log) = &mut self.log {
                log.ended(token);
            }
            done.push(Done { token, result });
        }
        self.ended = ended;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ReplayError> {
        sync_data(&self.file, &self.path)?;
        Ok(forget_cached(&self.file, &self.path)?)
    }

    fn refill(&mut self, runs: &[(u64, u64)]) -> Result<(), ReplayError> {
        self.fill(runs.iter().copied(), &|| false)
    }

    fn check(&mut self) -> Result<Option<ReplayCheck>, ReplayError> {
        let Some(log) = &self.log else { return Ok(None) };
        check(&self.file, &self.path, log, self.unit).map(Some)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
