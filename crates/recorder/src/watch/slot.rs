//! Hands the current recorder's live counters to observers, across runs.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keepup_results::live::Moment;

use super::Watcher;

/// Slot for the current recorder's observer. Reading it never blocks the recorder.
#[derive(Clone, Default)]
pub struct WatcherSlot(Arc<Mutex<Option<Watcher>>>);

impl WatcherSlot {
    /// Sets the current observer.
    pub fn set(&self, at: Watcher) {
        *self.lock() = Some(at);
    }

    /// Removes the observer.
    pub fn clear(&self) {
        *self.lock() = None;
    }

    /// Figures of the current recorder. Rates are averages since the last call.
    pub fn sample(&self) -> Option<Moment> {
        self.lock().as_mut().map(Watcher::sample)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for WatcherSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatcherSlot")
    }
}
