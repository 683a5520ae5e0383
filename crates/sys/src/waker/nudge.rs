//! The flag of a waker: whether the waiting thread wants to be woken for the next hand-over.
//!
//! The waiter asks, then looks once more for work, then waits. The other thread hands work over, then looks
//! at the flag. With the two fences at least one of them sees the other; `loom_tests` explores every
//! interleaving and every order of memory.
use crate::sync::{AtomicBool, Ordering, fence};

/// The flag.
#[derive(Debug)]
pub(crate) struct Nudge(AtomicBool);

impl Nudge {
    /// No wake-up is wanted.
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Called by the thread that waits, before it looks for work a last time.
    pub(crate) fn want(&self, wanted: bool) {
        self.0.store(wanted, Ordering::Relaxed);
        if wanted {
            fence(Ordering::SeqCst);
        }
    }

    /// Called after a hand-over; returns whether the waiter must be woken, to one of those who call it.
    pub(crate) fn is_due(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

#[cfg(loom)]
#[cfg(test)]
#[path = "nudge_loom_tests.rs"]
mod loom_tests;
