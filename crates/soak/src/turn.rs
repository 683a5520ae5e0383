//! One turn on one volume: its time and counters, and piecewise file I/O.
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::ProcessCpu;
use keepup_results::{SoakMismatch, SoakPart, SoakTotals};
use keepup_sys::file::Access;
use keepup_sys::file::{forget_cached, open_file, open_to_read, read_upto_at, sync_data, write_all_at};
use keepup_sys::pool::{Block, Pool};
use keepup_workload::Context;

use crate::error::{SoakError, system};
use crate::piece::PIECE_BYTES;
use crate::plan::TurnMode;
use crate::stamp::PAGE_BYTES;
use crate::state::{Record, SoakState};

/// Interval between two samples.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;

/// Direct I/O buffers of one piece each.
pub(crate) struct Blocks {
    /// Expected content.
    pub(crate) expected: Block,
    /// Content as read.
    pub(crate) found: Block,
    /// Content as reread.
    pub(crate) again: Block,
}

/// Part of the work.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Source,
    Write,
    Read,
    Compare,
}

/// A running turn.
pub(crate) struct Turn<'a> {
    /// Number, from 1.
    pub(crate) number: u64,
    pub(crate) mode: TurnMode,
    pub(crate) totals: SoakTotals,
    state: &'a mut SoakState,
    context: &'a mut Context,
    clock: Arc<dyn Clock>,
    begun_ns: u64,
    sampled_ns: u64,
}

impl Blocks {
    pub(crate) fn new() -> Result<Self, SoakError> {
        let mut pool = Pool::new(4 * PIECE_BYTES)?;
        let mut take = || {
            let none = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
            pool.take(PIECE_BYTES).ok_or_else(none).map_err(system("take memory for a piece of a file"))
        };
        Ok(Self { expected: take()?, found: take()?, again: take()? })
    }
}

impl<'a> Turn<'a> {
    pub(crate) fn begin(
        number: u64,
        mode: TurnMode,
        state: &'a mut SoakState,
        context: &'a mut Context,
    ) -> Self {
        let clock = Arc::clone(&context.clock);
        let begun_ns = clock.now_ns();
        let totals = SoakTotals::default();
        Self { number, mode, totals, state, context, clock, begun_ns, sampled_ns: begun_ns }
    }

    /// Adds the work done to the account, complete or not.
    pub(crate) fn end(mut self, is_whole: bool) -> Result<(), SoakError> {
        self.totals.turns = u64::from(is_whole);
        self.totals.elapsed_ns = self.clock.now_ns().saturating_sub(self.begun_ns);
        self.state.note(Record::Turn { totals: self.totals })
    }

    pub(crate) fn note(&mut self, mismatch: SoakMismatch) -> Result<(), SoakError> {
        self.state.note(Record::Mismatch(mismatch))
    }

    /// Path for the next damaged file, if another may be kept.
    pub(crate) fn path_for_damaged(&self, volume: &Path) -> Option<std::path::PathBuf> {
        self.state.path_for_damaged(volume)
    }

    /// Whether the user requested a stop; also reports progress once per second.
    pub(crate) fn should_stop(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        if now_ns.saturating_sub(self.sampled_ns) >= SAMPLE_EVERY_NS {
            self.sampled_ns = now_ns;
            let mut totals = self.state.account.totals;
            totals.add(&self.totals);
            let damage = &self.state.account.damage;
            let readings = [
                ("turns", totals.turns),
                ("written_bytes", totals.write.bytes),
                ("read_bytes", totals.read.bytes),
                ("mismatches", damage.mismatches + damage.references),
            ];
            let readings =
                readings.into_iter().map(|(name, value)| (name.to_owned(), value as f64)).collect();
            (self.context.sample)(now_ns.saturating_sub(self.begun_ns) / 1_000_000, readings);
        }
        self.context.stop.load(Ordering::Acquire)
    }

    /// Runs a part of the work and counts its time and CPU time.
    pub(crate) fn timed<T>(&mut self, part: Part, bytes: usize, work: impl FnOnce() -> T) -> T {
        let (begun_ns, cpu) = (self.clock.now_ns(), ProcessCpu::now());
        let done = work();
        let passed = SoakPart {
            bytes: bytes as u64,
            elapsed_ns: self.clock.now_ns().saturating_sub(begun_ns),
            cpu_ns: ProcessCpu::now().since_ns(cpu),
        };
        let tally = match part {
            Part::Source => &mut self.totals.source,
            Part::Write => &mut self.totals.write,
            Part::Read => &mut self.totals.read,
            Part::Compare => &mut self.totals.compare,
        };
        tally.add(&passed);
        done
    }

    /// Opens a file for writing in this turn's mode.
    pub(crate) fn open_to_write(&mut self, path: &Path) -> Result<OwnedFd, SoakError> {
        let mode = self.mode;
        Ok(self.timed(Part::Write, 0, || open_file(path, mode.write, mode.durability))?)
    }

    /// Writes the piece at `offset`; the rest of the last page after its `bytes` is zero-filled.
    pub(crate) fn write_piece(
        &mut self,
        (file, path): (&OwnedFd, &Path),
        block: &mut Block,
        bytes: usize,
        offset: u64,
    ) -> Result<(), SoakError> {
        let (request, direct) = (self.mode.request_bytes, self.mode.write == Access::Direct);
        let action = format!("write to {}", path.display());
        self.timed(Part::Write, bytes, || {
            let end = if direct { bytes.next_multiple_of(PAGE_BYTES) } else { bytes };
            block[bytes..end].fill(0);
            for (at, piece) in (offset..).step_by(request).zip(block[..end].chunks(request)) {
                write_all_at(file, piece, at)?;
            }
            Ok(())
        })
        .map_err(system(&action))
    }

    /// Finishes writing a file of `bytes`: truncates the padding and makes the file durable.
    pub(crate) fn end_writing(&mut self, file: OwnedFd, path: &Path, bytes: u64) -> Result<(), SoakError> {
        let direct = self.mode.write == Access::Direct;
        self.timed(Part::Write, 0, || {
            if direct && !bytes.is_multiple_of(PAGE_BYTES as u64) {
                let file = File::from(file);
                file.set_len(bytes).map_err(system(&format!("cut {} to its length", path.display())))?;
                return file.sync_all().map_err(system(&format!("flush {}", path.display())));
            }
            Ok(sync_data(&file, path)?)
        })
    }

    /// Opens a file for reading back, bypassing the page cache.
    pub(crate) fn open_to_read(&mut self, path: &Path) -> Result<OwnedFd, SoakError> {
        let access = self.mode.read;
        self.timed(Part::Read, 0, || {
            let file = open_to_read(path, access)?;
            if access == Access::Buffered {
                forget_cached(&file, path)?;
            }
            Ok(file)
        })
    }

    /// Reads the piece of `bytes` at `offset`, last request first if `backwards`. Bytes beyond the
    /// end of the file are zeros.
    pub(crate) fn read_piece(
        &mut self,
        (file, path): (&OwnedFd, &Path),
        block: &mut Block,
        bytes: usize,
        offset: u64,
        backwards: bool,
    ) -> Result<(), SoakError> {
        let request = self.mode.request_bytes;
        let action = format!("read {} at offset {offset}", path.display());
        self.timed(Part::Read, bytes, || {
            let count = bytes.div_ceil(request);
            for n in 0..count {
                let at = if backwards { count - 1 - n } else { n } * request;
                let wanted = request.min(bytes - at);
                let whole = wanted.next_multiple_of(PAGE_BYTES);
                let read = read_upto_at(file, &mut block[at..at + whole], wanted, offset + at as u64)?;
                block[at + read..at + wanted].fill(0);
            }
            Ok(())
        })
        .map_err(system(&action))
    }
}
