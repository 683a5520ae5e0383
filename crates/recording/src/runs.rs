//! Run numbers in use on a set of volumes.
//!
//! Invariant: reads only the manifests directly below the volumes; their number and size are
//! bounded.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::error::RecordingError;
use crate::manifest::{MANIFEST_FILE, Manifest};

/// Most directory entries examined per volume.
pub const ENTRIES_MAX: usize = 100_000;
/// Largest run number: the largest integer that all JSON readers represent exactly.
pub const RUN_MAX: u64 = (1 << 53) - 1;

/// Run numbers in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// By number.
    pub taken: BTreeSet<u64>,
    /// Whether all recordings were examined; otherwise there may be more than `taken`.
    pub is_complete: bool,
}

impl Runs {
    /// Number of the next run: one more than the highest, starting at 1; `None` if it cannot be
    /// determined.
    pub fn next(&self) -> Option<u64> {
        let next = self.taken.last().map_or(1, |highest| highest.saturating_add(1));
        (self.is_complete && next <= RUN_MAX).then_some(next)
    }
}

/// Collects the run numbers of the recordings directly below `volumes`.
///
/// A directory without a usable manifest has no number.
///
/// # Errors
/// A volume cannot be listed.
pub fn runs<'a>(volumes: impl IntoIterator<Item = &'a Path>) -> Result<Runs, RecordingError> {
    let mut runs = Runs { taken: BTreeSet::new(), is_complete: true };
    for volume in volumes {
        let mut entries = fs::read_dir(volume).map_err(RecordingError::io("list", volume))?;
        let names = entries.by_ref().take(ENTRIES_MAX).map(|entry| entry.map(|entry| entry.file_name()));
        let names: Vec<OsString> =
            names.collect::<Result<_, _>>().map_err(RecordingError::io("list", volume))?;
        runs.is_complete &= entries.next().is_none();
        let directories = names.iter().map(|name| volume.join(name));
        let marked = directories.filter(|dir| fs::symlink_metadata(dir.join(MANIFEST_FILE)).is_ok());
        runs.taken.extend(marked.filter_map(|dir| Manifest::read(&dir).ok()?.run));
    }
    Ok(runs)
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
