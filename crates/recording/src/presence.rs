//! Whether the files of a recording in progress still have their names.
//!
//! A file that another program removes, replaces or hides under a mount takes writes and flushes as before,
//! and is lost when the recorder closes it. Nothing that is written to it may be acknowledged.
//!
//! Invariant: every check compares an open file with what has its name now, so file systems whose inode
//! numbers are not stable cause no false alarm.
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::RecordingError;
use crate::files::{has_name, look_up};
use crate::journal::Journal;
use crate::layout::segment_file_name;
use crate::manifest::MANIFEST_FILE;

/// A recording's directory on one volume, kept open.
#[derive(Debug)]
pub struct Presence {
    path: PathBuf,
    directory: File,
}

impl Presence {
    /// Presence of the directory `path`, which has a manifest and a journal.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn new(path: &Path) -> Result<Presence, RecordingError> {
        let directory = File::open(path).map_err(RecordingError::io("open the directory", path))?;
        Ok(Presence { path: path.to_path_buf(), directory })
    }

    /// Checks the directory, the manifest, the journal with its length, and the open segments. A name that
    /// cannot be looked up for another reason than its absence is accepted: writes report such faults.
    ///
    /// # Errors
    /// Another program removed, replaced or changed one of them, or mounted something over them. The journal
    /// then takes no more lines if its length is wrong.
    pub fn check<'a>(
        &self,
        journal: &mut Journal,
        segments: impl IntoIterator<Item = (u32, &'a OwnedFd)>,
    ) -> Result<(), RecordingError> {
        has_name(&self.directory, &self.path)?;
        // The recorder replaces the manifest, so it may be another file.
        let manifest = self.path.join(MANIFEST_FILE);
        if let Some(found) = look_up(&manifest)
            && !found.is_ok_and(|found| found.is_file())
        {
            return Err(RecordingError::Displaced { path: manifest });
        }
        journal.check_place()?;
        segments
            .into_iter()
            .try_for_each(|(index, file)| has_name(file, &self.path.join(segment_file_name(index))))
    }
}

#[cfg(test)]
#[path = "presence_tests.rs"]
mod tests;
