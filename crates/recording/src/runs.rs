//! Numbers of runs: which of them the recordings on some volumes have.
//!
//! Invariant: looks at the manifests directly below the volumes and at nothing else; how many of them is
//! bounded, and so is the size of each.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::error::RecordingError;
use crate::manifest::{MANIFEST_FILE, Manifest};

/// Entries of a volume's directory that are looked at.
pub const ENTRIES_MAX: usize = 100_000;
/// Largest number of a run: the largest that programs that read JSON have exactly.
pub const RUN_MAX: u64 = (1 << 53) - 1;

/// Numbers of runs that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// By number.
    pub taken: BTreeSet<u64>,
    /// Whether all recordings were looked at; else there may be more than are `taken`.
    pub is_complete: bool,
}

impl Runs {
    /// Number of the next run: one more than the highest, from 1 on; nothing when that cannot be told.
    pub fn next(&self) -> Option<u64> {
        let next = self.taken.last().map_or(1, |highest| highest.saturating_add(1));
        (self.is_complete && next <= RUN_MAX).then_some(next)
    }
}

/// Looks for recordings directly below `volumes`.
///
/// A directory without a manifest, or with one that cannot be used, has no number.
///
/// # Errors
/// When a volume cannot be listed.
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
