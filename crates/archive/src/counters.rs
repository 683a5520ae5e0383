//! Live counters of a transfer.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most warnings kept until they are read.
const WARNINGS_MAX: usize = 1000;

/// Live counters of a transfer to or from an archive.
#[derive(Debug, Default)]
pub struct ArchiveCounters {
    /// Bytes of files that are at the destination, including those of an interrupted transfer.
    pub done_bytes: AtomicU64,
    /// Of these, bytes that an interrupted transfer had sent.
    pub known_bytes: AtomicU64,
    /// Bytes of all files known so far.
    pub total_bytes: AtomicU64,
    /// Whether a recorder is writing the recording, which therefore grows.
    pub is_growing: AtomicBool,
    /// Bytes read back to compare checksums.
    pub read_back_bytes: AtomicU64,
    warnings: Mutex<Vec<String>>,
}

impl ArchiveCounters {
    pub(crate) fn add_done(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes the bytes of a file back that must be sent again.
    pub(crate) fn subtract_done(&self, bytes: u64) {
        self.done_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_known(&self, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.known_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds a warning.
    pub(crate) fn warn(&self, what: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            warnings.push(what);
        }
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
