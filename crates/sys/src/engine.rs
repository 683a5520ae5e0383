//! Block engines: asynchronous I/O between blocks and files. One trait, one file per
//! implementation.
//!
//! Invariants: an engine owns a block from `write` until the [`Completion`] that returns it; the
//! completion of a transfer means that the kernel confirmed every byte (short transfers are
//! continued internally).
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;

use crate::SysError;
use crate::io_trace;
use crate::pool::{Block, PageKind, PoolMemory};
use crate::waker::Waker;

mod completed;
mod mapped;
mod null;
mod plain;
mod ring;
mod traced;

pub use mapped::MappedEngine;
pub use null::NullEngine;
pub use plain::PlainEngine;
pub use ring::RingEngine;
pub(crate) use traced::Traced;

/// A file registered with an engine, valid until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSlot(pub u32);

/// A completed request.
#[derive(Debug)]
pub struct Completion {
    /// The number given with the request.
    pub token: u64,
    /// The block of a transfer, returned to its owner; `None` for a sync or a discard.
    pub block: Option<Block>,
    /// The kernel's result.
    pub result: std::io::Result<()>,
}

/// Asynchronous I/O between blocks and files for one thread, several requests at a time.
pub trait BlockEngine: Send {
    /// Name for reports: "io_uring", "pwrite", "mmap" or "null".
    fn name(&self) -> &'static str;

    /// Kind of memory it writes from, for reports.
    fn buffers(&self) -> String;

    /// Whether a request has completed when `write`, `read` or `sync` returns.
    fn is_synchronous(&self) -> bool {
        false
    }

    /// Registers `file`. At most [`FILES_MAX`] at a time.
    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError>;

    /// Removes a file without requests in flight.
    fn remove_file(&mut self, slot: FileSlot);

    /// Starts writing the first `bytes` of `block` at `offset`.
    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64);

    /// Starts reading `bytes` at `offset` into the front of `block`. An earlier end of file is an
    /// error.
    fn read(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64);

    /// Whether adjacent small writes may be merged into one request, which is the default. Turn
    /// it off to measure requests of one size.
    fn set_gather(&mut self, _gather: bool) {}

    /// Starts a flush of everything that completed before to stable storage.
    fn sync(&mut self, slot: FileSlot, token: u64);

    /// Starts to free `bytes` at `offset`, which read as zeros afterwards (`fallocate`, punch hole).
    fn discard(&mut self, slot: FileSlot, offset: u64, bytes: u64, token: u64);

    /// Requests in flight.
    fn in_flight(&self) -> usize;

    /// Submits started requests, waits until a request completes, the waker is signalled or
    /// `timeout` passes, and moves completions to `ended`. A zero timeout only polls.
    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError>;
}

/// Most files per engine: the current segment, the next one, and those being finished.
pub const FILES_MAX: usize = 16;

/// Choice of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring if the kernel allows it, otherwise blocking system calls.
    #[default]
    Auto,
    /// io_uring, or an error.
    Ring,
    /// `pwrite` and `fdatasync`, one at a time.
    Plain,
    /// Through a memory mapping of the file; only for measurements.
    Mapped,
}

/// Opens an engine that `waker` wakes, with up to `depth` writes in flight.
///
/// With [`EngineChoice::Auto`] the second value is the reason for not using io_uring, if any. An
/// installed [`crate::io_trace::IoTracer`] sees every request.
pub fn open(
    choice: EngineChoice,
    memory: &PoolMemory,
    waker: &Waker,
    depth: usize,
) -> Result<(Box<dyn BlockEngine>, Option<Cause>), SysError> {
    let (engine, note) = open_untraced(choice, memory, waker, depth)?;
    Ok(match io_trace::installed() {
        None => (engine, note),
        Some(tracer) => (Box::new(Traced::new(engine, tracer)), note),
    })
}

fn open_untraced(
    choice: EngineChoice,
    memory: &PoolMemory,
    waker: &Waker,
    depth: usize,
) -> Result<(Box<dyn BlockEngine>, Option<Cause>), SysError> {
    match choice {
        EngineChoice::Plain => return Ok((Box::new(PlainEngine::new(memory, waker)), None)),
        EngineChoice::Mapped => return Ok((Box::new(MappedEngine::new(waker)), None)),
        EngineChoice::Auto | EngineChoice::Ring => {}
    }
    match RingEngine::new(memory, waker, depth) {
        Ok(ring) => {
            let note = ring.note().cloned();
            Ok((Box::new(ring), note))
        }
        Err(error) if choice == EngineChoice::Auto => {
            let note = Cause::of(&error).map(|what| {
                format!(
                    "{what}; writing with blocking system calls, one block at a time, is slower and costs \
                     an eighth more CPU per GB"
                )
            });
            Ok((Box::new(PlainEngine::new(memory, waker)), Some(note)))
        }
        Err(error) => Err(error),
    }
}

fn describe(kind: PageKind, registered: bool) -> String {
    match kind {
        // Registration would save nothing.
        PageKind::Huge | PageKind::TransparentHuge => kind.to_string(),
        PageKind::Plain => format!("{kind}, {}", if registered { "registered" } else { "not registered" }),
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
