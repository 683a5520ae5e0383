//! Files that killed measurements left on a volume. They take space from later ones.
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use keepup_measure::sum::Sums;
use keepup_recording::journal::JOURNAL_FILE;
use keepup_results::format;
use keepup_results::shell::quoted;

use crate::scratch::MARKER;

/// Beginnings of the names of recordings that are removed after they were measured.
const TEMPORARY: [&str; 3] = ["keepup-qualify-", "keepup-trial-", "keepup-fleet-trial-"];
/// Paths in the command of a warning.
const PATHS_MAX: usize = 4;

/// A warning if `volume` contains directories of measurements that no process has locked. A recording is
/// unlocked also while it is read back.
pub fn warning(volume: &Path) -> Option<String> {
    let entries = std::fs::read_dir(volume).ok()?.filter_map(Result::ok);
    let is_directory = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let paths = entries.filter(is_directory).map(|entry| entry.path());
    let mut left: Vec<PathBuf> = paths.filter(|path| is_left(path)).collect();
    if left.is_empty() {
        return None;
    }
    left.sort();
    let bytes = left.iter().map(|path| allocated_bytes(path)).saturating_sum();
    let names = left.iter().take(PATHS_MAX).map(|path| quoted(&path.display().to_string()));
    let names: Vec<String> = names.collect();
    let more = match left.len() - names.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!(
        "{} has {} of measurements that were killed; if none is running: rm -r {}{more}",
        volume.display(),
        format::bytes(bytes),
        names.join(" ")
    ))
}

/// Command that removes what a measurement with this name leaves on `volumes` when it is killed; none without
/// files.
pub fn removal(volumes: &[PathBuf], name: &str) -> Option<String> {
    let entries = volumes.iter().filter_map(|volume| std::fs::read_dir(volume).ok()).flatten();
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let is_own = |path: &PathBuf| path.file_name().is_some_and(|own| own.to_string_lossy().starts_with(name));
    let mut own: Vec<String> = paths.filter(is_own).map(|path| quoted(&path.display().to_string())).collect();
    own.sort();
    (!own.is_empty()).then(|| format!("rm -r {}", own.join(" ")))
}

fn is_left(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let is_temporary = TEMPORARY.iter().any(|prefix| name.starts_with(prefix));
    let lock = if is_temporary { JOURNAL_FILE } else { MARKER };
    is_unlocked(&directory.join(lock))
}

/// Whether there is such a regular file, and no other process has locked it.
fn is_unlocked(path: &Path) -> bool {
    // Opening a pipe would wait for its writer.
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let is_locked = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_file && File::open(path).is_ok_and(|file| !is_locked(file))
}

/// Bytes that the files in `directory` take on the disk.
fn allocated_bytes(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.blocks() * 512).saturating_sum()
}

#[cfg(test)]
#[path = "leftover_tests.rs"]
mod tests;
