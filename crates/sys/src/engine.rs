//! How blocks get to files and from them: one contract, one file per way of doing it.
//!
//! Invariants: an engine owns a block from `write` until the [`Completion`] that returns it; a completion
//! of a transfer means that every byte of it was confirmed by the kernel (short ones are continued inside).
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::SysError;
use crate::pool::{Block, PageKind, PoolMemory};
use crate::tap;
use crate::waker::Waker;

mod at_once;
mod mapped;
mod null;
mod plain;
mod ring;
mod tapped;

pub use mapped::MappedEngine;
pub use null::NullEngine;
pub use plain::PlainEngine;
pub use ring::RingEngine;
pub(crate) use tapped::Tapped;

/// A file known to an engine, valid until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSlot(pub u32);

/// A request that ended.
#[derive(Debug)]
pub struct Completion {
    /// The number given with the request.
    pub token: u64,
    /// The block of a transfer, back with its owner; nothing for a sync.
    pub block: Option<Block>,
    /// The kernel's verdict.
    pub result: std::io::Result<()>,
}

/// Writes blocks to files and reads them, several at a time, on behalf of one thread.
pub trait BlockEngine: Send {
    /// What this engine is, for the report: "io_uring", "pwrite", "mmap" or "null".
    fn name(&self) -> &'static str;

    /// What memory it writes from, for the report.
    fn buffers(&self) -> String;

    /// Whether a request has ended when `write`, `read` or `sync` returns.
    fn ends_at_once(&self) -> bool {
        false
    }

    /// Makes `file` known. At most [`FILES_MAX`] at a time.
    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError>;

    /// Forgets a file that has no request under way.
    fn remove_file(&mut self, slot: FileSlot);

    /// Starts writing the first `bytes` of `block` at `offset`.
    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64);

    /// Starts reading `bytes` at `offset` into the front of `block`. The end of the file before that is an
    /// error.
    fn read(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64);

    /// Whether small writes that follow each other may become one request, as they do unless told otherwise.
    /// Not for measuring requests of one size.
    fn set_gather(&mut self, _gather: bool) {}

    /// Starts bringing everything that was completed before to stable storage.
    fn sync(&mut self, slot: FileSlot, token: u64);

    /// Requests under way.
    fn in_flight(&self) -> usize;

    /// Submits what was started, then waits until something ended, the waker was signalled or `timeout`
    /// passed, and moves what ended to `ended`. A zero timeout only looks.
    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError>;
}

/// Files that one engine can know at a time: the segment being written, the next, and those that finish.
pub const FILES_MAX: usize = 16;

/// Which engine to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The ring where the kernel allows it, else plain calls.
    #[default]
    Auto,
    /// io_uring, or an error.
    Ring,
    /// `pwrite` and `fdatasync`, one at a time.
    Plain,
    /// Through a mapping of the file; only for measuring.
    Mapped,
}

/// Opens an engine that is woken by `waker` and keeps up to `depth` writes under way.
///
/// With [`EngineChoice::Auto`] the second value says why the ring was not taken, if it was not. Where a
/// [`crate::tap::Tap`] listens it is told of every request.
pub fn open(
    choice: EngineChoice,
    memory: &PoolMemory,
    waker: &Waker,
    depth: usize,
) -> Result<(Box<dyn BlockEngine>, Option<String>), SysError> {
    let (engine, note) = open_unheard(choice, memory, waker, depth)?;
    Ok(match tap::installed() {
        None => (engine, note),
        Some(tap) => (Box::new(Tapped::new(engine, tap)), note),
    })
}

fn open_unheard(
    choice: EngineChoice,
    memory: &PoolMemory,
    waker: &Waker,
    depth: usize,
) -> Result<(Box<dyn BlockEngine>, Option<String>), SysError> {
    match choice {
        EngineChoice::Plain => return Ok((Box::new(PlainEngine::new(memory, waker)), None)),
        EngineChoice::Mapped => return Ok((Box::new(MappedEngine::new(waker)), None)),
        EngineChoice::Auto | EngineChoice::Ring => {}
    }
    match RingEngine::new(memory, waker, depth) {
        Ok(ring) => {
            let note = ring.note().map(str::to_owned);
            Ok((Box::new(ring), note))
        }
        Err(error) if choice == EngineChoice::Auto => {
            let (what, hint) = (error.to_string(), "\nhint: ");
            let (what, hint) = what
                .split_once(hint)
                .map_or((&*what, String::new()), |(what, help)| (what, format!("{hint}{help}")));
            let note = format!(
                "{what}; writing with plain calls, one block at a time, is slower and costs an eighth \
                 more CPU per GB{hint}"
            );
            Ok((Box::new(PlainEngine::new(memory, waker)), Some(note)))
        }
        Err(error) => Err(error),
    }
}

fn describe(kind: PageKind, registered: bool) -> String {
    format!("{kind}, {}", if registered { "registered" } else { "not registered" })
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
