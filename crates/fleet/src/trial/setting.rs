//! What the part of a host in a trial works with.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_measure::clock::Clock;
use keepup_recorder::watch::WatcherSlot;
use keepup_workload::net::Credentials;

use crate::agent_loop::Reports;
use crate::directories::Directories;
pub(super) use crate::error::error_text as text;

/// What the part of a host needs.
#[derive(Clone)]
pub(super) struct Setting {
    /// Number of the run.
    pub(super) run: u64,
    pub(super) clock: Arc<dyn Clock>,
    /// Directories that may be used.
    pub(super) directories: Directories,
    /// Of sources, for all hosts of the fleet.
    pub(super) credentials: Credentials,
    /// Set when the part is to end.
    pub(super) stop: Arc<AtomicBool>,
    /// Receives the recorder, for the counters.
    pub(super) watcher: WatcherSlot,
    pub(super) reports: Reports,
}

impl Setting {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
