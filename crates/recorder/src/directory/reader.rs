//! The thread that watches a directory and sends its files to the intake.
//!
//! Invariants: only regular files are opened, without following links; nothing is removed or written; after
//! an overflow of the kernel's queue the directory is scanned, so that no file that stays there is missed; it
//! is watched before the recording starts, so that no time stamp decides whether a file is new; a file that
//! is open for writing is not read, and is reported if it still is at the end.
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sources::directory::{
    DirectoryAddress, FileState, FileTable, Identity, Notice, Reason, RenamedFile, SETTLE, Verdict,
};
use keepup_sys::lease::is_open_for_writing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Advice, OFlags, Stat};
use rustix::io::Errno;

use super::scan::{Scan, identity, is_regular, is_unnamed, state};
use super::tally::Tally;
use super::tree::{Change, Tree};
use super::watch::REPORTS_MAX;
use crate::switches::Switches;

/// Bytes of a file per system call.
const PIECE_BYTES: usize = 1 << 20;
/// Interval of checks whether the directory exists: while it is open, the kernel does not report its removal.
const CHECK: Duration = Duration::from_secs(1);
/// Reason for the loss of a file that is complete elsewhere.
const MOVED_OUT: &str = "moved out of the directory before it was read";
/// Reason for the loss of a version of a file.
const OVERWRITTEN: &str = "overwritten before it was read";
/// Zeros behind the bytes of a file that has become shorter.
const ZEROS: [u8; 4096] = [0; 4096];
/// Flags for files: never follow a link, never wait for a pipe.
const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// When a file may be read.
enum Readiness {
    Now,
    /// When the kernel reports that it was closed.
    Reported,
    /// When it has not changed for a while: whether it is open is not known.
    Unchanged,
}

/// Why the thread ends early.
pub(super) enum Stop {
    /// The intake has closed its end.
    Closed,
    /// The directory cannot be read.
    Failed(String),
}

impl Stop {
    fn cannot(what: &str) -> impl Fn(Errno) -> Self {
        move |error| Self::Failed(format!("cannot {what}: {}", std::io::Error::from(error)))
    }
}

/// A directory and what is known about its files.
pub(super) struct DirectoryReader {
    address: DirectoryAddress,
    tree: Tree,
    socket: OwnedFd,
    switches: Arc<Switches>,
    clock: Arc<dyn Clock>,
    is_networked: bool,
    scans_every_ns: Option<u64>,
    event_bytes_max: u64,
    table: FileTable,
    sequence: u64,
    scan_due_ns: Option<u64>,
    tally: Tally,
    /// Files that were open when they were due; `None` until the recording ends.
    open: Option<BTreeSet<Vec<u8>>>,
}

impl DirectoryReader {
    /// Watches a directory, and enters what is there.
    pub(super) fn new(
        address: DirectoryAddress,
        (directory, socket): (OwnedFd, OwnedFd),
        is_networked: bool,
        event_bytes_max: u64,
        (switches, clock): (Arc<Switches>, Arc<dyn Clock>),
    ) -> rustix::io::Result<Self> {
        let scans_every = address.settle.or(is_networked.then_some(SETTLE));
        // First the watch: a file that is written during the scan is reported.
        let tree = Tree::new(address.clone(), directory)?;
        let mut reader = Self {
            table: FileTable::new(address.settle),
            address,
            tree,
            socket,
            switches,
            clock,
            is_networked,
            scans_every_ns: scans_every.map(|interval| interval.as_nanos() as u64),
            event_bytes_max,
            sequence: 0,
            scan_due_ns: None,
            tally: Tally::default(),
            open: None,
        };
        if reader.scan()? > 0 {
            return Err(Errno::NOSPC);
        }
        Ok(reader)
    }

    /// Sends files from the start of the recording until the intake closes its half of the socket pair.
    pub(super) fn run(&mut self) {
        let watched = self.watch_until_start();
        if !self.is_started() {
            return;
        }
        self.tally.existing = self.table.existing();
        if let Err(Stop::Failed(why)) = watched.and_then(|()| self.serve()) {
            // An error here: the intake has gone.
            let _ = self.fail(why);
        }
    }

    /// Takes note of files that are complete before the recording starts.
    fn watch_until_start(&mut self) -> Result<(), Stop> {
        while !self.switches.is_open() && !self.wait(PollFlags::IN | PollFlags::RDHUP)? {
            self.take_changes()?;
            self.check_directory()?;
            self.scan_if_due()?;
        }
        Ok(())
    }

    /// Waits for the byte with which the intake starts. Returns false if it has gone.
    fn is_started(&self) -> bool {
        loop {
            match rustix::io::read(&self.socket, &mut [0]) {
                Err(Errno::INTR) => {}
                read => return read == Ok(1),
            }
        }
    }

    /// Reports that the directory cannot be read any more.
    fn fail(&mut self, why: String) -> Result<(), Stop> {
        let unread: Vec<Vec<u8>> = self.table.pending().cloned().collect();
        for name in unread {
            if self.table.removed(&name) {
                self.lose(name, format!("the directory could not be read: {why}"))?;
            }
        }
        self.report_counts()?;
        self.send(&Notice::Failed(why))
    }

    fn serve(&mut self) -> Result<(), Stop> {
        loop {
            let is_ending = self.wait(PollFlags::RDHUP)?;
            self.take_changes()?;
            self.check_directory()?;
            self.scan_if_due()?;
            self.report_unreadable()?;
            if is_ending {
                return self.finish();
            }
            self.read_due()?;
        }
    }

    /// Waits until something changes or is due. Returns whether the intake did one of `events`.
    fn wait(&self, events: PollFlags) -> Result<bool, Stop> {
        let now_ns = self.clock.now_ns();
        // Before the start no file is read.
        let file_due_ns = self.table.next_due_ns().filter(|_| self.switches.is_open());
        let due_ns = file_due_ns.into_iter().chain(self.scan_due_ns).min();
        let left =
            due_ns.map_or(CHECK, |due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns)).min(CHECK));
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let watched = self.tree.as_fd();
        let mut fds = [PollFd::from_borrowed_fd(watched, PollFlags::IN), PollFd::new(&self.socket, events)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(!fds[1].revents().is_empty()),
            Err(error) => Err(Stop::cannot("wait for changes")(error)),
        }
    }

    fn check_directory(&self) -> Result<(), Stop> {
        match rustix::fs::fstat(self.tree.root()) {
            Ok(stat) if stat.st_nlink == 0 => Err(Stop::Failed("it was removed".to_owned())),
            Ok(_) => Ok(()),
            Err(error) => Err(Stop::cannot("examine it")(error)),
        }
    }

    /// Whether a file that is complete now is to be recorded.
    fn is_wanted_now(&self) -> bool {
        self.address.with_existing || self.switches.is_open()
    }

    fn scan_if_due(&mut self) -> Result<(), Stop> {
        match self.scan_due_ns {
            Some(due_ns) if due_ns <= self.clock.now_ns() => {
                self.scan().map(drop).map_err(Stop::cannot("list it"))
            }
            _ => Ok(()),
        }
    }

    /// Enters what is in the directory. Returns the number of subdirectories that are not watched.
    fn scan(&mut self) -> rustix::io::Result<u64> {
        let started_ns = self.clock.now_ns();
        let scan = self.tree.scan(b"")?;
        // After the listing: what is new in it may have been completed after the start.
        let (now_ns, is_wanted) = (self.clock.now_ns(), self.is_wanted_now());
        for (from, to) in &scan.renamed {
            self.table.directory_renamed(from, to);
        }
        // The files in a directory that cannot be read at the moment are still known.
        if scan.unreadable.is_none() {
            self.table.retain(&scan.names());
        }
        self.tally.note_scan(&scan, true);
        for (name, identity) in scan.files {
            match is_wanted {
                true => self.table.scanned(&name, identity, now_ns),
                false => self.table.skip(name, identity),
            }
        }
        self.scan_unwatched(scan.unwatched);
        // A directory that takes long to list is listed less often.
        let pause_ns = 4 * now_ns.saturating_sub(started_ns);
        self.scan_due_ns = self.scans_every_ns.map(|interval_ns| now_ns + interval_ns.max(pause_ns));
        Ok(scan.unwatched)
    }

    /// Enters what is in a new subdirectory.
    fn enter_directory(&mut self, path: &[u8]) -> Result<(), Stop> {
        if self.tree.is_watched(path) { Ok(()) } else { self.list_directory(path) }
    }

    fn list_directory(&mut self, path: &[u8]) -> Result<(), Stop> {
        let scan: Scan = self.tree.scan(path).map_err(Stop::cannot("list a subdirectory"))?;
        // After the listing, as in a scan.
        let (now_ns, is_wanted) = (self.clock.now_ns(), self.is_wanted_now());
        self.tally.note_scan(&scan, false);
        self.rename_files(&scan.renamed)?;
        for (name, identity) in scan.files {
            match is_wanted {
                true => self.table.listed(&name, identity, now_ns),
                false => self.table.skip(name, identity),
            }
        }
        if self.scan_unwatched(scan.unwatched) {
            self.scan_due_ns = Some(now_ns);
        }
        Ok(())
    }

    /// Without reports from some subdirectories, scans find the files. Returns whether that is new.
    fn scan_unwatched(&mut self, unwatched: u64) -> bool {
        let is_new = unwatched > 0 && self.scans_every_ns.is_none();
        if is_new {
            self.scans_every_ns = Some(SETTLE.as_nanos() as u64);
        }
        is_new
    }

    /// Enters the new names of files in renamed directories into the index.
    fn rename_files(&mut self, directories: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Stop> {
        for (from, to) in directories {
            for RenamedFile { sequence, name, from } in self.table.directory_renamed(from, to) {
                self.send(&Notice::Renamed { sequence, name, from })?;
            }
        }
        Ok(())
    }

    /// Takes note of a file that is complete before the recording starts.
    fn skip(&mut self, name: Vec<u8>) {
        if let Ok(stat) = self.tree.stat(&name)
            && is_regular(&stat)
        {
            self.table.skip(name, identity(&stat));
        }
    }

    /// Enters what has changed; returns the number of reports.
    fn take_changes(&mut self) -> Result<usize, Stop> {
        let reports = self.tree.reports().map_err(Stop::cannot("watch it"))?;
        // After the reports were taken: none that follows the start is skipped.
        let is_wanted = self.is_wanted_now();
        let (count, now_ns) = (reports.len(), self.clock.now_ns());
        for report in reports {
            if let Some(change) = self.tree.change(report) {
                self.take_change(change, is_wanted, now_ns)?;
            }
        }
        self.lose_moved(now_ns)?;
        Ok(count)
    }

    fn take_change(&mut self, change: Change, is_wanted: bool, now_ns: u64) -> Result<(), Stop> {
        match change {
            Change::Closed(name) | Change::Created(name) | Change::MovedIn(name, _)
                if !is_wanted && self.address.wants(&name) =>
            {
                self.skip(name);
            }
            Change::Closed(name) if self.address.wants(&name) => {
                let version = self.complete_version(&name);
                if self.table.closed(&name, version, now_ns) {
                    self.lose(name, OVERWRITTEN.to_owned())?;
                }
            }
            Change::Created(name) if self.address.wants(&name) => self.table.created(&name, now_ns),
            Change::Closed(_) | Change::Created(_) => {}
            Change::MovedIn(name, cookie) => {
                if self.address.wants(&name) {
                    let version = self.complete_version(&name);
                    if self.table.moved_in(&name, cookie, version, now_ns) {
                        self.lose(name, "replaced by another file before it was read".to_owned())?;
                    }
                }
            }
            Change::MovedOut(name, cookie) => self.table.moved_out(&name, cookie, now_ns),
            Change::Removed(name) => {
                if self.table.removed(&name) {
                    self.lose(name, "removed before it was read".to_owned())?;
                }
            }
            Change::DirectoryIn(path) => self.enter_directory(&path)?,
            Change::DirectoryRenamed { from, to, is_exchanged } => {
                self.rename_files(&[(from, to.clone())])?;
                // Another directory may have had the old name when it was entered.
                self.list_directory(&to)?;
                if is_exchanged {
                    self.scan_due_ns = Some(now_ns);
                }
            }
            Change::DirectoryOut(path) => self.table.directory_moved_out(&path, now_ns),
            Change::Overflow => {
                self.tally.overflows += 1;
                self.scan_due_ns = Some(now_ns);
            }
            Change::Relocated => {
                let remark =
                    "the directory was moved; its files are still recorded, a new one is not watched";
                self.send(&Notice::Remark(remark.to_owned()))?;
            }
            Change::Gone(why) => return Err(Stop::Failed(why.to_owned())),
        }
        Ok(())
    }

    /// Reports files that were moved away before they were read.
    fn lose_moved(&mut self, now_ns: u64) -> Result<(), Stop> {
        for name in self.table.moved_away(now_ns) {
            self.lose(name, MOVED_OUT.to_owned())?;
        }
        Ok(())
    }

    /// The version of a file that the kernel has just reported. `None` if it is gone, or open for writing:
    /// then its version is not that of the report.
    fn complete_version(&self, name: &[u8]) -> Option<FileState> {
        let before = self.tree.stat(name).ok().filter(is_regular)?;
        if self.is_open(name) == Some(true) {
            return None;
        }
        let after = self.tree.stat(name).ok()?;
        // Otherwise it was opened between the two.
        (identity(&before) == identity(&after)).then(|| state(&after))
    }

    /// Whether a program has a regular file open for writing; `None` if that cannot be known.
    fn is_open(&self, name: &[u8]) -> Option<bool> {
        if self.is_networked {
            // Programs on other machines have no leases here.
            return None;
        }
        let file = self.tree.open(name, OPEN).ok()?;
        is_open_for_writing(file.as_fd()).ok()
    }

    /// Whether a file may be read now. One that is open for writing will be reported when it is closed.
    fn readiness(&self, name: &[u8], stat: &Stat) -> Readiness {
        let unknown = match self.table.reason(name) {
            // A later change would be another version.
            Some(Reason::Complete(Some(_))) => return Readiness::Now,
            Some(Reason::Created) => Readiness::Reported,
            Some(Reason::Listed) => Readiness::Unchanged,
            // A scan finds the file again if it changes.
            _ => Readiness::Now,
        };
        match self.is_open(name) {
            Some(true) => Readiness::Reported,
            Some(false) => Readiness::Now,
            None if !self.is_networked && stat.st_nlink > 1 => Readiness::Now,
            None => unknown,
        }
    }

    /// Reads the files that are due, until the recording ends; takes changes meanwhile.
    fn read_due(&mut self) -> Result<(), Stop> {
        while let Some(name) = self.table.next_due(self.clock.now_ns()) {
            self.take_file(name)?;
            self.take_changes()?;
            if self.is_ending() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the intake has closed its half of the socket pair.
    fn is_ending(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// Takes a file that is due.
    fn take_file(&mut self, name: Vec<u8>) -> Result<(), Stop> {
        let stat = match self.tree.stat(&name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return self.take_missing(name),
            Err(error) => {
                self.table.removed(&name);
                return self.lose(name, format!("cannot be examined: {}", std::io::Error::from(error)));
            }
        };
        let now_ns = self.clock.now_ns();
        if !is_regular(&stat) {
            self.table.removed(&name);
            self.tally.note_irregular(name);
            return Ok(());
        }
        let (found, reason) = (state(&stat), self.table.reason(&name));
        if let Some(Reason::Complete(Some(reported))) = reason
            && reported.identity != found.identity
        {
            return self.take_altered(name, found);
        }
        match self.readiness(&name, &stat) {
            Readiness::Now => {}
            Readiness::Reported => {
                if reason == Some(Reason::Complete(None)) {
                    self.tally.note_reopened(&name);
                }
                self.leave(name);
                return Ok(());
            }
            Readiness::Unchanged => {
                self.table.leave(&name);
                self.table.changed(&name, found.identity, now_ns);
                return Ok(());
            }
        }
        if let Some(open) = &mut self.open {
            open.remove(&name);
        }
        match self.table.judge(&name, found, now_ns) {
            Verdict::Skip => Ok(()),
            Verdict::Renamed { sequence, from } => self.send(&Notice::Renamed { sequence, name, from }),
            Verdict::Record { again } => self.record(name, found.identity, again, reason),
        }
    }

    /// Takes a file that has changed since the kernel reported that it was complete.
    fn take_altered(&mut self, name: Vec<u8>, found: FileState) -> Result<(), Stop> {
        let due_ns = self.table.due_ns(&name);
        while self.take_changes()? >= REPORTS_MAX {}
        if self.table.due_ns(&name) != due_ns {
            // Reported meanwhile.
            return Ok(());
        }
        match self.is_open(&name) {
            Some(true) => {
                let is_lost = self.table.is_owed(&name);
                self.leave(name.clone());
                if is_lost { self.lose(name, OVERWRITTEN.to_owned()) } else { Ok(()) }
            }
            // A change of its content would have been reported: a program has set its time.
            is_open => {
                self.table.altered(&name, found, is_open.is_none(), self.clock.now_ns());
                Ok(())
            }
        }
    }

    /// Does not read a file that is open.
    fn leave(&mut self, name: Vec<u8>) {
        self.table.leave(&name);
        if let Some(open) = &mut self.open {
            open.insert(name);
        }
    }

    /// Takes a file whose name is gone. Reports that the kernel has made say whether it was renamed.
    fn take_missing(&mut self, name: Vec<u8>) -> Result<(), Stop> {
        while self.take_changes()? >= REPORTS_MAX {}
        if self.tree.stat(&name).is_err() && self.table.removed(&name) && !is_unnamed(&name) {
            return self.lose(name, "removed before it was read".to_owned());
        }
        Ok(())
    }

    /// Sends a file.
    fn record(
        &mut self,
        name: Vec<u8>,
        found: Identity,
        again: bool,
        reason: Option<Reason>,
    ) -> Result<(), Stop> {
        let opened = self.tree.open(&name, OPEN).and_then(|file| Ok((rustix::fs::fstat(&file)?, file)));
        let (state_before, file) = match opened {
            Ok((before, file)) if is_regular(&before) => (state(&before), file),
            Ok(_) => {
                self.tally.note_irregular(name);
                return Ok(());
            }
            Err(Errno::NOENT) => {
                // Renamed or removed in this moment.
                self.table.closed(&name, None, self.clock.now_ns());
                return self.take_missing(name);
            }
            Err(error) => {
                return self.give_up(
                    name,
                    found,
                    format!("cannot be opened: {}", std::io::Error::from(error)),
                );
            }
        };
        let before = state_before.identity;
        if before.bytes > self.event_bytes_max {
            let (bytes, limit) = (before.bytes, self.event_bytes_max);
            let why =
                format!("{bytes} bytes, limit {limit} bytes; raise --pool, above 512 MiB also --max-event");
            return self.give_up(name, before, why);
        }
        let (sequence, mtime_ns) = (self.sequence, before.mtime_ns);
        self.send(&Notice::File { sequence, name: name.clone(), bytes: before.bytes, mtime_ns })?;
        let failure = self.send_content(&file, before.bytes)?;
        let after = rustix::fs::fstat(&file).map(|stat| state(&stat));
        match (failure, after) {
            (Some(error), _) | (None, Err(error)) => {
                self.send(&Notice::Changed)?;
                self.give_up(name, before, format!("cannot be read: {}", std::io::Error::from(error)))
            }
            (None, Ok(after)) if self.has_changed(&name, state_before, after) => {
                self.tally.changed += 1;
                let now_ns = self.clock.now_ns();
                match reason {
                    // This version was complete: lost if it has been overwritten.
                    Some(Reason::Complete(_)) => self.table.altered(&name, state_before, false, now_ns),
                    _ => self.table.changed(&name, after.identity, now_ns),
                }
                self.send(&Notice::Changed)
            }
            (None, Ok(_)) => self.conclude(name, state_before, again),
        }
    }

    /// Whether a file changed while it was read. A program may have set the time of its last change; then
    /// only the time of the last status change differs, as after a rename or a removal.
    fn has_changed(&self, name: &[u8], before: FileState, after: FileState) -> bool {
        let has_its_name = || self.tree.stat(name).is_ok_and(|stat| identity(&stat) == before.identity);
        after.identity != before.identity || after.ctime_ns != before.ctime_ns && has_its_name()
    }

    fn conclude(&mut self, name: Vec<u8>, state: FileState, again: bool) -> Result<(), Stop> {
        if again {
            if self.tally.again == 0 {
                self.tally.first_again.clone_from(&name);
            }
            self.tally.again += 1;
        }
        if self.table.recorded(name, state, self.sequence) {
            self.tally.existing = self.tally.existing.saturating_sub(1);
        }
        self.sequence += 1;
        self.send(&Notice::Whole)
    }

    /// Sends exactly `bytes` bytes: the content of a file, and zeros in the place of what cannot be read.
    /// Returns the error, if any.
    fn send_content(&self, file: &OwnedFd, bytes: u64) -> Result<Option<Errno>, Stop> {
        // Only a recommendation.
        let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
        let (mut sent, mut failure) = (0, None);
        while sent < bytes {
            let count = usize::try_from(bytes - sent).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            match rustix::fs::sendfile(&self.socket, file, None, count) {
                Ok(0) => break,
                Ok(count) => sent += count as u64,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Stop::Closed),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        while sent < bytes {
            let count = usize::try_from(bytes - sent).unwrap_or(ZEROS.len()).min(ZEROS.len());
            self.send_bytes(&ZEROS[..count])?;
            sent += count as u64;
        }
        Ok(failure)
    }

    /// Reports a file that will not be recorded. A file that is gone before the recording starts is no loss.
    fn lose(&mut self, name: Vec<u8>, why: String) -> Result<(), Stop> {
        if !self.switches.is_open() {
            return Ok(());
        }
        let sequence = self.sequence;
        self.sequence += 1;
        self.send(&Notice::Lost { sequence, name, why })
    }

    /// Reports a file that will not be recorded unless it changes, whatever scans find.
    fn give_up(&mut self, name: Vec<u8>, identity: Identity, why: String) -> Result<(), Stop> {
        self.table.skip(name.clone(), identity);
        self.lose(name, why)
    }

    /// Takes the files that are complete, and ends.
    fn finish(&mut self) -> Result<(), Stop> {
        // Before the reports are taken: what is closed by then is complete.
        let listed = self.tree.files().map_err(Stop::cannot("list it"))?;
        self.open = Some(BTreeSet::new());
        // Of new directories, reports follow after they are watched.
        let limit_ns = self.clock.now_ns() + SETTLE.as_nanos() as u64;
        while self.take_changes()? > 0 && self.clock.now_ns() < limit_ns {}
        self.lose_moved(u64::MAX)?;
        if self.scans_every_ns.is_some() || self.scan_due_ns.is_some() {
            self.scan_due_ns = Some(0);
            self.scan_if_due()?;
        }
        // What nobody has reported is open, or was changed under another name.
        for (name, listed) in listed {
            if !self.table.has(&name, listed)
                && self.tree.stat(&name).is_ok_and(|stat| !self.table.has(&name, identity(&stat)))
            {
                self.table.created(&name, self.clock.now_ns());
            }
        }
        self.table.hurry();
        let limit_ns = self.clock.now_ns() + SETTLE.as_nanos() as u64;
        // Those that are not reported are checked twice, and no more.
        for _ in 0..2 {
            let names: Vec<Vec<u8>> = self.table.pending().cloned().collect();
            for name in names {
                if let Some(due_ns) = self.table.due_ns(&name) {
                    self.clock.sleep_until_ns(due_ns.min(limit_ns));
                    self.take_file(name)?;
                }
            }
        }
        let mut unfinished = self.open.take().unwrap_or_default();
        unfinished.extend(self.table.pending().cloned());
        self.tally.unfinished = unfinished.len() as u64;
        self.tally.first_unfinished = unfinished.pop_first().unwrap_or_default();
        self.report_counts()?;
        self.send(&Notice::End)
    }

    /// Sends what was not recorded, and why.
    fn report_counts(&mut self) -> Result<(), Stop> {
        self.report_unreadable()?;
        let unfinished = self.tally.unfinished();
        unfinished.into_iter().try_for_each(|notice| self.send(&notice))?;
        let tally = std::mem::take(&mut self.tally);
        tally.remarks().into_iter().try_for_each(|remark| self.send(&Notice::Remark(remark)))
    }

    /// Sends that a subdirectory cannot be read, once.
    fn report_unreadable(&mut self) -> Result<(), Stop> {
        let unreadable = self.tally.take_unreadable();
        unreadable.into_iter().try_for_each(|notice| self.send(&notice))
    }

    fn send(&self, notice: &Notice) -> Result<(), Stop> {
        self.send_bytes(&notice.to_bytes())
    }

    fn send_bytes(&self, mut bytes: &[u8]) -> Result<(), Stop> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.socket, bytes, rustix::net::SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(_) => return Err(Stop::Closed),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
