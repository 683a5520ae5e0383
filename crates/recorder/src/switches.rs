//! The switches between a recorder's owner and its intake: who may come in, when it ends, whether it does.
use std::sync::atomic::{AtomicBool, Ordering};

/// Each is thrown once.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    is_open: AtomicBool,
    stop: AtomicBool,
    is_ending: AtomicBool,
}

impl Switches {
    /// Lets sources in: until then nobody is accepted.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Asks for a clean end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Says that nothing more is read.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }
}
