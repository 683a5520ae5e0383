//! Temporary directory of a workload on a volume: marked, and removed with exactly the files
//! created in it.
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::WorkloadError;

/// Name of the file that marks such a directory. It is locked while the directory is in use.
pub(crate) const MARKER: &str = "keepup-scratch";

/// A scratch directory, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    directory: PathBuf,
    files: Vec<PathBuf>,
    /// The marker with its lock; none if a killed process left the directory.
    _marker: Option<File>,
}

impl Scratch {
    /// Creates `volume/name`, which must not exist.
    ///
    /// # Errors
    /// The directory or its marker cannot be created.
    pub fn create(volume: &Path, name: &str) -> Result<Self, WorkloadError> {
        let directory = volume.join(name);
        let fail = |source| WorkloadError::System { action: format!("make {}", directory.display()), source };
        std::fs::create_dir(&directory).map_err(fail)?;
        let marker = directory.join(MARKER);
        let mut scratch = Self { directory: directory.clone(), files: vec![marker.clone()], _marker: None };
        let mut file = File::create_new(marker).map_err(fail)?;
        // Without locks the directory would only be reported as one that was left.
        let _ = file.try_lock();
        file.write_all(b"files here belong to a running measurement of keepup\n").map_err(fail)?;
        scratch._marker = Some(file);
        Ok(scratch)
    }

    /// Path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Path of its volume as given.
    pub(crate) fn volume(&self) -> String {
        self.directory.parent().unwrap_or(&self.directory).display().to_string()
    }

    /// Replaces a directory left by a killed process that contains at most the files `left`; other
    /// content is not touched and is an error.
    ///
    /// # Errors
    /// The directory or its marker cannot be created.
    pub fn renew(volume: &Path, name: &str, left: &[&str]) -> Result<Self, WorkloadError> {
        Self::remove_left(volume, name, left);
        Self::create(volume, name)
    }

    /// Removes a directory left by a killed process, with at most the files `left`.
    pub(crate) fn remove_left(volume: &Path, name: &str, left: &[&str]) {
        let directory = volume.join(name);
        if directory.join(MARKER).exists() {
            let files = left.iter().chain([&MARKER]).map(|file| directory.join(file)).collect();
            drop(Self { directory, files, _marker: None });
        }
    }

    /// Path for a new file, removed with the directory.
    pub fn file(&mut self, name: &str) -> PathBuf {
        let path = self.directory.join(name);
        self.files.push(path.clone());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for file in &self.files {
            // A file that was never created need not be removed.
            let _ = std::fs::remove_file(file);
        }
        let _ = std::fs::remove_dir(&self.directory);
    }
}
