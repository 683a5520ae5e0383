//! Flags between a recorder's owner and its intake: accept sources, stop, ending.
use std::sync::atomic::{AtomicBool, Ordering};

/// Each flag is set once.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    is_open: AtomicBool,
    stop: AtomicBool,
    is_ending: AtomicBool,
}

impl Switches {
    /// Accepts sources; before this call nobody is accepted.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Requests a clean end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Announces that reading has stopped.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }
}
