//! Flags between a recorder's owner and its intake: accept sources, stop, ending.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Each flag is set once.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    opened_ns: AtomicU64,
    is_open: AtomicBool,
    stop: AtomicBool,
    is_ending: AtomicBool,
}

impl Switches {
    /// Accepts sources from now on; before this call nobody is accepted. Packets that arrived before
    /// `unix_ns`, ns since the Unix epoch, are not recorded.
    pub(crate) fn open(&self, unix_ns: u64) {
        self.opened_ns.store(unix_ns, Ordering::Relaxed);
        self.is_open.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Time from which packets are recorded, ns since the Unix epoch; only if it is open.
    pub(crate) fn opened_ns(&self) -> u64 {
        self.opened_ns.load(Ordering::Relaxed)
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
