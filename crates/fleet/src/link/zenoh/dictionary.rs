//! File with user names and passwords for Zenoh. It is in memory (memfd), so that no disk has the passwords.
use std::fs::File;
use std::io::{Result, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

/// An open file in memory, freed when dropped.
pub(super) struct Dictionary(File);

impl Dictionary {
    /// Path for this process.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Writes the file.
pub(super) fn create(users: &[(String, String)]) -> Result<Dictionary> {
    let mut file = File::from(memfd_create("keepup-fleet", MemfdFlags::CLOEXEC)?);
    let lines: String = users.iter().map(|(user, password)| format!("{user}:{password}\n")).collect();
    file.write_all(lines.as_bytes())?;
    Ok(Dictionary(file))
}
