//! Which files of a directory are to be read, and when; which have been recorded.
//!
//! A file is due a little after the kernel reported that it was closed or moved in: a later change then has
//! another time stamp. A file that was found by a scan is due when it has not changed between two looks at
//! it. Memory: about 200 bytes for each file in the directory.
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use super::{SETTLE, SETTLE_MIN};

/// Time in which both halves of a rename must be reported, ns.
const RENAME_NS: u64 = 100_000_000;
/// Time in which a file that was moved to a directory that is not watched yet must be found there, ns.
const ARRIVAL_NS: u64 = 2_000_000_000;
/// First number of files that were moved away with their directory; cookies of the kernel are smaller.
const MOVED_WITH_DIRECTORY: u64 = 1 << 32;

/// A version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Time of the last change, ns since the Unix epoch.
    pub mtime_ns: u64,
    /// Size, bytes.
    pub bytes: u64,
}

/// State of a file: its version, and the time of the last change of its content or attributes (ctime). No
/// program can set that time, but a rename, a new link or other permissions change it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Version.
    pub identity: Identity,
    /// Time of the last status change, ns since the Unix epoch.
    pub ctime_ns: u64,
}

/// What is to be done with a file that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Record it.
    Record {
        /// Another version of it has been recorded.
        again: bool,
    },
    /// This version has been recorded under another name.
    Renamed {
        /// Sequence number of its event.
        sequence: u64,
        /// Its previous name.
        from: Vec<u8>,
    },
    /// Nothing: this version has been recorded, or it is still changing and is due later.
    Skip,
}

/// A file that was seen before.
#[derive(Clone, Copy, Debug)]
struct Known {
    identity: Identity,
    /// When it was recorded; 0 if it was not.
    ctime_ns: u64,
    /// Sequence number of its event; `None`: it was there before the start.
    sequence: Option<u64>,
}

/// Why a file is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The kernel reported that it is complete. The version that was complete then; `None` if it was gone,
    /// or open for writing again, or still.
    Complete(Option<FileState>),
    /// Its name was created. Usually it is open, and [`FileTable::closed`] follows, unless it is a link.
    Created,
    /// It was in a directory that was new. It may have been complete before the directory was watched.
    Listed,
    /// A scan found this version.
    Scanned(Identity),
}

/// A file that is to be read.
#[derive(Clone, Debug)]
struct Pending {
    /// Its place in the order.
    place: (u64, u64),
    reason: Reason,
    /// The recorded file that was renamed to it.
    origin: Option<(Vec<u8>, Known)>,
}

impl Pending {
    /// The version that was complete when it was reported.
    fn reported(&self) -> Option<FileState> {
        if let Reason::Complete(version) = self.reason { version } else { None }
    }

    /// Whether a complete version that is not in the recording is lost if it cannot be read any more.
    /// `known`: what is known of its name.
    fn is_owed(&self, known: Option<&Known>) -> bool {
        let Reason::Complete(version) = self.reason else { return false };
        let Some(version) = version else { return self.origin.is_none() };
        let is_recorded = match &self.origin {
            Some((_, origin)) => origin.identity == version.identity,
            None => known.is_some_and(|known| known.holds(version)),
        };
        !is_recorded
    }
}

impl Known {
    /// Whether this very state of the file was recorded.
    fn holds(&self, state: FileState) -> bool {
        self.sequence.is_some() && self.identity == state.identity && self.ctime_ns == state.ctime_ns
    }
}

/// A recorded file in a directory that was renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenamedFile {
    /// Sequence number of its event.
    pub sequence: u64,
    /// Its new name.
    pub name: Vec<u8>,
    /// Its previous name.
    pub from: Vec<u8>,
}

/// A name that was moved away, perhaps to another name in the directory.
#[derive(Debug)]
struct Moved {
    name: Vec<u8>,
    known: Option<Known>,
    pending: Option<Pending>,
    since_ns: u64,
}

impl Moved {
    /// When the file is gone if it has not been found, ns.
    fn due_ns(&self) -> u64 {
        self.since_ns.saturating_add(if self.known.is_some() { ARRIVAL_NS } else { RENAME_NS })
    }
}

/// The files of a directory.
#[derive(Debug)]
pub struct FileTable {
    settle_ns: u64,
    known: BTreeMap<Vec<u8>, Known>,
    pending: BTreeMap<Vec<u8>, Pending>,
    /// The pending names in the order in which they are due.
    order: BTreeMap<(u64, u64), Vec<u8>>,
    entered: u64,
    moved: BTreeMap<u64, Moved>,
    /// Times and last parts of the names of files in directories that were new.
    arrivals: VecDeque<(u64, Vec<u8>)>,
}

impl FileTable {
    /// An empty table. `settle`: how long a file that was found by a scan must not change.
    pub fn new(settle: Option<Duration>) -> Self {
        Self {
            settle_ns: settle.unwrap_or(SETTLE).as_nanos() as u64,
            known: BTreeMap::new(),
            pending: BTreeMap::new(),
            order: BTreeMap::new(),
            entered: 0,
            moved: BTreeMap::new(),
            arrivals: VecDeque::new(),
        }
    }

    /// A file that was there before the start, and is not to be recorded unless it changes.
    pub fn skip(&mut self, name: Vec<u8>, identity: Identity) {
        self.known.insert(name, Known { identity, ctime_ns: 0, sequence: None });
    }

    /// Number of files that were there before the start, and have not been recorded.
    pub fn existing(&self) -> u64 {
        self.known.values().filter(|known| known.sequence.is_none()).count() as u64
    }

    /// A file was closed after writing. `version`: what was complete when it was reported, if that is known.
    /// Returns whether an earlier version that was to be read is lost: it has been overwritten.
    pub fn closed(&mut self, name: &[u8], version: Option<FileState>, now_ns: u64) -> bool {
        let before = self.pending.get(name);
        let reported = before.and_then(Pending::reported);
        if reported.is_some() && version.is_none() {
            // Its version when it is due says what has happened to the reported one.
            return false;
        }
        let is_overwritten = reported.is_some() && reported != version;
        let is_lost = is_overwritten && before.is_some_and(|pending| pending.is_owed(self.known.get(name)));
        let origin = before.and_then(|pending| pending.origin.clone()).filter(|_| !is_overwritten);
        self.put(name, now_ns + SETTLE_MIN.as_nanos() as u64, Reason::Complete(version), origin);
        is_lost
    }

    /// A name was created.
    pub fn created(&mut self, name: &[u8], now_ns: u64) {
        if !self.pending.contains_key(name) {
            self.put(name, now_ns + SETTLE_MIN.as_nanos() as u64, Reason::Created, None);
        }
    }

    /// A file was moved to this name; `version` as for [`FileTable::closed`]. Returns whether a version that
    /// was to be read has been replaced.
    pub fn moved_in(&mut self, name: &[u8], cookie: u32, version: Option<FileState>, now_ns: u64) -> bool {
        let is_replaced = self.is_owed(name);
        let from = self.moved.remove(&cookie.into());
        let origin = from.and_then(|from| {
            // Closed after it was recorded: perhaps rewritten with the same size and time.
            let is_rewritten =
                from.pending.as_ref().is_some_and(|pending| pending.is_owed(from.known.as_ref()));
            let earlier = from.pending.and_then(|pending| pending.origin);
            earlier.or_else(|| Some((from.name, from.known?))).filter(|_| !is_rewritten)
        });
        let origin = origin.filter(|(_, known)| known.sequence.is_some());
        self.put(name, now_ns + SETTLE_MIN.as_nanos() as u64, Reason::Complete(version), origin);
        is_replaced
    }

    /// A name was moved away; [`FileTable::moved_in`] with the same cookie may follow.
    pub fn moved_out(&mut self, name: &[u8], cookie: u32, now_ns: u64) {
        let (known, pending) = (self.known.remove(name), self.take_pending(name));
        if known.is_some() || pending.is_some() {
            self.moved.insert(cookie.into(), Moved { name: name.to_vec(), known, pending, since_ns: now_ns });
        }
    }

    /// A name was removed. Returns whether a complete file that was to be read is lost with it.
    pub fn removed(&mut self, name: &[u8]) -> bool {
        let known = self.known.remove(name);
        self.take_pending(name).is_some_and(|pending| pending.is_owed(known.as_ref()))
    }

    /// Names that were to be read, and have been moved out of the directory. A file of the same name that was
    /// found in a new directory is taken for the one that was moved: nobody has reported where it went.
    pub fn moved_away(&mut self, now_ns: u64) -> Vec<Vec<u8>> {
        let is_due = |moved: &Moved| moved.due_ns() <= now_ns;
        let gone: Vec<u64> =
            self.moved.iter().filter(|(_, moved)| is_due(moved)).map(|(id, _)| *id).collect();
        let mut lost = Vec::new();
        for moved in gone.iter().filter_map(|id| self.moved.remove(id)).collect::<Vec<_>>() {
            let is_lost = moved.pending.as_ref().is_some_and(|pending| pending.is_owed(moved.known.as_ref()));
            if is_lost && !self.has_arrived(&moved) {
                lost.push(moved.name);
            }
        }
        lost
    }

    /// Whether a file of this name was found in a new directory.
    fn has_arrived(&mut self, moved: &Moved) -> bool {
        let is_it = |(found_ns, name): &(u64, Vec<u8>)| {
            *found_ns + ARRIVAL_NS >= moved.since_ns && name == last_part(&moved.name)
        };
        let place = self.arrivals.iter().position(is_it);
        place.and_then(|place| self.arrivals.remove(place)).is_some()
    }

    /// A scan found a file, perhaps incomplete.
    pub fn scanned(&mut self, name: &[u8], identity: Identity, now_ns: u64) {
        let is_known = self.known.get(name).is_some_and(|known| known.identity == identity);
        if !is_known && !self.pending.contains_key(name) {
            self.put(name, now_ns + self.settle_ns, Reason::Scanned(identity), None);
        }
    }

    /// A file was found in a directory that was new.
    pub fn listed(&mut self, name: &[u8], identity: Identity, now_ns: u64) {
        let is_known = self.known.get(name).is_some_and(|known| known.identity == identity);
        if !is_known && !self.pending.contains_key(name) {
            self.put(name, now_ns + SETTLE_MIN.as_nanos() as u64, Reason::Listed, None);
            self.arrivals.push_back((now_ns, last_part(name).to_vec()));
            while self.arrivals.front().is_some_and(|(found_ns, _)| found_ns + ARRIVAL_NS < now_ns) {
                self.arrivals.pop_front();
            }
        }
    }

    /// A directory was renamed. Returns the recorded files in it.
    pub fn directory_renamed(&mut self, from: &[u8], to: &[u8]) -> Vec<RenamedFile> {
        // A directory of the new name was replaced: it was empty.
        take_below(&mut self.known, to);
        self.take_pending_below(to);
        let renamed = |name: &[u8]| [to, &name[from.len()..]].concat();
        let mut files = Vec::new();
        for (name, known) in take_below(&mut self.known, from) {
            let new = renamed(&name);
            if let Some(sequence) = known.sequence {
                files.push(RenamedFile { sequence, name: new.clone(), from: name });
            }
            self.known.insert(new, known);
        }
        for (name, pending) in take_below(&mut self.pending, from) {
            self.order.insert(pending.place, renamed(&name));
            self.pending.insert(renamed(&name), pending);
        }
        files
    }

    /// A directory was moved away; [`FileTable::moved_away`] has the files that are lost with it.
    pub fn directory_moved_out(&mut self, path: &[u8], now_ns: u64) {
        let known: BTreeMap<Vec<u8>, Known> = take_below(&mut self.known, path).into_iter().collect();
        for (name, pending) in self.take_pending_below(path) {
            if !pending.is_owed(known.get(&name)) {
                continue;
            }
            self.entered += 1;
            let moved = Moved { name, known: None, pending: Some(pending), since_ns: now_ns };
            self.moved.insert(MOVED_WITH_DIRECTORY + self.entered, moved);
        }
    }

    fn take_pending_below(&mut self, path: &[u8]) -> Vec<(Vec<u8>, Pending)> {
        let pending = take_below(&mut self.pending, path);
        for (_, pending) in &pending {
            self.order.remove(&pending.place);
        }
        pending
    }

    /// Forgets the files that a scan did not find.
    pub fn retain(&mut self, names: &HashSet<Vec<u8>>) {
        self.known.retain(|name, _| names.contains(name));
    }

    /// When the next file is due, or a rename must be complete; ns.
    pub fn next_due_ns(&self) -> Option<u64> {
        let due_ns = self.order.keys().next().map(|(due_ns, _)| *due_ns);
        let renamed_ns = self.moved.values().map(Moved::due_ns).min();
        due_ns.into_iter().chain(renamed_ns).min()
    }

    /// The next file that is due. [`FileTable::judge`] decides about it.
    pub fn next_due(&self, now_ns: u64) -> Option<Vec<u8>> {
        self.order
            .first_key_value()
            .filter(|((due_ns, _), _)| *due_ns <= now_ns)
            .map(|(_, name)| name.clone())
    }

    /// Makes the files due now that the kernel has reported.
    pub fn hurry(&mut self) {
        let is_complete = |pending: &&mut Pending| !matches!(pending.reason, Reason::Scanned(_));
        for pending in self.pending.values_mut().filter(is_complete) {
            if let Some(name) = self.order.remove(&pending.place) {
                pending.place.0 = 0;
                self.order.insert(pending.place, name);
            }
        }
    }

    /// Whether this version of a file was recorded, given up, or there before the start.
    pub fn has(&self, name: &[u8], identity: Identity) -> bool {
        self.known.get(name).is_some_and(|known| known.identity == identity)
    }

    /// Whether a complete version that is to be read is not in the recording.
    pub fn is_owed(&self, name: &[u8]) -> bool {
        self.pending.get(name).is_some_and(|pending| pending.is_owed(self.known.get(name)))
    }

    /// A file that was complete has another version, and no report says why. `settle`: whether it is due only
    /// when it has not changed for a while.
    pub fn altered(&mut self, name: &[u8], version: FileState, settle: bool, now_ns: u64) {
        let origin = self.pending.get(name).and_then(|pending| pending.origin.clone());
        let due_ns = if settle { now_ns + self.settle_ns } else { now_ns };
        self.put(name, due_ns, Reason::Complete(Some(version)), origin);
    }

    /// Does not read a file now, because it is open: [`FileTable::closed`] follows.
    pub fn leave(&mut self, name: &[u8]) {
        self.take_pending(name);
    }

    /// When a file is due, ns; `None` if it is not to be read.
    pub fn due_ns(&self, name: &[u8]) -> Option<u64> {
        self.pending.get(name).map(|pending| pending.place.0)
    }

    /// Why a file is to be read.
    pub fn reason(&self, name: &[u8]) -> Option<Reason> {
        self.pending.get(name).map(|pending| pending.reason)
    }

    /// Names that are to be read, in order.
    pub fn pending(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.order.values()
    }

    /// Takes a file that is due, in the state `found`, and decides what to do with it.
    pub fn judge(&mut self, name: &[u8], found: FileState, now_ns: u64) -> Verdict {
        let Some(Pending { reason, origin, .. }) = self.take_pending(name) else { return Verdict::Skip };
        let identity = found.identity;
        if let Reason::Scanned(seen) = reason
            && seen != identity
        {
            self.put(name, now_ns + self.settle_ns, Reason::Scanned(identity), origin);
            return Verdict::Skip;
        }
        let origin =
            origin.or_else(|| if reason == Reason::Listed { self.recorded_before(identity) } else { None });
        if let Some((from, known)) = origin
            && let Some(sequence) = known.sequence.filter(|_| known.identity == identity)
        {
            self.known.insert(name.to_vec(), Known { ctime_ns: found.ctime_ns, ..known });
            return Verdict::Renamed { sequence, from };
        }
        let is_done = |known: &Known| match reason {
            // A program may have set the time of the version before.
            Reason::Complete(_) => known.holds(found),
            Reason::Created | Reason::Listed => known.sequence.is_some() && known.identity == identity,
            Reason::Scanned(_) => known.identity == identity,
        };
        match self.known.get(name) {
            Some(known) if is_done(known) => Verdict::Skip,
            known => Verdict::Record { again: known.is_some_and(|known| known.sequence.is_some()) },
        }
    }

    /// Name and version of a recorded file that was moved away, perhaps to a directory that was not watched
    /// yet.
    fn recorded_before(&mut self, identity: Identity) -> Option<(Vec<u8>, Known)> {
        let is_it = |moved: &Moved| moved.known.is_some_and(|known| known.identity == identity);
        let id = self.moved.iter().find(|(_, moved)| is_it(moved)).map(|(id, _)| *id)?;
        let moved = self.moved.remove(&id)?;
        Some((moved.name, moved.known.filter(|known| known.sequence.is_some())?))
    }

    /// A file was recorded. Returns whether it was there before the start, and was not recorded until now.
    pub fn recorded(&mut self, name: Vec<u8>, state: FileState, sequence: u64) -> bool {
        let FileState { identity, ctime_ns } = state;
        let before = self.known.insert(name, Known { identity, ctime_ns, sequence: Some(sequence) });
        before.is_some_and(|before| before.sequence.is_none())
    }

    /// A file changed while it was read: it is due when it has not changed for a while.
    pub fn changed(&mut self, name: &[u8], identity: Identity, now_ns: u64) {
        if !self.pending.contains_key(name) {
            self.put(name, now_ns + self.settle_ns, Reason::Scanned(identity), None);
        }
    }

    fn put(&mut self, name: &[u8], due_ns: u64, reason: Reason, origin: Option<(Vec<u8>, Known)>) {
        self.take_pending(name);
        self.entered += 1;
        let place = (due_ns, self.entered);
        self.order.insert(place, name.to_vec());
        self.pending.insert(name.to_vec(), Pending { place, reason, origin });
    }

    fn take_pending(&mut self, name: &[u8]) -> Option<Pending> {
        let pending = self.pending.remove(name)?;
        self.order.remove(&pending.place);
        Some(pending)
    }
}

/// The name without its directories.
fn last_part(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Takes the entries of all names below a directory.
fn take_below<T>(map: &mut BTreeMap<Vec<u8>, T>, directory: &[u8]) -> Vec<(Vec<u8>, T)> {
    let (first, behind) = ([directory, b"/"].concat(), [directory, b"0"].concat());
    let names: Vec<Vec<u8>> = map.range(first..behind).map(|(name, _)| name.clone()).collect();
    names.into_iter().filter_map(|name| map.remove_entry(&name)).collect()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
