//! What the kernel reports about directories (`inotify`).
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Memory for reports, bytes. One report has at most 272 bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Reports after which taking them pauses, so that files are read meanwhile.
pub(super) const REPORTS_MAX: usize = 4096;
/// Waits for the second half of the rename of a directory, and the length of each.
const HALF_WAITS: usize = 10;
const HALF_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A kind of report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file was closed after writing.
    Closed,
    /// A name was created.
    Created,
    /// A name was moved here. Both halves of a rename have the same cookie.
    MovedIn,
    /// A name was moved away.
    MovedOut,
    /// A name was removed.
    Removed,
    /// The kernel has dropped reports.
    Overflow,
    /// The directory itself was moved.
    Relocated,
    /// The file system of the directory was unmounted.
    Unmounted,
    /// The kernel has ended the watch.
    Ended,
}

/// A report about a directory or a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) kind: Kind,
    /// Number of the watch.
    pub(super) watch: i32,
    /// Whether the name is that of a directory.
    pub(super) is_directory: bool,
    /// The name, empty if the report is about the directory itself.
    pub(super) name: Vec<u8>,
    /// Common number of both halves of a rename.
    pub(super) cookie: u32,
}

/// Watches on directories, with one queue of reports in the order of the changes.
pub(super) struct Watch {
    inotify: OwnedFd,
    buffer: Vec<MaybeUninit<u8>>,
    pairs_directories: bool,
}

impl Watch {
    /// Without any watch. `pairs_directories`: whether both halves of the rename of a directory are wanted
    /// together.
    pub(super) fn new(pairs_directories: bool) -> rustix::io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { inotify, buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES], pairs_directories })
    }

    /// Watches a directory. A directory that is watched keeps its number, under whatever name.
    pub(super) fn add(&self, directory: &OwnedFd, is_root: bool) -> rustix::io::Result<i32> {
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        let flags = if is_root { flags | WatchFlags::MOVE_SELF } else { flags };
        // By the descriptor: another directory may have taken the name.
        inotify::add_watch(&self.inotify, format!("/proc/self/fd/{}", directory.as_raw_fd()), flags)
    }

    /// Ends a watch.
    pub(super) fn remove(&self, watch: i32) {
        // The kernel has ended it already if the directory was removed.
        let _ = inotify::remove_watch(&self.inotify, watch);
    }

    /// Readable when something has changed.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Takes reports; a part of them if there are many.
    pub(super) fn reports(&mut self) -> rustix::io::Result<Vec<Report>> {
        let mut reports = Vec::new();
        self.take(&mut reports)?;
        // The kernel reports the second half at once. A directory without it was moved elsewhere, and its
        // files are lost if they have not been read.
        for _ in 0..HALF_WAITS {
            if !self.pairs_directories || !has_half_rename(&reports) {
                break;
            }
            match poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], Some(&HALF_WAIT)) {
                Ok(_) | Err(Errno::INTR) => self.take(&mut reports)?,
                Err(error) => return Err(error),
            }
        }
        Ok(reports)
    }

    fn take(&mut self, reports: &mut Vec<Report>) -> rustix::io::Result<()> {
        let limit = reports.len() + REPORTS_MAX;
        let mut reader = inotify::Reader::new(self.inotify.as_fd(), &mut self.buffer);
        // What is in the buffer must be taken, or it is lost.
        while !reader.is_buffer_empty() || reports.len() < limit {
            match reader.next() {
                Ok(event) => reports.extend(report(&event)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a directory was moved away, and no directory was moved in by the same rename.
fn has_half_rename(reports: &[Report]) -> bool {
    let of = |kind: Kind| reports.iter().filter(move |report| report.is_directory && report.kind == kind);
    let moved_in: HashSet<u32> = of(Kind::MovedIn).map(|report| report.cookie).collect();
    of(Kind::MovedOut).any(|report| !moved_in.contains(&report.cookie))
}

fn report(event: &inotify::Event<'_>) -> Option<Report> {
    let flags = event.events();
    let kinds = [
        (ReadFlags::QUEUE_OVERFLOW, Kind::Overflow),
        (ReadFlags::UNMOUNT, Kind::Unmounted),
        (ReadFlags::IGNORED, Kind::Ended),
        (ReadFlags::MOVE_SELF, Kind::Relocated),
        (ReadFlags::CLOSE_WRITE, Kind::Closed),
        (ReadFlags::CREATE, Kind::Created),
        (ReadFlags::MOVED_TO, Kind::MovedIn),
        (ReadFlags::MOVED_FROM, Kind::MovedOut),
        (ReadFlags::DELETE, Kind::Removed),
    ];
    let (_, kind) = kinds.into_iter().find(|(flag, _)| flags.contains(*flag))?;
    Some(Report {
        kind,
        watch: event.wd(),
        is_directory: flags.contains(ReadFlags::ISDIR),
        name: event.file_name().map(|name| name.to_bytes().to_vec()).unwrap_or_default(),
        cookie: event.cookie(),
    })
}
