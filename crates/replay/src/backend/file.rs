//! Files, or a device that is only read: the requests are made as keepup's recorder makes its own. Several
//! files follow each other in the addresses of the target.
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
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

/// One of a target's files.
pub(crate) struct TargetFile {
    /// Address of its first byte.
    pub(crate) begin: u64,
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) path: PathBuf,
    /// The same file opened with `O_DSYNC`, for writes with forced unit access; otherwise they are ordinary
    /// writes.
    pub(crate) durable: Option<Arc<OwnedFd>>,
}

/// A file with its places in the engine.
struct Part {
    begin: u64,
    file: Arc<OwnedFd>,
    path: PathBuf,
    slot: FileSlot,
    durable_slot: Option<FileSlot>,
}

/// The part that contains the address `offset`.
fn part_of(parts: &[Part], offset: u64) -> &Part {
    &parts[parts.partition_point(|part| part.begin <= offset).saturating_sub(1)]
}

/// Requests to files.
pub(crate) struct FileTarget {
    /// At least one, the first from address 0, ascending.
    parts: Vec<Part>,
    engine: Box<dyn BlockEngine>,
    pool: Pool,
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
        files: Vec<TargetFile>,
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
        let mut parts = Vec::new();
        for TargetFile { begin, file, path, durable } in files {
            let slot = engine.add_file(Arc::clone(&file))?;
            // A mapping is not made durable by O_DSYNC.
            let durable = durable.filter(|_| engine.name() != "mmap");
            let durable_slot = durable.map(|durable| engine.add_file(durable)).transpose()?;
            parts.push(Part { begin, file, path, slot, durable_slot });
        }
        Ok(Self {
            parts,
            engine,
            pool,
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
        let part = part_of(&self.parts, record.offset);
        let slot = part.durable_slot.filter(|_| record.flags.has(Flags::FUA)).unwrap_or(part.slot);
        self.engine.write(slot, record.offset - part.begin, block, bytes, token as u64);
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
        let part = part_of(&self.parts, record.offset);
        let (slot, offset) = (part.slot, record.offset - part.begin);
        if record.operation == Operation::Flush {
            self.engine.sync(slot, token as u64);
            return Ok(true);
        }
        if record.operation == Operation::Discard {
            let (first, bytes) = (record.offset / self.unit as u64, u64::from(record.bytes));
            if let Some(log) = &mut self.log {
                log.discarded(token, first..first + bytes.div_ceil(self.unit as u64));
            }
            self.engine.discard(slot, offset, bytes, token as u64);
            return Ok(true);
        }
        let bytes = record.bytes as usize;
        let Some(block) = self.pool.take(bytes) else { return Ok(false) };
        if record.operation == Operation::Read {
            self.engine.read(slot, offset, block, bytes, token as u64);
            return Ok(true);
        }
        if record.flags.has(Flags::PREFLUSH) {
            self.held.insert(token, (*record, block));
            self.engine.sync(slot, token as u64);
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
        for part in &self.parts {
            sync_data(&part.file, &part.path)?;
            forget_cached(&part.file, &part.path)?;
        }
        Ok(())
    }

    fn refill(&mut self, runs: &[(u64, u64)]) -> Result<(), ReplayError> {
        self.fill(runs.iter().copied(), &|| false)
    }

    fn check(&mut self) -> Result<Option<ReplayCheck>, ReplayError> {
        let Some(log) = &self.log else { return Ok(None) };
        let mut found = ReplayCheck::default();
        for (number, part) in self.parts.iter().enumerate() {
            let end = self.parts.get(number + 1).map_or(u64::MAX, |next| next.begin);
            check((&part.file, &part.path), part.begin..end, log, self.unit, &mut found)?;
        }
        Ok(Some(found))
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
