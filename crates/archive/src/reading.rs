//! Reads a file in parts, past the page cache and ahead of the caller.
use std::path::{Path, PathBuf};

use keepup_measure::clock::{Clock as _, SystemClock};
use keepup_sys::read_ahead::ReadAhead;
use keepup_sys::regular::open_direct;

use crate::error::ArchiveError;

/// Reader of one file after the other. A thread of its own must use it.
pub(crate) struct PartReader {
    ahead: ReadAhead,
    path: PathBuf,
}

impl PartReader {
    pub(crate) fn new() -> Result<Self, ArchiveError> {
        let ahead = ReadAhead::new(|| SystemClock.now_ns())?;
        Ok(Self { ahead, path: PathBuf::new() })
    }

    /// Starts to read the first `bytes` of the file `path`.
    pub(crate) fn begin(&mut self, path: &Path, bytes: u64) -> Result<(), ArchiveError> {
        self.path = path.to_path_buf();
        let file = open_direct(path).map_err(ArchiveError::io("open", path))?;
        Ok(self.ahead.begin(file, 0, bytes)?)
    }

    /// Reads the next `bytes`.
    pub(crate) fn next(&mut self, bytes: usize) -> Result<Vec<u8>, ArchiveError> {
        let mut part = Vec::with_capacity(bytes);
        while part.len() < bytes {
            if self.ahead.bytes().is_empty()
                && !self.ahead.advance().map_err(ArchiveError::io("read", &self.path))?
            {
                return Err(ArchiveError::Changed { path: self.path.clone() });
            }
            let found = self.ahead.bytes();
            let length = found.len().min(bytes - part.len());
            part.extend_from_slice(&found[..length]);
            self.ahead.consume(length);
        }
        Ok(part)
    }
}
