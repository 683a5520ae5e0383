//! What the part of a host in a trial works with.
use std::sync::Arc;

use keepup_measure::clock::Clock;
use keepup_recorder::watch::WatcherSlot;
use keepup_workload::net::Credentials;

use crate::directories::Directories;
pub(super) use crate::error::error_text as text;

/// What the part of a host needs.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) clock: Arc<dyn Clock>,
    /// Directories that may be used.
    pub(super) directories: Directories,
    /// Of sources, for all hosts of the fleet.
    pub(super) credentials: Credentials,
    /// Receives the recorder, for the counters.
    pub(super) watcher: WatcherSlot,
}
