//! The thread that watches a directory and sends its files to the intake.
//!
//! Invariants: only regular files are opened, without following links; nothing is removed or written; after
//! an overflow of the kernel's queue the directory is scanned, so that no file that stays there is missed; it
//! is watched before the recording starts, so that no time stamp decides whether a file is new.
use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sources::directory::{DirectoryAddress, FileTable, Identity, Notice, Reason, SETTLE, Verdict};
use keepup_sys::lease::is_open_for_writing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Advice, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::scan::{Scan, identity, stat};
use super::watch::{Change, REPORTS_MAX, Watch};
use crate::switches::Switches;

/// Bytes of a file per system call.
const PIECE_BYTES: usize = 1 << 20;
/// Interval of checks whether the directory exists: while it is open, the kernel does not report its removal.
const CHECK: Duration = Duration::from_secs(1);
/// Zeros behind the bytes of a file that has become shorter.
const ZEROS: [u8; 4096] = [0; 4096];
/// Most names that are not regular files and are counted.
const IRREGULAR_MAX: usize = 10_000;
/// Flags for files: never follow a link, never wait for a pipe.
const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

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

/// Counts for the report, each with the first name.
#[derive(Default)]
struct Tally {
    existing: u64,
    directories: u64,
    changed: u64,
    again: u64,
    overflows: u64,
    irregular: HashSet<Vec<u8>>,
    unfinished: u64,
    /// First name that was recorded again, and that was not finished.
    first_again: Vec<u8>,
    first_unfinished: Vec<u8>,
}

impl Tally {
    fn note_irregular(&mut self, name: Vec<u8>) {
        if self.irregular.len() < IRREGULAR_MAX {
            self.irregular.insert(name);
        }
    }
}

/// A directory and what is known about its files.
pub(super) struct DirectoryReader {
    address: DirectoryAddress,
    directory: OwnedFd,
    watch: Watch,
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
        let watch = Watch::new(&directory)?;
        let mut reader = Self {
            table: FileTable::new(address.settle),
            address,
            directory,
            watch,
            socket,
            switches,
            clock,
            is_networked,
            scans_every_ns: scans_every.map(|interval| interval.as_nanos() as u64),
            event_bytes_max,
            sequence: 0,
            scan_due_ns: None,
            tally: Tally::default(),
        };
        reader.scan()?;
        Ok(reader)
    }

    /// Sends files from the start of the recording until the intake closes its half of the socket pair.
    pub(super) fn run(mut self) {
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
        let watched = self.watch.as_fd();
        let mut fds = [PollFd::from_borrowed_fd(watched, PollFlags::IN), PollFd::new(&self.socket, events)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(!fds[1].revents().is_empty()),
            Err(error) => Err(Stop::cannot("wait for changes")(error)),
        }
    }

    fn check_directory(&self) -> Result<(), Stop> {
        match rustix::fs::fstat(&self.directory) {
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
            Some(due_ns) if due_ns <= self.clock.now_ns() => self.scan().map_err(Stop::cannot("list it")),
            _ => Ok(()),
        }
    }

    /// Enters what is in the directory.
    fn scan(&mut self) -> rustix::io::Result<()> {
        let started_ns = self.clock.now_ns();
        let scan = Scan::of(&self.directory, &self.address)?;
        // After the listing: what is new in it may have been completed after the start.
        let (now_ns, is_wanted) = (self.clock.now_ns(), self.is_wanted_now());
        self.table.retain(&scan.names());
        for (name, identity) in scan.files {
            match is_wanted {
                true => self.table.scanned(&name, identity, now_ns),
                false => self.table.skip(name, identity),
            }
        }
        self.tally.directories = scan.directories;
        scan.irregular.into_iter().for_each(|name| self.tally.note_irregular(name));
        // A directory that takes long to list is listed less often.
        let pause_ns = 4 * now_ns.saturating_sub(started_ns);
        self.scan_due_ns = self.scans_every_ns.map(|interval_ns| now_ns + interval_ns.max(pause_ns));
        Ok(())
    }

    /// Takes note of a file that is complete before the recording starts.
    fn skip(&mut self, name: Vec<u8>) {
        if let Ok(stat) = stat(&self.directory, &name)
            && is_regular(&stat)
        {
            self.table.skip(name, identity(&stat));
        }
    }

    /// Enters what has changed; returns the number of changes.
    fn take_changes(&mut self) -> Result<usize, Stop> {
        let changes = self.watch.changes().map_err(Stop::cannot("watch it"))?;
        // After the changes were taken: none that follows the start is skipped.
        let is_wanted = self.is_wanted_now();
        let (count, now_ns) = (changes.len(), self.clock.now_ns());
        for change in changes {
            match change {
                Change::Closed(name) | Change::Created(name) | Change::MovedIn(name, _)
                    if !is_wanted && self.address.wants(&name) =>
                {
                    self.skip(name);
                }
                Change::Closed(name) if self.address.wants(&name) => self.table.closed(&name, now_ns),
                Change::Created(name) if self.address.wants(&name) => self.table.created(&name, now_ns),
                Change::Closed(_) | Change::Created(_) => {}
                Change::MovedIn(name, cookie) => {
                    if self.address.wants(&name) && self.table.moved_in(&name, cookie, now_ns) {
                        self.lose(name, "replaced by another file before it was read".to_owned())?;
                    }
                }
                Change::MovedOut(name, cookie) => self.table.moved_out(&name, cookie, now_ns),
                Change::Removed(name) => {
                    if self.table.removed(&name) {
                        self.lose(name, "removed before it was read".to_owned())?;
                    }
                }
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
        }
        self.lose_moved(now_ns)?;
        Ok(count)
    }

    /// Reports files that were moved away before they were read.
    fn lose_moved(&mut self, now_ns: u64) -> Result<(), Stop> {
        for name in self.table.moved_away(now_ns) {
            self.lose(name, "moved out of the directory before it was read".to_owned())?;
        }
        Ok(())
    }

    /// Whether a file that was not reported as complete may be read now. One that is open for writing will be
    /// reported when it is closed.
    fn may_read(&self, name: &[u8], stat: &Stat) -> bool {
        let reason = self.table.reason(name);
        if reason == Some(Reason::Complete) || !is_regular(stat) {
            return true;
        }
        let is_scanned = reason != Some(Reason::Created);
        if self.is_networked {
            // Programs on other machines have no leases here. Scans find the file.
            return is_scanned;
        }
        let opened = rustix::fs::openat(&self.directory, name, OPEN, Mode::empty());
        match opened.map(|file| is_open_for_writing(file.as_fd())) {
            Ok(Ok(is_open)) => !is_open,
            // Not known.
            _ => is_scanned || stat.st_nlink > 1,
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
        let now_ns = self.clock.now_ns();
        let stat = match stat(&self.directory, &name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) if self.table.removed(&name) && !is_unnamed(&name) => {
                return self.lose(name, "removed before it was read".to_owned());
            }
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => {
                self.table.removed(&name);
                return self.lose(name, format!("cannot be examined: {}", std::io::Error::from(error)));
            }
        };
        if !is_regular(&stat) {
            self.table.removed(&name);
            self.tally.note_irregular(name);
            return Ok(());
        }
        if !self.may_read(&name, &stat) {
            self.table.leave(&name);
            return Ok(());
        }
        match self.table.judge(&name, identity(&stat), now_ns) {
            Verdict::Skip => Ok(()),
            Verdict::Renamed { sequence, from } => self.send(&Notice::Renamed { sequence, name, from }),
            Verdict::Record { again } => self.record(name, identity(&stat), again),
        }
    }

    /// Sends a file.
    fn record(&mut self, name: Vec<u8>, found: Identity, again: bool) -> Result<(), Stop> {
        let opened = rustix::fs::openat(&self.directory, name.as_slice(), OPEN, Mode::empty())
            .and_then(|file| Ok((rustix::fs::fstat(&file)?, file)));
        let (before, file) = match opened {
            Ok((before, file)) if is_regular(&before) => (identity(&before), file),
            Ok(_) => {
                self.tally.note_irregular(name);
                return Ok(());
            }
            Err(Errno::NOENT) => return self.lose(name, "removed before it was read".to_owned()),
            Err(error) => {
                return self.give_up(
                    name,
                    found,
                    format!("cannot be opened: {}", std::io::Error::from(error)),
                );
            }
        };
        if before.bytes > self.event_bytes_max {
            let (bytes, limit) = (before.bytes, self.event_bytes_max);
            let why =
                format!("{bytes} bytes, limit {limit} bytes; raise --pool, above 512 MiB also --max-event");
            return self.give_up(name, before, why);
        }
        let (sequence, mtime_ns) = (self.sequence, before.mtime_ns);
        self.send(&Notice::File { sequence, name: name.clone(), bytes: before.bytes, mtime_ns })?;
        let failure = self.send_content(&file, before.bytes)?;
        let after = rustix::fs::fstat(&file).map(|stat| identity(&stat));
        match (failure, after) {
            (Some(error), _) | (None, Err(error)) => {
                self.send(&Notice::Changed)?;
                self.give_up(name, before, format!("cannot be read: {}", std::io::Error::from(error)))
            }
            (None, Ok(after)) if after != before => {
                self.tally.changed += 1;
                self.table.changed(&name, after, self.clock.now_ns());
                self.send(&Notice::Changed)
            }
            (None, Ok(_)) => self.conclude(name, before, again),
        }
    }

    fn conclude(&mut self, name: Vec<u8>, identity: Identity, again: bool) -> Result<(), Stop> {
        if again {
            if self.tally.again == 0 {
                self.tally.first_again.clone_from(&name);
            }
            self.tally.again += 1;
        }
        if self.table.recorded(name, identity, self.sequence) {
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
        while self.take_changes()? >= REPORTS_MAX {}
        self.lose_moved(u64::MAX)?;
        if self.scans_every_ns.is_some() || self.scan_due_ns.is_some() {
            self.scan_due_ns = Some(0);
            self.scan_if_due()?;
        }
        self.table.hurry();
        let names: Vec<Vec<u8>> = self.table.pending().cloned().collect();
        // Those that a scan found are checked twice, and no more.
        let limit_ns = self.clock.now_ns() + SETTLE.as_nanos() as u64;
        for name in names {
            if let Some(due_ns) = self.table.due_ns(&name) {
                self.clock.sleep_until_ns(due_ns.min(limit_ns));
            }
            self.take_file(name)?;
        }
        self.tally.unfinished = self.table.pending().count() as u64;
        self.tally.first_unfinished = self.table.pending().next().cloned().unwrap_or_default();
        self.report_counts()?;
        self.send(&Notice::End)
    }

    /// Sends what was not recorded, and why.
    fn report_counts(&mut self) -> Result<(), Stop> {
        let tally = std::mem::take(&mut self.tally);
        let Tally { existing, directories, changed, again, overflows, unfinished, irregular, .. } = tally;
        let (first_again, first_unfinished) = (tally.first_again, tally.first_unfinished);
        let text = |name: &[u8]| format!("{:?}", String::from_utf8_lossy(name));
        let first = irregular.iter().min().map(|name| text(name)).unwrap_or_default();
        let irregular = irregular.len() as u64;
        let remarks = [
            (existing, format!("files not recorded, there before the start: {existing}")),
            (directories, format!("subdirectories not recorded: {directories}")),
            (irregular, format!("names not recorded, not regular files: {irregular}; first: {first}")),
            (again, format!("files recorded again, changed: {again}; first: {}", text(&first_again))),
            (
                unfinished,
                format!(
                    "files not recorded, still changing at the end: {unfinished}; first: {}",
                    text(&first_unfinished)
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
        for (_, remark) in remarks.into_iter().filter(|(count, _)| *count > 0) {
            self.send(&Notice::Remark(remark))?;
        }
        Ok(())
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

/// Whether the kernel made up a name for a file that was created without one (`O_TMPFILE`).
fn is_unnamed(name: &[u8]) -> bool {
    name.strip_prefix(b"#").is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
