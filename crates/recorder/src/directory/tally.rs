//! What was not recorded from a directory, or recorded again: counts for the report.
use std::collections::HashSet;

use super::scan::Scan;

/// Most names that are not regular files and are counted.
const IRREGULAR_MAX: usize = 10_000;

/// Counts for the report, each with the first name.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) existing: u64,
    pub(super) changed: u64,
    pub(super) again: u64,
    pub(super) overflows: u64,
    pub(super) unfinished: u64,
    /// First name that was recorded again, and that was not finished.
    pub(super) first_again: Vec<u8>,
    pub(super) first_unfinished: Vec<u8>,
    directories: u64,
    irregular: HashSet<Vec<u8>>,
    unwatched: u64,
    /// First subdirectory that could not be read, and why.
    unreadable: Option<(Vec<u8>, String)>,
}

impl Tally {
    pub(super) fn note_irregular(&mut self, name: Vec<u8>) {
        if self.irregular.len() < IRREGULAR_MAX {
            self.irregular.insert(name);
        }
    }

    /// Counts what a scan of the whole directory, or of a new subdirectory, did not enter.
    pub(super) fn note_scan(&mut self, scan: &Scan, is_whole: bool) {
        if is_whole {
            (self.directories, self.unwatched) = (0, self.unwatched.max(scan.unwatched));
        } else {
            self.unwatched += scan.unwatched;
        }
        self.directories += scan.directories;
        scan.irregular.iter().for_each(|name| self.note_irregular(name.clone()));
        if let (None, Some((path, error))) = (&self.unreadable, &scan.unreadable) {
            self.unreadable = Some((path.clone(), std::io::Error::from(*error).to_string()));
        }
    }

    /// Sentences for the report.
    pub(super) fn remarks(self) -> Vec<String> {
        let text = |name: &[u8]| format!("{:?}", String::from_utf8_lossy(name));
        let first = self.irregular.iter().min().map(|name| text(name)).unwrap_or_default();
        let irregular = self.irregular.len() as u64;
        let Self { existing, directories, changed, again, overflows, unfinished, unwatched, .. } = self;
        let (first_again, first_unfinished) = (text(&self.first_again), text(&self.first_unfinished));
        let (unreadable, why) = self.unreadable.unwrap_or_default();
        let counts = [
            (existing, format!("files not recorded, there before the start: {existing}")),
            (directories, format!("subdirectories not recorded: {directories}")),
            (
                u64::from(!why.is_empty()),
                format!("subdirectories that could not be read; first: {}: {why}", text(&unreadable)),
            ),
            (
                unwatched,
                format!(
                    "subdirectories beyond the kernel's limit of watches: {unwatched}; they were scanned; \
                     raise fs.inotify.max_user_watches"
                ),
            ),
            (irregular, format!("names not recorded, not regular files: {irregular}; first: {first}")),
            (again, format!("files recorded again, changed: {again}; first: {first_again}")),
            (
                unfinished,
                format!(
                    "files not recorded, still changing at the end: {unfinished}; first: {first_unfinished}"
                ),
            ),
            (changed, format!("files that changed while they were read, and were read again: {changed}")),
            (
                overflows,
                format!(
                    "change queue of the kernel overflowed: {overflows}; the directory was scanned, but \
                     files removed before are unknown; raise fs.inotify.max_queued_events"
                ),
            ),
        ];
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, remark)| remark).collect()
    }
}
