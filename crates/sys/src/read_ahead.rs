//! Reading files from one end to the other, several requests ahead of the reader.
//!
//! Invariants: pieces are handed out in the order of the file; memory is [`PIECES_MAX`] pieces of
//! [`PIECE_BYTES`]; files opened by [`crate::regular::open_direct`] do not enter the page cache where the
//! file system has direct I/O; bytes before an unreadable page are handed out before its error.
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use self::depth::Depth;
use crate::engine::{BlockEngine, Completion, EngineChoice, FileSlot, open};
use crate::file::{Access, read_upto_at};
use crate::pool::{Block, Pool};
use crate::waker::Waker;
use crate::{PAGE_BYTES, SysError};

mod depth;

/// Bytes per request (journal 0038: 256 KiB to 1 MiB read equally fast, 4 MiB at half the rate).
pub const PIECE_BYTES: usize = 1 << 20;
/// Most pieces in memory.
pub const PIECES_MAX: usize = depth::MOST + 1;
/// Pieces for which memory is allocated at first: small files need no more.
const PIECES_FEW: usize = 5;
/// Longest wait for a completion, after which the wait is repeated.
const WAIT: Duration = Duration::from_secs(1);

/// Reader of one file after the other.
pub struct ReadAhead {
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    reading: Option<Reading>,
    /// Requested pieces, in the order of the file.
    queue: VecDeque<Piece>,
    /// Number of the piece at the front of the queue, which is its token.
    front: u64,
    current: Option<Current>,
    depth: Depth,
    now_ns: fn() -> u64,
    /// Pieces of the current file that were handed out, and those of them that were waited for.
    handed: (u64, u64),
    ended: Vec<Completion>,
    /// A ring takes requests of the thread that made it alone.
    one_thread: PhantomData<*const ()>,
}

/// The file that is read.
struct Reading {
    file: Arc<OwnedFd>,
    slot: FileSlot,
    access: Access,
    /// Offset of the next request.
    next: u64,
    /// First offset that is not read.
    end: u64,
}

/// A requested part of the file.
struct Piece {
    /// A multiple of the page size.
    offset: u64,
    /// The part of it that is handed out.
    wanted: Range<usize>,
    /// Its memory, when the request has ended, and whether all of its pages are there.
    done: Option<(Block, bool)>,
}

/// The piece that the reader works on.
struct Current {
    block: Block,
    range: Range<usize>,
    /// Error of the next page.
    failure: Option<io::Error>,
}

/// An engine with memory for this number of pieces.
fn memory_for(pieces: usize) -> Result<(Box<dyn BlockEngine>, Pool), SysError> {
    let pool = Pool::new(pieces * PIECE_BYTES)?;
    let (mut engine, _) = open(EngineChoice::Auto, &pool.memory(), &Waker::new()?, depth::MOST)?;
    engine.set_gather(false);
    Ok((engine, pool))
}

impl ReadAhead {
    /// A reader for the calling thread, which alone may use it, with a clock in ns.
    ///
    /// # Errors
    /// No memory for its pieces.
    pub fn new(now_ns: fn() -> u64) -> Result<Self, SysError> {
        let (engine, pool) = memory_for(PIECES_FEW)?;
        // Blocking calls gain nothing from a second request.
        let depth = if engine.is_synchronous() { Depth::fixed(1) } else { Depth::default() };
        let (queue, ended, one_thread) = (VecDeque::new(), Vec::new(), PhantomData);
        Ok(Self {
            engine,
            pool,
            reading: None,
            queue,
            front: 0,
            current: None,
            depth,
            now_ns,
            handed: (0, 0),
            ended,
            one_thread,
        })
    }

    /// Starts to read `file` from the offset `from` to `end`, instead of the file before.
    ///
    /// # Errors
    /// No memory for its pieces, the file cannot be registered, or requests not be submitted.
    pub fn begin(&mut self, (file, access): (File, Access), from: u64, end: u64) -> Result<(), SysError> {
        self.stop()?;
        let pieces = end.saturating_sub(from).div_ceil(PIECE_BYTES as u64).min(PIECES_MAX as u64) as usize;
        if pieces > self.pool.bytes() / PIECE_BYTES {
            (self.engine, self.pool) = memory_for(PIECES_MAX)?;
        }
        let file = Arc::new(OwnedFd::from(file));
        let slot = self.engine.add_file(Arc::clone(&file))?;
        self.reading = Some(Reading { file, slot, access, next: from, end });
        self.depth.begin();
        self.handed = (0, 0);
        self.request()
    }

    /// Moves the end of the current file, which has grown.
    ///
    /// # Errors
    /// Requests cannot be submitted.
    pub fn extend(&mut self, end: u64) -> Result<(), SysError> {
        if let Some(reading) = &mut self.reading {
            reading.end = reading.end.max(end);
        }
        self.request()
    }

    /// Ends the reading of the current file.
    ///
    /// # Errors
    /// Requests under way cannot be waited for.
    pub fn stop(&mut self) -> Result<(), SysError> {
        while self.engine.in_flight() > 0 {
            self.wait(WAIT)?;
        }
        let blocks = self.queue.drain(..).filter_map(|piece| piece.done).map(|(block, _)| block);
        for block in blocks.chain(self.current.take().map(|current| current.block)) {
            self.pool.give_back(block);
        }
        self.front = 0;
        if let Some(reading) = self.reading.take() {
            self.engine.remove_file(reading.slot);
        }
        Ok(())
    }

    /// The bytes of the current piece that were not consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |current| &current.block[current.range.clone()])
    }

    /// Consumes the first `count` of [`ReadAhead::bytes`].
    #[inline]
    pub fn consume(&mut self, count: usize) {
        if let Some(current) = &mut self.current {
            current.range.start = (current.range.start + count).min(current.range.end);
        }
    }

    /// Moves on to the next piece; false at the end of what is to be read, or of the file.
    ///
    /// # Errors
    /// The disk does not return the bytes that follow.
    pub fn advance(&mut self) -> io::Result<bool> {
        if let Some(Current { block, failure, .. }) = self.current.take() {
            self.pool.give_back(block);
            if let Some(failure) = failure {
                return Err(failure);
            }
        }
        self.request().map_err(io::Error::other)?;
        let mut has_waited = false;
        while self.queue.front().is_some_and(|piece| piece.done.is_none()) {
            has_waited = true;
            self.wait(WAIT).map_err(io::Error::other)?;
        }
        let Some(piece) = self.queue.pop_front() else { return Ok(false) };
        self.front += 1;
        let Some((block, is_whole)) = piece.done else { return Ok(false) };
        self.handed = (self.handed.0 + 1, self.handed.1 + u64::from(has_waited));
        self.depth.note(self.now_ns, piece.wanted.len(), has_waited);
        let current = self.complete(piece.offset, piece.wanted, block, is_whole);
        let has_bytes = !current.range.is_empty();
        self.current = Some(current);
        if has_bytes { Ok(true) } else { self.advance_empty() }
    }

    /// An empty piece is one before an error, or at the end of a file that is shorter than expected.
    fn advance_empty(&mut self) -> io::Result<bool> {
        let Some(Current { block, failure, .. }) = self.current.take() else { return Ok(false) };
        self.pool.give_back(block);
        failure.map_or(Ok(false), Err)
    }

    /// Requests pieces up to the depth, and submits them.
    fn request(&mut self) -> Result<(), SysError> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let mut is_new = false;
        while self.queue.len() < self.depth.pieces() && reading.next < reading.end {
            let Some(block) = self.pool.take(PIECE_BYTES) else { break };
            let offset = reading.next - reading.next % PAGE_BYTES as u64;
            let end = reading.end.min(offset + PIECE_BYTES as u64);
            let wanted = (reading.next - offset) as usize..(end - offset) as usize;
            reading.next = end;
            // The rest of a page is read when its turn comes: a direct request has whole pages.
            let pages = wanted.end - wanted.end % PAGE_BYTES;
            let token = self.front + self.queue.len() as u64;
            let mut piece = Piece { offset, wanted, done: None };
            match pages {
                0 => piece.done = Some((block, true)),
                _ => self.engine.read(reading.slot, offset, block, pages, token),
            }
            self.queue.push_back(piece);
            is_new = true;
        }
        if is_new { self.wait(Duration::ZERO) } else { Ok(()) }
    }

    /// Submits requests and takes those that have ended.
    fn wait(&mut self, timeout: Duration) -> Result<(), SysError> {
        self.engine.wait(timeout, &mut self.ended)?;
        for Completion { token, block, result } in self.ended.drain(..) {
            let piece = token.checked_sub(self.front).and_then(|at| self.queue.get_mut(at as usize));
            match (piece, block) {
                (Some(piece), Some(block)) => piece.done = Some((block, result.is_ok())),
                (None, Some(block)) => self.pool.give_back(block),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Reads what a request left out: the rest of the last page, or, page by page, everything up to the
    /// error.
    fn complete(&mut self, offset: u64, wanted: Range<usize>, mut block: Block, is_whole: bool) -> Current {
        let mut at = if is_whole { wanted.end - wanted.end % PAGE_BYTES } else { 0 };
        let mut failure = None;
        let Some(reading) = &mut self.reading else { return Current { block, range: 0..0, failure } };
        while at < wanted.end {
            let page = &mut block[at..at + PAGE_BYTES];
            match read_upto_at(&reading.file, page, (wanted.end - at).min(PAGE_BYTES), offset + at as u64) {
                Ok(PAGE_BYTES) => at += PAGE_BYTES,
                Ok(read) => {
                    at += read;
                    if at < wanted.end {
                        // The file is shorter than expected.
                        reading.end = reading.end.min(offset + at as u64);
                        reading.next = reading.end;
                    }
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let end = at.clamp(wanted.start, wanted.end);
        Current { block, range: wanted.start..end, failure }
    }

    /// Share of the current file's pieces for which the disk had to be waited for, 0 to 1; 1 if nothing was
    /// read.
    pub fn waited(&self) -> f64 {
        let (pieces, waits) = self.handed;
        if pieces == 0 { 1.0 } else { waits as f64 / pieces as f64 }
    }

    /// Whether the current file is read past the page cache.
    pub fn is_direct(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.access == Access::Direct)
    }
}

#[cfg(test)]
#[path = "read_ahead_tests.rs"]
mod tests;
