//! Catalog of results and recordings below directories: scanned at most once per second, entries read again
//! only if changed.
//!
//! Invariant: no lock that other requests wait for is held while a disk is read.
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use keepup_campaign::{Candidate, CompareOptions, compare};
use keepup_error::Cause;
use keepup_live::{Admit, Catalog, EVENT_BYTES_MAX, EventCopy, Listing, ResultEntry};
use keepup_measure::clock::Clock;
use keepup_recording::access::{From, StreamReader};
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::manifest::Manifest;
use keepup_recording::reader::{Event, Recording};
use keepup_results::shell::quoted;
use keepup_results::{CompareSummary, RecordingEntry, Stored, Unreadable, rfc3339};

use crate::cache::{DirectoriesById, EntryCache, unreadable};
use crate::entry;
use crate::event_card::event_card;
use crate::report::report_page;
use crate::scan::{ScanLimits, scan};

/// Shortest time between two scans.
const SCAN_INTERVAL_NS: u64 = 1_000_000_000;
/// Scans take at most 1/`SCAN_SHARE` of the time, because a recording may use the same disks.
const SCAN_SHARE: u64 = 10;

/// Catalog of the results and recordings below some directories. Requests during a scan get the previous
/// list, so that a hanging disk does not block them.
pub struct DirectoryCatalog {
    roots: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    /// Held while files are read.
    scanner: Mutex<Scanner>,
    /// Held only briefly.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
}

/// Cached entries, and when the next scan is due.
#[derive(Default)]
struct Scanner {
    due_ns: u64,
    results: EntryCache<ResultEntry>,
    recordings: EntryCache<RecordingEntry>,
}

/// Outcome of the last scan.
struct Snapshot {
    listing: Listing,
    results: DirectoriesById,
    recordings: DirectoriesById,
}

impl DirectoryCatalog {
    /// Creates a catalog of `roots`. Nothing is read before the first request.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { roots, clock, scanner: Mutex::default(), snapshot: Mutex::default() }
    }

    /// The last snapshot.
    fn last(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Current snapshot. Scans if the last scan is too old and no other request is scanning.
    fn current(&self) -> Arc<Snapshot> {
        let mut scanner = match (self.scanner.try_lock(), self.last()) {
            (Ok(scanner), _) => scanner,
            (Err(TryLockError::Poisoned(held)), _) => held.into_inner(),
            (Err(TryLockError::WouldBlock), Some(last)) => return last,
            (Err(TryLockError::WouldBlock), None) => {
                self.scanner.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        let start_ns = self.clock.now_ns();
        if let Some(last) = self.last().filter(|_| start_ns < scanner.due_ns) {
            return last;
        }
        let snapshot = Arc::new(scanner.scan(&self.roots, start_ns));
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&snapshot));
        let now_ns = self.clock.now_ns();
        let pause_ns = now_ns.saturating_sub(start_ns).saturating_mul(SCAN_SHARE - 1);
        scanner.due_ns = now_ns.saturating_add(pause_ns.max(SCAN_INTERVAL_NS));
        snapshot
    }

    /// The directories that `pick` finds in the last snapshot, else in a current one.
    fn find(&self, pick: impl Fn(&Snapshot) -> Option<&Vec<PathBuf>>) -> Option<Vec<PathBuf>> {
        let known = self.last().and_then(|last| pick(&last).cloned());
        known.or_else(|| pick(&self.current()).cloned())
    }

    /// A recording by its id.
    fn opened(&self, id: &str) -> Result<Option<Recording>, Cause> {
        let directories = self.find(|snapshot| snapshot.recordings.get(id));
        directories.map(|found| Recording::open_present(&found).map_err(|e| Cause::of(&e))).transpose()
    }

    fn result(&self, id: &str) -> Option<PathBuf> {
        self.find(|snapshot| snapshot.results.get(id))?.into_iter().next()
    }
}

impl Scanner {
    fn scan(&mut self, roots: &[PathBuf], now_ns: u64) -> Snapshot {
        let found = scan(roots, ScanLimits::default());
        let results = found.results.into_iter().map(|path| vec![path]).collect();
        let read = |path: &[PathBuf]| entry::result(&path[0]).map_err(|e| Cause::of(&e).to_text());
        let (mut listed, results) = self.results.update(results, now_ns, &[entry::SUMMARY], read);
        let (groups, refused) = groups(found.recordings);
        let read = |volumes: &[PathBuf]| entry::recording(volumes).map_err(|e| Cause::of(&e).to_text());
        let (mut recorded, recordings) = self.recordings.update(groups, now_ns, &[JOURNAL_FILE], read);
        recorded.unreadable.extend(refused);
        for left_out in [&mut listed.left_out, &mut recorded.left_out] {
            *left_out = found.left_out.clone().or(left_out.take());
        }
        Snapshot { listing: Listing { results: listed, recordings: recorded }, results, recordings }
    }
}

impl Catalog for DirectoryCatalog {
    fn list(&self) -> Result<Listing, Cause> {
        Ok(self.current().listing.clone())
    }

    fn page(&self, id: &str) -> Result<Option<String>, Cause> {
        let Some(path) = self.result(id) else { return Ok(None) };
        let stored = entry::open_stored(&path).map_err(|e| Cause::of(&e))?;
        Ok(Some(report_page(&stored)))
    }

    fn compare(&self, baseline: &str, other: &str) -> Result<Option<String>, Cause> {
        let (Some(first), Some(second)) = (self.result(baseline), self.result(other)) else {
            return Ok(None);
        };
        if first == second {
            let why = Cause::new("cannot compare a result with itself");
            return Err(why.with_hint("choose two different results"));
        }
        let mut names = [name(&first), name(&second)];
        // Results with equal names would be pooled as one system.
        if names[0] == names[1] {
            names = [baseline, other].map(str::to_owned);
        }
        let mut candidates = Vec::new();
        for (name, path) in names.into_iter().zip([&first, &second]) {
            let opened = entry::open_stored(path).map_err(|e| Cause::of(&e))?;
            candidates.push(Candidate { name, results: vec![opened] });
        }
        let command = [&first, &second].map(|path| quoted(&path.display().to_string())).join(" ");
        let summary = CompareSummary {
            tool_version: env!("CARGO_PKG_VERSION").into(),
            created: rfc3339(self.clock.unix_ns()),
            command: format!("keepup compare {command}"),
            ..compare(&candidates, &[], &CompareOptions::default()).map_err(|e| Cause::of(&e))?
        };
        let history = keepup_report::History::missing("a comparison has no events");
        Ok(Some(keepup_report::html(&Stored::Compare(Box::new(summary)), &history)))
    }

    fn recording(&self, id: &str) -> Result<Option<serde_json::Value>, Cause> {
        let Some(recording) = self.opened(id)? else { return Ok(None) };
        let info = keepup_recording::info::info(&recording).map_err(|e| Cause::of(&e))?;
        serde_json::to_value(&info).map(Some).map_err(|e| e.to_string().into())
    }

    fn event(&self, id: &str, stream: u32, from: u64, admit: Admit<'_>) -> Result<Option<EventCopy>, Cause> {
        let Some(recording) = self.opened(id)? else { return Ok(None) };
        let reader = StreamReader::open(&recording, stream).map_err(|e| Cause::of(&e))?;
        let none = || {
            Cause::new(format!("cannot find event {from} of stream {stream}: no such event"))
                .with_hint("keepup ctl info lists its events")
        };
        let mut reader = reader.ok_or_else(none)?;
        let (info, mut found) = (reader.info().clone(), None);
        let mut take = |event: Event<'_>| {
            let card = event_card(&info, event.sequence, event.timestamp_ns);
            let bytes = event.payload.len() as u64;
            found = Some(match bytes {
                bytes if bytes > EVENT_BYTES_MAX => Err(Cause::new(format!(
                    "cannot copy the event: it is larger than {EVENT_BYTES_MAX} bytes"
                ))
                .with_hint("use keepup cat on its machine")),
                bytes if !admit(bytes) => Err("cannot copy the event: no memory available".into()),
                _ => Ok(EventCopy::new(card, event.payload.to_vec())),
            });
            ControlFlow::Break(())
        };
        reader.read(From::Sequence(from), &mut take).map_err(|e| Cause::of(&e))?;
        found.ok_or_else(none)?.map(Some)
    }
}

/// Last component of a path.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Groups volumes into recordings; also returns those whose manifests cannot be read. A second copy of a
/// volume belongs to a copy of its recording.
fn groups(found: Vec<PathBuf>) -> (Vec<Vec<PathBuf>>, Vec<Unreadable>) {
    let mut groups: Vec<Vec<PathBuf>> = Vec::new();
    let mut refused = Vec::new();
    // Number of copies of each volume, and groups of the copies of its recording.
    let mut copies: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let mut met: BTreeMap<_, usize> = BTreeMap::new();
    for path in found {
        match Manifest::read(&path) {
            Ok(manifest) => {
                let number = met.entry((manifest.recording, manifest.volume_index)).or_default();
                let places = copies.entry(manifest.recording).or_default();
                match places.get(*number) {
                    Some(&place) => groups[place].push(path),
                    None => {
                        places.push(groups.len());
                        groups.push(vec![path]);
                    }
                }
                *number += 1;
            }
            Err(why) => refused.push(unreadable(&[path], &why.to_string())),
        }
    }
    (groups, refused)
}

#[cfg(test)]
#[path = "directories_tests.rs"]
mod tests;
