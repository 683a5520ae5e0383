//! Files with passwords for Zenoh, which reads them only from files. They are in memory (memfd), so that no
//! disk has them.
use std::fs::File;
use std::io::{Result, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

/// An open file in memory, freed when dropped.
pub(super) struct MemoryFile(File);

impl MemoryFile {
    /// Creates a file with this content.
    pub(super) fn create(content: &str) -> Result<Self> {
        let mut file = File::from(memfd_create("keepup-fleet", MemfdFlags::CLOEXEC)?);
        file.write_all(content.as_bytes())?;
        Ok(Self(file))
    }

    /// Path for this process.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}
