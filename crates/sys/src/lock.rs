//! Who holds the lock of a file. The kernel releases locks when a process ends, however it ends.
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

/// Process that holds the lock of `file`, from the kernel's list; none if it is on another host or hidden.
#[must_use]
pub fn holder(file: &File) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let (device, inode) = file.metadata().map(|found| (found.dev(), found.ino())).ok()?;
    holder_in(&locks, (rustix::fs::major(device), rustix::fs::minor(device)), inode)
}

/// Process that holds a lock of a whole file in the text of `/proc/locks`.
fn holder_in(locks: &str, (major, minor): (u32, u32), inode: u64) -> Option<u32> {
    let wanted = format!("{major:02x}:{minor:02x}:{inode}");
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, process, file, ..] if file == wanted => process.parse().ok(),
            _ => None,
        }
    };
    locks.lines().find_map(holder).filter(|&process| process > 0)
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
