//! Place of the files of a simulated detector, for trials and for the speed of the source alone.
use std::fs;
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_measure::disk::Device;
use keepup_measure::space::Space;
use keepup_recorder::RecorderError;
use keepup_recording::id::Id;
use keepup_stream::source::{Destination, Folder, SourceError};

use crate::WorkloadError;
use crate::error::system;
use crate::preflight::device;

/// Start of the names of the files.
const PREFIX: &str = "event";

/// Place of the files of a simulated detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStore {
    /// Existing directory; each trial has a new one in it, which it removes.
    pub below: PathBuf,
    /// Size of all files above which the oldest are removed, bytes.
    pub keep_bytes: u64,
}

impl FileStore {
    /// What of the detector's transport a trial that records to `volumes` tests.
    #[must_use]
    pub fn describe(&self, volumes: &[PathBuf]) -> String {
        let fs_type = Space::of(&self.below).map_or("unknown".to_owned(), |space| space.fs_type);
        let sharing = volumes.iter().find(|volume| self.shares_disk_with(volume) == Some(true));
        let is_known = volumes.iter().all(|volume| self.shares_disk_with(volume).is_some());
        let disk = match sharing {
            Some(volume) => format!("the files shared a disk with volume {}", volume.display()),
            None if is_known => "the files were not on a disk of the recording".to_owned(),
            None => "it is unknown whether the files shared a disk with the recording".to_owned(),
        };
        format!(
            "each event was a file in {} ({fs_type}), written under a temporary name and renamed; {disk}; at \
             most {:.2} GB of files were kept, older ones were removed, some possibly before the kernel \
             wrote them to the disk; the detector's file server and network were not tested",
            self.below.display(),
            self.keep_bytes as f64 / 1e9
        )
    }

    /// Whether the files share a disk with a volume; `None` if one of the disks is unknown.
    fn shares_disk_with(&self, volume: &Path) -> Option<bool> {
        if device(&self.below)? == device(volume)? {
            return Some(true);
        }
        let disks = |path: &Path| Device::under(Path::new("/"), path).ok().map(|found| found.disks);
        let own = disks(&self.below)?;
        Some(disks(volume)?.iter().any(|disk| own.contains(disk)))
    }
}

/// Directory of one trial, removed with it.
#[derive(Debug)]
pub(crate) struct TrialFolder {
    path: PathBuf,
    folder: Folder,
}

impl TrialFolder {
    /// Creates the directory of the trial `id`.
    ///
    /// # Errors
    /// No place was given, or the directory cannot be created.
    pub(crate) fn create(store: Option<&FileStore>, id: Id) -> Result<Self, WorkloadError> {
        let store = store.ok_or_else(|| SourceError::Plan { what: "no directory for the files".into() })?;
        let below =
            fs::canonicalize(&store.below).map_err(system(&format!("open {}", store.below.display())))?;
        let path = below.join(format!("keepup-files-{id}"));
        let action = format!("create {}", path.display());
        fs::create_dir(&path).map_err(system(&action))?;
        let folder = Folder::open(&path, PREFIX, store.keep_bytes).map_err(system(&action))?;
        Ok(Self { path, folder })
    }

    /// Where the source writes.
    pub(crate) fn destination(&self) -> Destination {
        Destination::Directory(self.folder.clone())
    }

    /// The directory as a source of the recorder (`record --from`).
    pub(crate) fn address(&self) -> Result<String, WorkloadError> {
        let path = self.path.to_str().filter(|path| !path.contains(','));
        let path = path.ok_or_else(|| {
            let path = self.path.display();
            let what = format!("cannot record from {path}: the path contains a comma or is not UTF-8");
            RecorderError::Config { what: Cause::new(what).with_hint("--files-in DIR") }
        })?;
        Ok(format!("dir:{path}"))
    }

    /// Removes the directory with all files in it. The directory was new, so nothing else is lost.
    pub(crate) fn remove(&self) -> Result<(), WorkloadError> {
        fs::remove_dir_all(&self.path).map_err(system(&format!("remove {}", self.path.display())))
    }
}

#[cfg(test)]
#[path = "file_store_tests.rs"]
mod tests;
