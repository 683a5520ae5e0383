//! Files of a recording on this machine.
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::ArchiveError;
use crate::inventory::{ArchivedFile, archive_path};

/// A file to archive.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    pub(crate) path: PathBuf,
    /// Path within the archive.
    pub(crate) archive_path: String,
    pub(crate) bytes: u64,
    pub(crate) modified_unix_ns: u64,
}

impl LocalFile {
    /// Inspects the file `name` of volume `volume` in `dir`.
    pub(crate) fn inspect(dir: &Path, volume: u32, name: &str) -> Result<Self, ArchiveError> {
        let path = dir.join(name);
        let (bytes, modified_unix_ns) = size_and_time(&path)?;
        Ok(Self { path, archive_path: archive_path(volume, name), bytes, modified_unix_ns })
    }

    /// Whether the file is still as it was inspected.
    pub(crate) fn check_unchanged(&self) -> Result<(), ArchiveError> {
        match size_and_time(&self.path)? == (self.bytes, self.modified_unix_ns) {
            true => Ok(()),
            false => Err(ArchiveError::Changed { path: self.path.clone() }),
        }
    }

    /// Whether `archived` was made from the file as it is.
    pub(crate) fn is(&self, archived: &ArchivedFile) -> bool {
        (archived.bytes, archived.modified_unix_ns) == (self.bytes, self.modified_unix_ns)
    }
}

fn size_and_time(path: &Path) -> Result<(u64, u64), ArchiveError> {
    let meta = std::fs::symlink_metadata(path).map_err(ArchiveError::io("inspect", path))?;
    let modified = meta.modified().map_err(ArchiveError::io("inspect", path))?;
    let ns = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    Ok((meta.len(), u64::try_from(ns).unwrap_or(u64::MAX)))
}
