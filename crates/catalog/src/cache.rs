//! Cache of the entries of one kind: an entry is read again when its files changed.
//!
//! Invariant: the entries of a list have unique ids.
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use keepup_live::ResultEntry;
use keepup_results::{Entries, RecordingEntry, RecordingState, Unreadable};

/// Time after which a growing entry is read again.
const GROWING_NS_MAX: u64 = 5_000_000_000;
/// Most entries that are listed.
const ENTRIES_MAX: usize = 10_000;

/// An entry that can be cached and listed.
pub(crate) trait Cacheable: Clone {
    /// Start time, as text that sorts by time.
    fn created(&self) -> &str;
    /// Its id.
    fn id(&mut self) -> &mut String;
    /// Whether it changes without a change of file times.
    fn grows(&self) -> bool;
}

impl Cacheable for ResultEntry {
    fn created(&self) -> &str {
        &self.created
    }

    fn id(&mut self) -> &mut String {
        &mut self.id
    }

    fn grows(&self) -> bool {
        false
    }
}

impl Cacheable for RecordingEntry {
    fn created(&self) -> &str {
        &self.created
    }

    fn id(&mut self) -> &mut String {
        &mut self.id
    }

    /// The state also changes when the recorder dies, without a change of its files.
    fn grows(&self) -> bool {
        self.state == RecordingState::BeingWritten
    }
}

/// Modification time (s, ns) and length of each file of an entry.
type Stamp = Vec<(i64, i64, u64)>;

/// An entry as it was last read.
struct CachedEntry<T> {
    stamp: Stamp,
    at_ns: u64,
    entry: Result<T, String>,
}

/// Directories of each entry by its id.
pub(crate) type DirectoriesById = BTreeMap<String, Vec<PathBuf>>;

/// Cached entries of one kind, by their directories.
pub(crate) struct EntryCache<T> {
    known: BTreeMap<Vec<PathBuf>, CachedEntry<T>>,
}

impl<T> Default for EntryCache<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new() }
    }
}

impl<T: Cacheable> EntryCache<T> {
    /// Lists the entries that were `found`, the newest first, with the directories of each. `files` are those
    /// of an entry that show whether it changed; `read` reads an entry.
    pub(crate) fn update(
        &mut self,
        found: Vec<Vec<PathBuf>>,
        now_ns: u64,
        files: &[&str],
        read: impl Fn(&[PathBuf]) -> Result<T, String>,
    ) -> (Entries<T>, DirectoriesById) {
        let mut before = std::mem::take(&mut self.known);
        let mut list = Entries::default();
        let mut entries: Vec<(&Vec<PathBuf>, T)> = Vec::new();
        for directories in found {
            let stamp = stamp(&directories, files);
            let known = before.remove(&directories).filter(|known| known.is_fresh(&stamp, now_ns));
            let known =
                known.unwrap_or_else(|| CachedEntry { stamp, at_ns: now_ns, entry: read(&directories) });
            self.known.insert(directories, known);
        }
        for (directories, known) in &self.known {
            match &known.entry {
                Ok(entry) => entries.push((directories, entry.clone())),
                Err(why) => list.unreadable.push(unreadable(directories, why)),
            }
        }
        entries.sort_by(|(place, a), (other, b)| (b.created(), place).cmp(&(a.created(), other)));
        if entries.len() > ENTRIES_MAX {
            list.left_out = Some(format!("{} older entries are not listed", entries.len() - ENTRIES_MAX));
            entries.truncate(ENTRIES_MAX);
        }
        let mut by_id = DirectoriesById::new();
        let mut taken = BTreeSet::new();
        for (directories, mut entry) in entries {
            let id = own_id(entry.id(), directories, &mut taken);
            by_id.insert(id.clone(), directories.clone());
            *entry.id() = id;
            list.entries.push(entry);
        }
        (list, by_id)
    }
}

impl<T: Cacheable> CachedEntry<T> {
    fn is_fresh(&self, stamp: &Stamp, now_ns: u64) -> bool {
        match self.entry.as_ref().is_ok_and(Cacheable::grows) {
            true => now_ns.saturating_sub(self.at_ns) < GROWING_NS_MAX,
            false => self.stamp == *stamp,
        }
    }
}

/// An entry that cannot be read.
pub(crate) fn unreadable(directories: &[PathBuf], why: &str) -> Unreadable {
    let directory = directories.first().map(|path| path.display().to_string()).unwrap_or_default();
    Unreadable { directory, why: why.to_owned() }
}

/// `id` where it can be one and is still free, else one made from the place: copies have the same id, and
/// results of the first versions have none.
fn own_id(id: &str, place: &[PathBuf], taken: &mut BTreeSet<String>) -> String {
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

/// Stamps of the directories and of the files in them; zeros for what is missing.
fn stamp(directories: &[PathBuf], files: &[&str]) -> Stamp {
    let of = |path: PathBuf| {
        let meta = std::fs::symlink_metadata(path).ok();
        meta.map_or((0, 0, 0), |meta| (meta.mtime(), meta.mtime_nsec(), meta.len()))
    };
    let within = |directory: &PathBuf| files.iter().map(|file| directory.join(file)).collect::<Vec<_>>();
    directories.iter().flat_map(within).chain(directories.iter().cloned()).map(of).collect()
}
