//! Removes a recording from one volume: only the files that a recorder creates, and only next to
//! its manifest.
use std::fs;
use std::path::Path;

use crate::error::RecordingError;
use crate::files::FRESH;
use crate::id::Id;
use crate::journal::JOURNAL_FILE;
use crate::layout::is_segment_file_name;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::master::{MASTER_FILE, is_part_name};
use crate::retention::{ARCHIVE_STATE, DRAINED_FILE, REMOVED_FILE};

/// Removes the recording in `dir`: its segments, journal and manifest, then the directory.
///
/// # Errors
/// `dir` has no manifest of a recording, or the system refuses. Other files are kept, and so is
/// the directory, which is then an error too.
pub fn remove(dir: &Path) -> Result<(), RecordingError> {
    Manifest::read(dir)?;
    remove_files(dir)?;
    fs::remove_dir(dir).map_err(RecordingError::io("remove the directory", dir))
}

/// Removes what was created for the recording `recording` in `dir` before its first event; also
/// the directory, if it was created for it (`with_directory`).
///
/// # Errors
/// `dir` has no manifest of that recording, or the system refuses. Other files are kept.
pub fn take_back(dir: &Path, recording: Id, with_directory: bool) -> Result<(), RecordingError> {
    if Manifest::read(dir)?.recording != recording {
        return Err(RecordingError::Foreign { path: dir.to_path_buf() });
    }
    remove_files(dir)?;
    if with_directory {
        fs::remove_dir(dir).map_err(RecordingError::io("remove the directory", dir))?;
    }
    Ok(())
}

fn remove_files(dir: &Path) -> Result<(), RecordingError> {
    let entries = fs::read_dir(dir).map_err(RecordingError::io("list", dir))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(RecordingError::io("list", dir))?.file_name());
    }
    // The manifest goes last: after a crash the remaining files are still recognized.
    let ours = names.iter().filter(|name| name.to_str().is_some_and(is_ours));
    let others = [MASTER_FILE, REMOVED_FILE, DRAINED_FILE, JOURNAL_FILE, MANIFEST_FILE];
    // Temporary files that a crash left.
    let fresh = [MASTER_FILE, REMOVED_FILE, DRAINED_FILE, MANIFEST_FILE].map(|name| format!("{name}{FRESH}"));
    let others = fresh.iter().map(Path::new).chain(others.map(Path::new));
    for name in ours.map(Path::new).chain(others) {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => outcome.map_err(RecordingError::io("remove", &path))?,
        }
    }
    Ok(())
}

/// Whether `name` is that of a segment, a part of the master, or the progress of a copy to an archive.
fn is_ours(name: &str) -> bool {
    let digest = name.strip_prefix(ARCHIVE_STATE).and_then(|rest| rest.strip_suffix(".jsonl"));
    is_segment_file_name(name)
        || is_part_name(name)
        || digest.is_some_and(|digest| digest.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
