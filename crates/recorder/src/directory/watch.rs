//! What the kernel reports about a directory (`inotify`).
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Memory for reports, bytes. One report has at most 272 bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Changes after which taking them pauses, so that files are read meanwhile.
pub(super) const REPORTS_MAX: usize = 4096;

/// A change of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A file was closed after writing.
    Closed(Vec<u8>),
    /// A name was created. It may be a link to a complete file, which nobody closes.
    Created(Vec<u8>),
    /// A name was moved here. Both halves of a rename have the same cookie.
    MovedIn(Vec<u8>, u32),
    /// A name was moved away.
    MovedOut(Vec<u8>, u32),
    /// A name was removed.
    Removed(Vec<u8>),
    /// The kernel has dropped reports.
    Overflow,
    /// The directory itself was moved.
    Relocated,
    /// The file system of the directory was unmounted.
    Gone(&'static str),
}

/// Watch on a directory.
pub(super) struct Watch {
    inotify: OwnedFd,
    buffer: Vec<MaybeUninit<u8>>,
}

impl Watch {
    pub(super) fn new(directory: &OwnedFd) -> rustix::io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        // By the descriptor: another directory may have taken the name.
        inotify::add_watch(&inotify, format!("/proc/self/fd/{}", directory.as_raw_fd()), flags)?;
        Ok(Self { inotify, buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES] })
    }

    /// Readable when something has changed.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Takes changes; a part of them if there are many. Changes of subdirectories are left out.
    pub(super) fn changes(&mut self) -> rustix::io::Result<Vec<Change>> {
        let mut changes = Vec::new();
        let mut reader = inotify::Reader::new(self.inotify.as_fd(), &mut self.buffer);
        // What is in the buffer must be taken, or it is lost.
        while !reader.is_buffer_empty() || changes.len() < REPORTS_MAX {
            match reader.next() {
                Ok(event) => changes.extend(change(&event)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(changes)
    }
}

fn change(event: &inotify::Event<'_>) -> Option<Change> {
    let flags = event.events();
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Change::Overflow);
    }
    if flags.contains(ReadFlags::UNMOUNT) {
        return Some(Change::Gone("its file system was unmounted"));
    }
    if flags.contains(ReadFlags::IGNORED) {
        return Some(Change::Gone("the kernel has ended the watch"));
    }
    if flags.contains(ReadFlags::MOVE_SELF) {
        return Some(Change::Relocated);
    }
    let name = event.file_name().filter(|_| !flags.contains(ReadFlags::ISDIR))?.to_bytes().to_vec();
    if flags.contains(ReadFlags::CLOSE_WRITE) {
        Some(Change::Closed(name))
    } else if flags.contains(ReadFlags::CREATE) {
        Some(Change::Created(name))
    } else if flags.contains(ReadFlags::MOVED_TO) {
        Some(Change::MovedIn(name, event.cookie()))
    } else if flags.contains(ReadFlags::MOVED_FROM) {
        Some(Change::MovedOut(name, event.cookie()))
    } else {
        flags.contains(ReadFlags::DELETE).then_some(Change::Removed(name))
    }
}
