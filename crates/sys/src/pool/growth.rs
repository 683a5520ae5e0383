//! A thread that gives a pool its pages some time before they are needed.
//!
//! Pages are expensive (measured: 0.4 to 3.5 ms of CPU time for each MiB of a virtual machine), and a slow
//! source needs few. A pool lends its lowest free memory, so what it has reached tells what it may need next.
//!
//! Invariants: memory from `given` on belongs to this thread, or to who holds the lock; nobody has a block of
//! it. The pool never waits longer than for one huge page. Pages come by writing to them and not by
//! `madvise(2)`, which would keep all other threads of the process from mapping memory.
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{HUGE_PAGE_BYTES, Mapping};
use crate::SysError;
use crate::thread::pin_current;

/// Memory that has pages before a pool is used, in bytes.
pub(super) const FIRST_BYTES: usize = 32 << 20;

/// Pages exist for this many times what was reached, so that a stall of the volumes finds them.
const AHEAD: usize = 16;

#[derive(Debug, Default)]
struct Shared {
    /// Bytes from the start of the pool that are to have pages.
    wanted: AtomicUsize,
    /// Bytes from the start of the pool that it may lend. It is changed with the lock.
    given: AtomicUsize,
    lock: Mutex<()>,
    is_over: AtomicBool,
}

/// The thread. It ends with the pool, or when all pages exist.
#[derive(Debug)]
pub(super) struct Growth {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Growth {
    /// Starts the thread on `cpus` for the pool in this range of the mapping. It may lend its first `given`
    /// bytes, and nothing behind them.
    pub(super) fn start(
        mapping: Arc<Mapping>,
        range: Range<usize>,
        given: usize,
        cpus: Vec<usize>,
    ) -> Result<Self, SysError> {
        let shared = Arc::new(Shared { given: AtomicUsize::new(given), ..Shared::default() });
        let seen = Arc::clone(&shared);
        let run = move || {
            // Pages of another node are slower, and no reason to stop.
            let _ = pin_current(&cpus);
            give(&mapping, range, &seen);
        };
        let thread = std::thread::Builder::new().name("ku-pages".into()).spawn(run);
        let thread = thread.map_err(|source| SysError::Call { action: "start a thread", source })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Bytes from the start of the pool that it may lend.
    pub(super) fn given(&self) -> usize {
        self.shared.given.load(Acquire)
    }

    /// More of the same than `given`, up to `end`; the next `bytes` without pages if the thread has none yet.
    pub(super) fn more(&self, given: usize, bytes: usize, end: usize) -> usize {
        loop {
            let now = self.given();
            if now != given || now == end {
                return now;
            }
            let Ok(_lock) = self.shared.lock.try_lock() else {
                // It has a part in hand.
                std::thread::yield_now();
                continue;
            };
            if self.given() == given {
                let all = given.saturating_add(bytes.next_multiple_of(HUGE_PAGE_BYTES)).min(end);
                self.shared.given.store(all, Release);
            }
        }
    }

    /// Tells it that the pool has lent memory up to `bytes` from its start.
    pub(super) fn reached(&self, bytes: usize) {
        self.shared.wanted.store(bytes.saturating_mul(AHEAD), Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Gives the pool as much as is wanted, a huge page at a time.
fn give(mapping: &Mapping, range: Range<usize>, shared: &Shared) {
    while !shared.is_over.load(Relaxed) {
        let lock = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let given = shared.given.load(Relaxed);
        if given >= range.len() {
            return;
        }
        if given >= shared.wanted.load(Relaxed) {
            drop(lock);
            std::thread::park();
            continue;
        }
        let start = range.start + given;
        // SAFETY: memory from `given` on is lent to nobody, and the pool takes it with the lock.
        unsafe { mapping.touch(start..start + HUGE_PAGE_BYTES) };
        shared.given.store(given + HUGE_PAGE_BYTES, Release);
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has no result.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "growth_tests.rs"]
mod tests;
