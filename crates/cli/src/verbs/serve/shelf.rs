//! The shelf: what lies below the directories that were given, looked up at most once a second, and each
//! result and recording read again only when it changed.
//!
//! Invariant: nothing is read from a disk while something is held that others wait for.
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use keepup_campaign::{Candidate, CompareOptions, compare, quoted};
use keepup_live::{
    Admit, EVENT_BYTES_MAX, EventCopy, Listing, RecordingEntry, ResultEntry, Shelf, Unreadable,
};
use keepup_measure::clock::Clock;
use keepup_recording::access::{From, StreamReader};
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::manifest::Manifest;
use keepup_recording::reader::{Event, Recording};
use keepup_results::{CompareSummary, ResultsError, Stored, StoredResult, rfc3339};

use super::crawl::{Bounds, crawl};
use super::entry;
use super::stand::{Places, Stand, unreadable};
use crate::event_card::event_card;

/// A list so old is looked up again.
const LIST_NS_MAX: u64 = 1_000_000_000;
/// Looking takes at most one part in so many of the time: a recording may go on beside it, on the same disks.
const LOOKING_SHARE: u64 = 10;
/// Largest summary that is read here, bytes. Many of them are, beside a recording.
const SUMMARY_BYTES_MAX: u64 = 16 << 20;

/// The shelf. A request that comes while another one looks gets the last list, so that one disk that does not
/// answer holds up nobody who asks for something else.
pub(super) struct Directories {
    roots: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    /// Held while files are read.
    looking: Mutex<Looking>,
    /// Held for a moment.
    seen: Mutex<Option<Arc<Seen>>>,
}

/// What is known of the files, and when to look again.
#[derive(Default)]
struct Looking {
    due_ns: u64,
    results: Stand<ResultEntry>,
    recordings: Stand<RecordingEntry>,
}

/// What was last seen.
struct Seen {
    listing: Listing,
    results: Places,
    recordings: Places,
}

impl Directories {
    pub(super) fn new(roots: Vec<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { roots, clock, looking: Mutex::default(), seen: Mutex::default() }
    }

    /// What was seen last.
    fn seen(&self) -> Option<Arc<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What there is, looked up where the last look is too long ago and nobody else is at it.
    fn looked(&self) -> Arc<Seen> {
        let mut looking = match (self.looking.try_lock(), self.seen()) {
            (Ok(looking), _) => looking,
            (Err(TryLockError::Poisoned(held)), _) => held.into_inner(),
            (Err(TryLockError::WouldBlock), Some(seen)) => return seen,
            (Err(TryLockError::WouldBlock), None) => {
                self.looking.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        let begun_ns = self.clock.now_ns();
        if let Some(seen) = self.seen().filter(|_| begun_ns < looking.due_ns) {
            return seen;
        }
        let seen = Arc::new(looking.look(&self.roots, begun_ns));
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&seen));
        let now_ns = self.clock.now_ns();
        let pause_ns = now_ns.saturating_sub(begun_ns).saturating_mul(LOOKING_SHARE - 1);
        looking.due_ns = now_ns.saturating_add(pause_ns.max(LIST_NS_MAX));
        seen
    }

    /// The directories that `pick` finds in what was seen; looked up where it finds none.
    fn find(&self, pick: impl Fn(&Seen) -> Option<&Vec<PathBuf>>) -> Option<Vec<PathBuf>> {
        let known = self.seen().and_then(|seen| pick(&seen).cloned());
        known.or_else(|| pick(&self.looked()).cloned())
    }

    /// A recording by its id.
    fn opened(&self, id: &str) -> Result<Option<Recording>, String> {
        let directories = self.find(|seen| seen.recordings.get(id));
        directories.map(|found| Recording::open_present(&found).map_err(|e| e.to_string())).transpose()
    }

    fn result(&self, id: &str) -> Option<PathBuf> {
        self.find(|seen| seen.results.get(id))?.into_iter().next()
    }
}

impl Looking {
    fn look(&mut self, roots: &[PathBuf], now_ns: u64) -> Seen {
        let found = crawl(roots, Bounds::default());
        let results = found.results.into_iter().map(|path| vec![path]).collect();
        let read = |path: &[PathBuf]| entry::result(&path[0]).map_err(|e| e.to_string());
        let (mut listed, results) = self.results.look(results, now_ns, &[entry::SUMMARY], read);
        let (groups, refused) = groups(found.recordings);
        let read = |volumes: &[PathBuf]| entry::recording(volumes).map_err(|e| e.to_string());
        let (mut recorded, recordings) = self.recordings.look(groups, now_ns, &[JOURNAL_FILE], read);
        recorded.unreadable.extend(refused);
        for left_out in [&mut listed.left_out, &mut recorded.left_out] {
            *left_out = found.left_out.clone().or(left_out.take());
        }
        Seen { listing: Listing { results: listed, recordings: recorded }, results, recordings }
    }
}

/// A stored result in a directory that was found, where others may have put what they like.
pub(super) fn stored(directory: &Path) -> Result<StoredResult, ResultsError> {
    StoredResult::open_directory(directory, SUMMARY_BYTES_MAX)
}

impl Shelf for Directories {
    fn list(&self) -> Result<Listing, String> {
        Ok(self.looked().listing.clone())
    }

    fn page(&self, id: &str) -> Result<Option<String>, String> {
        let Some(path) = self.result(id) else { return Ok(None) };
        let stored = stored(&path).map_err(|e| e.to_string())?;
        Ok(Some(crate::verbs::report::page_of(&stored)))
    }

    fn compare(&self, baseline: &str, other: &str) -> Result<Option<String>, String> {
        let (Some(first), Some(second)) = (self.result(baseline), self.result(other)) else {
            return Ok(None);
        };
        if first == second {
            return Err("this is one and the same result\nhint: choose two".into());
        }
        let mut names = [name(&first), name(&second)];
        // Results of one name would be taken as of one system.
        if names[0] == names[1] {
            names = [baseline, other].map(str::to_owned);
        }
        let mut candidates = Vec::new();
        for (name, path) in names.into_iter().zip([&first, &second]) {
            let opened = stored(path).map_err(|e| e.to_string())?;
            candidates.push(Candidate { name, results: vec![opened] });
        }
        let command = [&first, &second].map(|path| quoted(&path.display().to_string())).join(" ");
        let summary = CompareSummary {
            tool_version: env!("CARGO_PKG_VERSION").into(),
            created: rfc3339(self.clock.unix_ns()),
            command: format!("keepup compare {command}"),
            ..compare(&candidates, &[], &CompareOptions::default()).map_err(|e| e.to_string())?
        };
        let history = keepup_report::History::missing("a comparison has no events");
        Ok(Some(keepup_report::html(&Stored::Compare(Box::new(summary)), &history)))
    }

    fn recording(&self, id: &str) -> Result<Option<serde_json::Value>, String> {
        let Some(recording) = self.opened(id)? else { return Ok(None) };
        let info = keepup_recording::info::info(&recording).map_err(|e| e.to_string())?;
        serde_json::to_value(&info).map(Some).map_err(|e| e.to_string())
    }

    fn event(&self, id: &str, stream: u32, from: u64, admit: Admit<'_>) -> Result<Option<EventCopy>, String> {
        let Some(recording) = self.opened(id)? else { return Ok(None) };
        let reader = StreamReader::open(&recording, stream).map_err(|e| e.to_string())?;
        let none = || {
            format!("stream {stream} has no event from {from} on\nhint: keepup ctl info tells which it has")
        };
        let mut reader = reader.ok_or_else(none)?;
        let (info, mut found) = (reader.info().clone(), None);
        let mut take = |event: Event<'_>| {
            let card = event_card(&info, event.sequence, event.timestamp_ns);
            let bytes = event.payload.len() as u64;
            found = Some(match bytes {
                bytes if bytes > EVENT_BYTES_MAX => Err(format!(
                    "the event is larger than {EVENT_BYTES_MAX} bytes\nhint: keepup cat on its machine"
                )),
                bytes if !admit(bytes) => Err("there is no memory for the event now".into()),
                _ => Ok(EventCopy::new(card, event.payload.to_vec())),
            });
            ControlFlow::Break(())
        };
        reader.read(From::Sequence(from), &mut take).map_err(|e| e.to_string())?;
        found.ok_or_else(none)?.map(Some)
    }
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Volumes put together into recordings, and those whose manifests cannot be read. A second copy of a volume
/// belongs to a copy of its recording.
fn groups(found: Vec<PathBuf>) -> (Vec<Vec<PathBuf>>, Vec<Unreadable>) {
    let mut groups: Vec<Vec<PathBuf>> = Vec::new();
    let mut refused = Vec::new();
    // How often each volume was met, and where the copies of its recording are among the groups.
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
#[path = "shelf_tests.rs"]
mod tests;
