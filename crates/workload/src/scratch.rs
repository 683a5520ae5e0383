//! A directory of a workload's own on a volume: marked, and removed with exactly the files made in it.
use std::path::{Path, PathBuf};

use crate::WorkloadError;

const MARKER: &str = "keepup-scratch";

/// The directory; removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

impl Scratch {
    /// Makes `volume/name`, which must not exist.
    pub(crate) fn create(volume: &Path, name: &str) -> Result<Self, WorkloadError> {
        let directory = volume.join(name);
        let fail = |source| WorkloadError::System { action: format!("make {}", directory.display()), source };
        std::fs::create_dir(&directory).map_err(fail)?;
        let marker = directory.join(MARKER);
        let scratch = Self { directory: directory.clone(), files: vec![marker.clone()] };
        std::fs::write(marker, "files here belong to a running measurement of keepup\n").map_err(fail)?;
        Ok(scratch)
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// The volume that it lies on, as it was given.
    pub(crate) fn volume(&self) -> String {
        self.directory.parent().unwrap_or(&self.directory).display().to_string()
    }

    /// The same in place of one that a killed process left, which had at most the files `left`. What else is
    /// in it is not touched, and an error.
    pub(crate) fn renew(volume: &Path, name: &str, left: &[&str]) -> Result<Self, WorkloadError> {
        Self::remove_left(volume, name, left);
        Self::create(volume, name)
    }

    /// Removes what a killed process left there, at most the files `left`.
    pub(crate) fn remove_left(volume: &Path, name: &str, left: &[&str]) {
        let directory = volume.join(name);
        if directory.join(MARKER).exists() {
            let files = left.iter().chain([&MARKER]).map(|file| directory.join(file)).collect();
            drop(Self { directory, files });
        }
    }

    /// A path for a new file that will be removed with the directory.
    pub(crate) fn file(&mut self, name: &str) -> PathBuf {
        let path = self.directory.join(name);
        self.files.push(path.clone());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for file in &self.files {
            // A file that was never made need not be removed.
            let _ = std::fs::remove_file(file);
        }
        let _ = std::fs::remove_dir(&self.directory);
    }
}
