//! Connections to detectors between two runs: when each series is recorded as a run of its own, the next run
//! continues on the same connection, so that no message of the next series is lost.
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use keepup_sources::{Decoder, SourceAddress};

/// Connections that outlast a run. Shared by the configurations of all runs.
#[derive(Default)]
pub struct SeriesConnections {
    is_last: AtomicBool,
    held: Mutex<Vec<Held>>,
}

/// A connection to a detector that has ended its series.
pub(crate) struct Held {
    /// Place of the detector among the sources.
    pub(crate) place: usize,
    pub(crate) address: SourceAddress,
    /// `None`: the detector has closed it.
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) decoder: Box<dyn Decoder>,
}

impl SeriesConnections {
    /// Closes connections at the end of the current series: no other run follows.
    pub fn end(&self) {
        self.is_last.store(true, Ordering::Release);
    }

    /// Whether another run may follow.
    pub(crate) fn continues(&self) -> bool {
        !self.is_last.load(Ordering::Acquire)
    }

    /// Keeps a connection for the next run.
    pub(crate) fn hold(&self, held: Held) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    /// Takes the connection to a detector.
    pub(crate) fn take(&self, place: usize, address: &SourceAddress) -> Option<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.iter().position(|held| held.place == place && held.address == *address)?;
        Some(held.swap_remove(at))
    }
}

impl fmt::Debug for SeriesConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesConnections").field("continues", &self.continues()).finish_non_exhaustive()
    }
}
