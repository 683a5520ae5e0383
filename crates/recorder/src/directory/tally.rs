//! What was not recorded from a directory, or recorded again: counts for the report.
use std::collections::HashSet;

use keepup_sources::directory::Notice;
use keepup_stream::rejected::RejectReason;

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
    /// Files that were open for writing when keepup looked for what had been closed.
    pub(super) reopened: u64,
    pub(super) unfinished: u64,
    /// First name that was recorded again, that was opened again, and that was not finished.
    pub(super) first_again: Vec<u8>,
    pub(super) first_reopened: Vec<u8>,
    pub(super) first_unfinished: Vec<u8>,
    directories: u64,
    irregular: HashSet<Vec<u8>>,
    unwatched: u64,
    /// First subdirectory that could not be read, and why, until it is reported.
    unreadable: Option<(Vec<u8>, String)>,
    is_unreadable_reported: bool,
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

    /// The first subdirectory that could not be read: its files are not recorded. Returned once.
    pub(super) fn take_unreadable(&mut self) -> Option<Notice> {
        let (name, why) = self.unreadable.as_ref().filter(|_| !self.is_unreadable_reported)?;
        let detail = format!("files of the subdirectory {}: {why}", quoted(name));
        self.is_unreadable_reported = true;
        Some(Notice::Rejected { reason: RejectReason::Unreadable, count: 1, detail })
    }

    /// Counts a file that was open for writing when keepup looked for what had been closed.
    pub(super) fn note_reopened(&mut self, name: &[u8]) {
        if self.reopened == 0 {
            self.first_reopened = name.to_vec();
        }
        self.reopened += 1;
    }

    /// Files that were open or still changing at the end.
    pub(super) fn unfinished(&self) -> Option<Notice> {
        let detail = format!("open or still changing at the end; first: {}", quoted(&self.first_unfinished));
        let notice = Notice::Rejected { reason: RejectReason::Incomplete, count: self.unfinished, detail };
        (self.unfinished > 0).then_some(notice)
    }

    /// Sentences for the report.
    pub(super) fn remarks(self) -> Vec<String> {
        let first = self.irregular.iter().min().map(|name| quoted(name)).unwrap_or_default();
        let irregular = self.irregular.len() as u64;
        let Self { existing, directories, changed, again, overflows, reopened, unwatched, .. } = self;
        let (first_again, first_reopened) = (quoted(&self.first_again), quoted(&self.first_reopened));
        let counts = [
            (existing, format!("files not recorded, there before the start: {existing}")),
            (directories, format!("subdirectories not recorded: {directories}")),
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
                reopened,
                format!(
                    "files that were open for writing after they were closed or moved in: {reopened}; \
                     versions in between are not recorded; first: {first_reopened}"
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

fn quoted(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(name))
}
