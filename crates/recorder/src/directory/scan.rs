//! Files that are in a directory, whatever the kernel has reported.
use std::collections::HashSet;
use std::os::fd::OwnedFd;

use keepup_sources::directory::{DirectoryAddress, Identity};
use rustix::fs::{AtFlags, Dir, FileType, Stat};

/// Regular files of a directory.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files by the time of their last change.
    pub(super) files: Vec<(Vec<u8>, Identity)>,
    /// Wanted names of other types.
    pub(super) irregular: Vec<Vec<u8>>,
    /// Number of subdirectories.
    pub(super) directories: u64,
}

impl Scan {
    /// Looks at every wanted name. A name that is removed meanwhile is left out.
    pub(super) fn of(directory: &OwnedFd, address: &DirectoryAddress) -> rustix::io::Result<Self> {
        let mut scan = Self::default();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if entry.file_type() == FileType::Directory {
                scan.directories += 1;
                continue;
            }
            if !address.wants(name) {
                continue;
            }
            let Ok(stat) = stat(directory, name) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => scan.files.push((name.to_vec(), identity(&stat))),
                FileType::Directory => scan.directories += 1,
                _ => scan.irregular.push(name.to_vec()),
            }
        }
        scan.files.sort_by(|a, b| (a.1.mtime_ns, &a.0).cmp(&(b.1.mtime_ns, &b.0)));
        Ok(scan)
    }

    pub(super) fn names(&self) -> HashSet<Vec<u8>> {
        self.files.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Looks at a name without following a symbolic link.
pub(super) fn stat(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<Stat> {
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

/// Time since the Unix epoch; 0 before it.
fn time_ns(seconds: impl TryInto<u64>, nanoseconds: impl TryInto<u64>) -> u64 {
    let seconds: u64 = seconds.try_into().unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.try_into().unwrap_or(0))
}
