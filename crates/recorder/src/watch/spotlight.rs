//! Recorders that come and go, to be looked at by somebody who does not know of their coming and going.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keepup_results::live::Moment;

use super::Watcher;

/// Where whoever has a recorder puts what looks at it. Whoever looks never holds up the recorder itself.
#[derive(Clone, Default)]
pub struct Spotlight(Arc<Mutex<Option<Watcher>>>);

impl Spotlight {
    /// This one is to be looked at from now on.
    pub fn point(&self, at: Watcher) {
        *self.lock() = Some(at);
    }

    /// There is nothing to be looked at any more.
    pub fn turn_off(&self) {
        *self.lock() = None;
    }

    /// The figures of what there is to look at. Rates are over the time since the last call.
    pub fn look(&self) -> Option<Moment> {
        self.lock().as_mut().map(Watcher::look)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Spotlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spotlight")
    }
}
