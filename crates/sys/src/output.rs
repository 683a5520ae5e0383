//! Files that a program writes for others: complete once [`finish`] or [`write`] has returned without error.
//!
//! Dropping a `File` discards what a flush or a close reports, so a full disk or a lost connection to a file
//! server would go unnoticed.
use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Result, Write as _};
use std::path::Path;

/// Writes what is buffered in `out` and flushes the file to its device.
///
/// # Errors
/// The write or the flush failed.
pub fn finish(out: BufWriter<File>) -> Result<()> {
    sync(&out.into_inner().map_err(IntoInnerError::into_error)?)
}

/// Creates or replaces the file `path`, durably.
///
/// # Errors
/// The file cannot be created or written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    sync(&file)
}

/// Flushes a file to its device; pipes and devices have nothing to flush.
///
/// # Errors
/// The flush failed.
pub fn sync(file: &File) -> Result<()> {
    if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
