//! Writes the set file of a run beside the controller's loop: a slow disk must not delay heartbeats.
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use keepup_recording::error::RecordingError;
use keepup_recording::set::RecordingSet;

/// Pause after a failed attempt, ns.
const RETRY_NS: u64 = 1_000_000_000;

/// A set that could not be written, and why.
type Unwritten = Box<(RecordingSet, RecordingError)>;

/// The set file of a run.
pub(super) struct SetFile {
    path: PathBuf,
    /// The set that has not been written yet.
    next: Option<RecordingSet>,
    writing: Option<JoinHandle<Result<(), Unwritten>>>,
    not_before_ns: u64,
    has_warned: bool,
}

impl SetFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, next: None, writing: None, not_before_ns: 0, has_warned: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the set that is to be written.
    pub(super) fn queue(&mut self, set: RecordingSet) {
        self.next = Some(set);
    }

    /// Takes the result of a write, and starts the next one. Returns the first failure; it tries again every
    /// second.
    pub(super) fn turn(&mut self, now_ns: u64) -> Option<String> {
        let mut warning = None;
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(Err(failed))) = self.writing.take().map(JoinHandle::join)
        {
            let (set, error) = *failed;
            self.next.get_or_insert(set);
            self.not_before_ns = now_ns.saturating_add(RETRY_NS);
            if !std::mem::replace(&mut self.has_warned, true) {
                warning = Some(error.to_string());
            }
        }
        if self.writing.is_none()
            && now_ns >= self.not_before_ns
            && let Some(set) = self.next.take()
        {
            let path = self.path.clone();
            let write = move || set.write(&path).map_err(|error| Box::new((set, error)));
            // Without a thread, the write at the end has to do.
            self.writing = std::thread::Builder::new().name("ku-fleet-set".into()).spawn(write).ok();
        }
        warning
    }

    /// Writes the last set.
    ///
    /// # Errors
    /// The set is invalid, or cannot be written.
    pub(super) fn finish(mut self, set: &RecordingSet) -> Result<(), RecordingError> {
        // An older set must not replace this one later.
        drop(self.writing.take().map(JoinHandle::join));
        set.write(&self.path)
    }
}

#[cfg(test)]
#[path = "set_file_tests.rs"]
mod tests;
