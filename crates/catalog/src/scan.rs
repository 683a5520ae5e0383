//! Finds results and recordings below directories by their marker files, never by their names.
//!
//! Invariants: links are not followed; the number of directories read and the depth are bounded; skipped
//! directories are reported.
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use keepup_recording::manifest::MANIFEST_FILE;
use keepup_results::ResultDirectory;

/// Most directories that are read.
const DIRECTORIES_MAX: usize = 50_000;
/// Deepest level below a given directory. A campaign by volumes and years has three.
const DEPTH_MAX: usize = 4;

/// What a scan found, by depth, then by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Directories of results.
    pub(crate) results: Vec<PathBuf>,
    /// Directories of recordings, one for each volume.
    pub(crate) recordings: Vec<PathBuf>,
    /// Message about skipped directories.
    pub(crate) left_out: Option<String>,
}

/// Limits of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanLimits {
    directories: usize,
    depth: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self { directories: DIRECTORIES_MAX, depth: DEPTH_MAX }
    }
}

/// Scans the directories below `roots`. What is below a result belongs to it, as the cells of a campaign do,
/// and is not listed, unless the result itself is a root.
pub(crate) fn scan(roots: &[PathBuf], limits: ScanLimits) -> Scan {
    let mut found = Scan::default();
    let mut waiting: VecDeque<(PathBuf, usize)> = roots.iter().map(|root| (root.clone(), 0)).collect();
    let mut seen = BTreeSet::new();
    let mut too_deep = 0u64;
    while let Some((directory, depth)) = waiting.pop_front() {
        // Roots may be nested.
        if !seen.insert(directory.clone()) {
            continue;
        }
        if seen.len() > limits.directories {
            found.left_out = Some(format!("only the first {} directories were scanned", limits.directories));
            return found;
        }
        let is_result = ResultDirectory::open(&directory).is_ok();
        if is_result {
            found.results.push(directory.clone());
        } else if is_recording(&directory) {
            found.recordings.push(directory);
            continue;
        }
        if is_result && depth > 0 {
            continue;
        }
        let below = below(&directory, limits.directories);
        if depth < limits.depth {
            waiting.extend(below.into_iter().map(|path| (path, depth + 1)));
        } else {
            too_deep += below.len() as u64;
        }
    }
    if too_deep > 0 {
        let depth = limits.depth;
        found.left_out = Some(format!("{too_deep} directories deeper than {depth} levels were not scanned"));
    }
    found
}

fn is_recording(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory.join(MANIFEST_FILE)).is_ok_and(|meta| meta.is_file())
}

/// Directories in `directory`, by name, at most one more than `most`; none where it may not be read.
fn below(directory: &Path, most: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut paths: Vec<PathBuf> = directories.take(most + 1).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
