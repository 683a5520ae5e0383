//! Files of a recording on this machine.
use std::io;
use std::path::{Path, PathBuf};

use keepup_recording::archived::{ArchivedFile, archive_path, size_and_time};

use crate::error::ArchiveError;
use crate::inventory::{INVENTORY_FILE, RECEIPTS, split_path};
use crate::segment_check::SegmentCheck;

/// A file to archive.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    pub(crate) path: PathBuf,
    /// Path within the archive.
    pub(crate) archive_path: String,
    pub(crate) bytes: u64,
    pub(crate) modified_unix_ns: u64,
    /// For a sealed segment: the check of its blocks, which the bytes pass as they are read.
    pub(crate) check: Option<SegmentCheck>,
}

impl LocalFile {
    /// Inspects the file `name` of volume `volume` in `dir`.
    pub(crate) fn inspect(dir: &Path, volume: u32, name: &str) -> Result<Self, ArchiveError> {
        let path = dir.join(name);
        let (bytes, modified_unix_ns) = size_and_time(&path).map_err(ArchiveError::io("inspect", &path))?;
        let archive_path = archive_path(volume, name);
        Ok(Self { path, archive_path, bytes, modified_unix_ns, check: None })
    }

    /// Whether the file is still as it was inspected. A segment may have been removed after all of it was
    /// read.
    pub(crate) fn check_unchanged(&self) -> Result<(), ArchiveError> {
        match size_and_time(&self.path) {
            Ok(found) if found == (self.bytes, self.modified_unix_ns) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.check.is_some() => Ok(()),
            Err(error) => Err(ArchiveError::io("inspect", &self.path)(error)),
            Ok(_) => Err(ArchiveError::Changed { path: self.path.clone() }),
        }
    }

    /// Whether `archived` was made from the file as it is.
    pub(crate) fn is(&self, archived: &ArchivedFile) -> bool {
        (archived.bytes, archived.modified_unix_ns) == (self.bytes, self.modified_unix_ns)
    }
}

/// Removes the temporary files that killed copies have left in the archive in `dir`.
pub(crate) fn remove_leftovers(dir: &Path, volumes: usize) -> Result<(), ArchiveError> {
    let prefixes = (0..volumes as u32).map(|volume| archive_path(volume, ""));
    let all = prefixes.flat_map(|prefix| [format!("{RECEIPTS}/{prefix}"), prefix]);
    for prefix in all {
        let below = dir.join(&prefix);
        let entries = match std::fs::read_dir(&below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(ArchiveError::io("list", &below))?,
        };
        for entry in entries {
            let name = entry.map_err(ArchiveError::io("list", &below))?.file_name();
            let Some(path) = name.to_str().map(|name| format!("{prefix}{name}")) else { continue };
            if is_leftover(&path) {
                let path = dir.join(path);
                std::fs::remove_file(&path).map_err(ArchiveError::io("remove", &path))?;
            }
        }
    }
    Ok(())
}

/// Whether `path`, below the archive's address, is a temporary file of an object of an archive: the store's
/// client appends `#` and a number to the name.
fn is_leftover(path: &str) -> bool {
    let Some((object, number)) = path.rsplit_once('#') else { return false };
    let receipt_of = || object.strip_prefix(RECEIPTS)?.strip_prefix('/')?.strip_suffix(".json");
    let is_ours = object == INVENTORY_FILE || split_path(receipt_of().unwrap_or(object)).is_some();
    is_ours && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
