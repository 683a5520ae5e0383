//! Files that are in a directory, whatever the kernel has reported.
use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};

use keepup_sources::directory::{FileState, Identity};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Flags for subdirectories: never follow a link.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Regular files of a directory, and of its subdirectories if they are recorded. Names are relative paths.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files by the time of their last change.
    pub(super) files: Vec<(Vec<u8>, Identity)>,
    /// Wanted names of other types.
    pub(super) irregular: Vec<Vec<u8>>,
    /// Number of subdirectories that are not recorded.
    pub(super) directories: u64,
    /// Directories that were found under another path than before: the old and the new one.
    pub(super) renamed: Vec<(Vec<u8>, Vec<u8>)>,
    /// Subdirectories that the kernel does not watch, because it watches too many.
    pub(super) unwatched: u64,
    /// First subdirectory that cannot be read, and why.
    pub(super) unreadable: Option<(Vec<u8>, Errno)>,
}

impl Scan {
    pub(super) fn names(&self) -> HashSet<Vec<u8>> {
        self.files.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Opens a subdirectory by its relative path, without following a symbolic link anywhere in it.
pub(super) fn open_directory(root: &OwnedFd, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let mut parts = path.split(|&byte| byte == b'/');
    let first = parts.next().unwrap_or_default();
    let mut directory = rustix::fs::openat(root, first, DIRECTORY, Mode::empty())?;
    for part in parts {
        directory = rustix::fs::openat(&directory, part, DIRECTORY, Mode::empty())?;
    }
    Ok(directory)
}

/// Calls `with` with the directory of a relative path and the name in it.
pub(super) fn at<T>(
    root: &OwnedFd,
    path: &[u8],
    with: impl FnOnce(rustix::fd::BorrowedFd<'_>, &[u8]) -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match path.iter().rposition(|&byte| byte == b'/') {
        None => with(root.as_fd(), path),
        Some(slash) => {
            let directory = open_directory(root, &path[..slash]).map_err(|error| match error {
                // A link or a file has the name of the directory, so the file is gone.
                Errno::LOOP | Errno::NOTDIR => Errno::NOENT,
                error => error,
            })?;
            with(directory.as_fd(), &path[slash + 1..])
        }
    }
}

/// Looks at a name without following a symbolic link.
pub(super) fn stat(directory: impl AsFd, name: &[u8]) -> rustix::io::Result<Stat> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The version of a file.
pub(super) fn identity(stat: &Stat) -> Identity {
    Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
        mtime_ns: time_ns(stat.st_mtime, stat.st_mtime_nsec),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
    }
}

/// The state of a file.
pub(super) fn state(stat: &Stat) -> FileState {
    FileState { identity: identity(stat), ctime_ns: time_ns(stat.st_ctime, stat.st_ctime_nsec) }
}

/// Whether the kernel made up a name for a file that was created without one (`O_TMPFILE`).
pub(super) fn is_unnamed(name: &[u8]) -> bool {
    let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    last.strip_prefix(b"#").is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// Whether it is a regular file.
pub(super) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Time since the Unix epoch; 0 before it.
fn time_ns(seconds: impl TryInto<u64>, nanoseconds: impl TryInto<u64>) -> u64 {
    let Ok(seconds): Result<u64, _> = seconds.try_into() else { return 0 };
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.try_into().unwrap_or(0))
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
