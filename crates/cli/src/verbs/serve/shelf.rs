//! The shelf: what lies below the directories that were given, looked up at most once a second, and each
//! result and recording read again only when it changed.
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use keepup_campaign::{Candidate, CompareOptions, compare, quoted};
use keepup_live::{Entries, Listing, RecordingEntry, RecordingState, ResultEntry, Shelf, Unreadable};
use keepup_measure::clock::Clock;
use keepup_recording::journal::JOURNAL_FILE;
use keepup_recording::manifest::Manifest;
use keepup_recording::reader::Recording;
use keepup_results::{CompareSummary, Stored, StoredResult, rfc3339};

use super::crawl::{Bounds, crawl};
use super::entry;

/// A list so old is looked up again.
const LIST_NS_MAX: u64 = 1_000_000_000;
/// A recording that grows is read again after so long: its journal may be large.
const GROWING_NS_MAX: u64 = 5_000_000_000;
/// Most results and most recordings that are listed.
const ENTRIES_MAX: usize = 10_000;

/// A state of files: when each was changed, and how long it was.
type Stamp = Vec<(i64, i64, u64)>;

/// What is known of something on disk, and as of when.
#[derive(Clone, Debug)]
struct Known<T> {
    stamp: Stamp,
    at_ns: u64,
    entry: Result<T, String>,
}

/// The shelf.
pub(super) struct Directories {
    roots: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    state: Mutex<Looked>,
}

/// What was last seen.
#[derive(Default)]
struct Looked {
    at_ns: Option<u64>,
    listing: Listing,
    /// Directories by the ids under which they are listed.
    results: BTreeMap<String, PathBuf>,
    recordings: BTreeMap<String, Vec<PathBuf>>,
    known_results: BTreeMap<PathBuf, Known<ResultEntry>>,
    known_recordings: BTreeMap<Vec<PathBuf>, Known<RecordingEntry>>,
}

impl Directories {
    pub(super) fn new(roots: Vec<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { roots, clock, state: Mutex::default() }
    }

    /// Looks up what is not known yet, and has `pick` choose from it.
    fn with<T>(&self, pick: impl FnOnce(&Looked) -> T) -> T {
        let mut looked = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = self.clock.now_ns();
        if looked.at_ns.is_none_or(|at| now_ns.saturating_sub(at) >= LIST_NS_MAX) {
            looked.look(&self.roots, now_ns);
            // What took long must not begin anew at once.
            looked.at_ns = Some(self.clock.now_ns());
        }
        pick(&looked)
    }

    fn result(&self, id: &str) -> Option<PathBuf> {
        self.with(|looked| looked.results.get(id).cloned())
    }
}

impl Looked {
    fn look(&mut self, roots: &[PathBuf], now_ns: u64) {
        let found = crawl(roots, Bounds::default());
        let mut results = Entries::default();
        let mut known = std::mem::take(&mut self.known_results);
        self.results.clear();
        for path in found.results {
            let stamp = stamp([path.join(entry::SUMMARY), path.clone()].iter());
            let fresh = known.remove(&path).filter(|known| known.stamp == stamp);
            let fresh = fresh.unwrap_or_else(|| Known {
                stamp,
                at_ns: now_ns,
                entry: entry::result(&path).map_err(|e| e.to_string()),
            });
            match &fresh.entry {
                Ok(entry) => results.entries.push(entry.clone()),
                Err(why) => results.unreadable.push(unreadable(&path, why)),
            }
            self.known_results.insert(path, fresh);
        }
        results.left_out.clone_from(&found.left_out);
        self.listing.results = self.named_results(results);
        let (groups, refused) = groups(found.recordings);
        let mut recordings = Entries { unreadable: refused, left_out: found.left_out, ..Entries::default() };
        let mut known = std::mem::take(&mut self.known_recordings);
        self.recordings.clear();
        for directories in groups {
            let stamp =
                stamp(directories.iter().map(|path| path.join(JOURNAL_FILE)).collect::<Vec<_>>().iter());
            let fresh = known.remove(&directories).filter(|known| known.is_fresh(&stamp, now_ns));
            let fresh = fresh.unwrap_or_else(|| Known {
                stamp,
                at_ns: now_ns,
                entry: entry::recording(&directories).map_err(|e| e.to_string()),
            });
            match &fresh.entry {
                Ok(entry) => recordings.entries.push(entry.clone()),
                Err(why) => {
                    recordings.unreadable.extend(directories.first().map(|path| unreadable(path, why)));
                }
            }
            self.known_recordings.insert(directories, fresh);
        }
        self.listing.recordings = self.named_recordings(recordings);
    }

    /// The newest first, under ids of which there is only one.
    fn named_results(&mut self, mut list: Entries<ResultEntry>) -> Entries<ResultEntry> {
        list.entries.sort_by(|a, b| (&b.created, &a.directory).cmp(&(&a.created, &b.directory)));
        cut(&mut list);
        let mut taken = BTreeSet::new();
        for entry in &mut list.entries {
            entry.id = own_id(&entry.id, &entry.directory, &mut taken);
            self.results.insert(entry.id.clone(), PathBuf::from(&entry.directory));
        }
        list
    }

    fn named_recordings(&mut self, mut list: Entries<RecordingEntry>) -> Entries<RecordingEntry> {
        list.entries.sort_by(|a, b| (&b.created, &a.directories).cmp(&(&a.created, &b.directories)));
        cut(&mut list);
        let mut taken = BTreeSet::new();
        for entry in &mut list.entries {
            let first = entry.directories.first().cloned().unwrap_or_default();
            entry.id = own_id(&entry.id, &first, &mut taken);
            self.recordings.insert(entry.id.clone(), entry.directories.iter().map(PathBuf::from).collect());
        }
        list
    }
}

impl Known<RecordingEntry> {
    /// One that grows changes all the time, and is read again after a while only. One whose recorder died
    /// changes without a trace.
    fn is_fresh(&self, stamp: &Stamp, now_ns: u64) -> bool {
        let grows = self.entry.as_ref().is_ok_and(|entry| entry.state == RecordingState::BeingWritten);
        let is_young = now_ns.saturating_sub(self.at_ns) < GROWING_NS_MAX;
        if grows { is_young } else { self.stamp == *stamp }
    }
}

impl Shelf for Directories {
    fn list(&self) -> Result<Listing, String> {
        Ok(self.with(|looked| looked.listing.clone()))
    }

    fn page(&self, id: &str) -> Result<Option<String>, String> {
        let Some(path) = self.result(id) else { return Ok(None) };
        let stored = StoredResult::open(&path).map_err(|e| e.to_string())?;
        Ok(Some(crate::verbs::report::page_of(&stored)))
    }

    fn compare(&self, baseline: &str, other: &str) -> Result<Option<String>, String> {
        let (Some(first), Some(second)) = (self.result(baseline), self.result(other)) else {
            return Ok(None);
        };
        if first == second {
            return Err("this is one and the same result\nhint: choose two".into());
        }
        let (mut names, ids) = ([name(&first), name(&second)], [baseline, other]);
        if names[0] == names[1] {
            names = ids.map(str::to_owned);
        }
        let mut candidates = Vec::new();
        for (name, path) in names.into_iter().zip([&first, &second]) {
            let opened = StoredResult::open(path).map_err(|e| e.to_string())?;
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
        let Some(directories) = self.with(|looked| looked.recordings.get(id).cloned()) else {
            return Ok(None);
        };
        let recording = Recording::open_present(&directories).map_err(|e| e.to_string())?;
        let info = keepup_recording::info::info(&recording).map_err(|e| e.to_string())?;
        serde_json::to_value(&info).map(Some).map_err(|e| e.to_string())
    }
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn unreadable(path: &Path, why: &str) -> Unreadable {
    Unreadable { directory: path.display().to_string(), why: why.to_owned() }
}

/// Leaves the oldest out where there are too many.
fn cut<T>(list: &mut Entries<T>) {
    if list.entries.len() > ENTRIES_MAX {
        let older = list.entries.len() - ENTRIES_MAX;
        list.entries.truncate(ENTRIES_MAX);
        list.left_out = Some(format!("{older} older ones are left out"));
    }
}

/// `id` where it can be one and is still free, else one made from the place: copies have the same id, and
/// results of the first versions have none.
fn own_id(id: &str, place: &str, taken: &mut BTreeSet<String>) -> String {
    let is_fit = (1..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_fit && taken.insert(id.to_owned()) {
        return id.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    let own = format!("at-{:016x}", hasher.finish());
    taken.insert(own.clone());
    own
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
            Err(why) => refused.push(unreadable(&path, &why.to_string())),
        }
    }
    (groups, refused)
}

/// How files stand; one that is not there stands at nothing.
fn stamp<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Stamp {
    let of = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok();
        meta.map_or((0, 0, 0), |meta| (meta.mtime(), meta.mtime_nsec(), meta.len()))
    };
    paths.map(of).collect()
}

#[cfg(test)]
#[path = "shelf_tests.rs"]
mod tests;
