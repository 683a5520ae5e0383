//! Flags between a recorder's owner and its threads: accept sources, stop, ending, internal errors.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Each flag is set once.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    opened_ns: AtomicU64,
    is_open: AtomicBool,
    stop: AtomicBool,
    is_ending: AtomicBool,
    /// Why the recording cannot go on.
    failure: OnceLock<String>,
    internal_errors: Mutex<Vec<String>>,
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

    /// Notes the internal error of a thread without which the recording goes on.
    pub(crate) fn note_internal_error(&self, what: &str) {
        self.internal_errors.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
    }

    /// Ends the recording because of the internal error of a thread; the first one is the reason.
    pub(crate) fn fail(&self, what: &str) {
        self.note_internal_error(what);
        let _ = self.failure.set(what.to_owned());
    }

    /// The internal error that ends the recording, if any.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// All internal errors so far.
    pub(crate) fn internal_errors(&self) -> Vec<String> {
        self.internal_errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Announces that reading has stopped.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }
}
