//! Lookups of a single result or recording: by path, by machine, by id or name.
use std::path::{Path, PathBuf};

use keepup_results::{
    Entries, RecordingEntry, ResultDirectory, ResultSummary, ResultsError, Stored, StoredResult,
};

use crate::entry::SUMMARY;

/// Name of the newest recording of a list.
pub const LAST: &str = "last";
/// Most directories of results that are read, the last changed first.
const RESULTS_MAX: usize = 1000;

/// Opens a result by its directory or its summary. The path of a summary within a result directory means the
/// directory, which also has the events.
///
/// # Errors
/// As [`StoredResult::open`].
pub fn open_result(path: &Path) -> Result<StoredResult, ResultsError> {
    let directory = path.parent().filter(|_| path.is_file());
    let directory =
        directory.map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    match directory.map(ResultDirectory::open) {
        Some(Ok(found)) if path.file_name().is_some_and(|name| name == SUMMARY) => {
            StoredResult::open(found.path())
        }
        _ => StoredResult::open(path),
    }
}

/// The newest qualification in the directory `results` that has a rate and was made on a machine with the
/// fingerprint that `machine` gives, which is called only where there are results. Skips what cannot be read.
pub fn newest_qualification(results: &Path, machine: impl FnOnce() -> String) -> Option<ResultSummary> {
    let mut directories: Vec<_> = std::fs::read_dir(results)
        .ok()?
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    directories.sort_by(|a, b| b.cmp(a));
    directories.truncate(RESULTS_MAX);
    if directories.is_empty() {
        return None;
    }
    let machine = machine();
    let fits = |(_, path): (_, PathBuf)| match StoredResult::open(&path).ok()?.summary {
        Stored::Qualify(summary)
            if summary.environment_hash == machine && summary.qualified_bytes_per_second.is_some() =>
        {
            Some(*summary)
        }
        _ => None,
    };
    directories.into_iter().filter_map(fits).max_by(|a, b| a.created.cmp(&b.created))
}

/// A recording of a list by its id or its name, of several with the same name the newest; [`LAST`] is the
/// newest of all.
#[must_use]
pub fn find_recording<'a>(list: &'a Entries<RecordingEntry>, which: &str) -> Option<&'a RecordingEntry> {
    let mut entries = list.entries.iter();
    let by_id = entries.clone().find(|entry| entry.id == which);
    by_id.or_else(|| entries.find(|entry| entry.name == which || which == LAST))
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
