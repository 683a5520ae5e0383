//! Opens files that another user may have placed: regular files only, never through a symbolic
//! link.
//!
//! Invariant: opening never blocks, whatever kind of file it is; a pipe, a device or a directory
//! is refused.
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::PAGE_BYTES;
use crate::file::{Access, direct_alignment};

/// Opens an existing regular file for reading.
///
/// # Errors
/// The system refuses; `ELOOP` for a symbolic link, `InvalidInput` if it is not a regular file.
pub fn open(path: &Path) -> Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens an existing regular file for reading past the page cache, or through it where the file system has no
/// direct I/O in units of a page.
///
/// # Errors
/// As [`open`].
pub fn open_direct(path: &Path) -> Result<(File, Access)> {
    open_direct_with(path, OpenOptions::new().read(true))
}

/// The same for writing, in whole pages at multiples of a page.
///
/// # Errors
/// As [`open`].
pub fn open_direct_to_write(path: &Path) -> Result<(File, Access)> {
    open_direct_with(path, OpenOptions::new().write(true))
}

fn open_direct_with(path: &Path, options: &mut OpenOptions) -> Result<(File, Access)> {
    let direct = open_flagged(path, options, OFlags::DIRECT);
    match direct.map(OwnedFd::from) {
        Ok(file) if direct_alignment(&file).is_none_or(|bytes| bytes as usize <= PAGE_BYTES) => {
            Ok((file.into(), Access::Direct))
        }
        // A file system without direct I/O refuses the flag; a link or a pipe is refused again.
        _ => Ok((open_with(path, options)?, Access::Buffered)),
    }
}

/// Opens an existing regular file for reading and writing.
///
/// # Errors
/// As [`open`].
pub fn open_to_write(path: &Path) -> Result<File> {
    open_with(path, OpenOptions::new().read(true).write(true))
}

/// Opens an existing regular file for reading and appending.
///
/// # Errors
/// As [`open`].
pub fn open_to_append(path: &Path) -> Result<File> {
    open_with(path, OpenOptions::new().read(true).append(true))
}

/// Reads a whole regular file as text, at most `bytes_max` bytes.
///
/// # Errors
/// As [`open`]; `FileTooLarge` if it is longer, checked before reading, and `InvalidData` if it
/// is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let file = open(path)?;
    let too_large = || Error::new(ErrorKind::FileTooLarge, format!("it is larger than {bytes_max} bytes"));
    if file.metadata()?.len() > bytes_max {
        return Err(too_large());
    }
    // It may grow meanwhile.
    let mut text = String::new();
    match file.take(bytes_max + 1).read_to_string(&mut text)? as u64 > bytes_max {
        true => Err(too_large()),
        false => Ok(text),
    }
}

/// Whether opening failed because the name is a symbolic link.
pub fn is_link(error: &Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

fn open_with(path: &Path, options: &mut OpenOptions) -> Result<File> {
    open_flagged(path, options, OFlags::empty())
}

fn open_flagged(path: &Path, options: &mut OpenOptions, more: OFlags) -> Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | more;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}

#[cfg(test)]
#[path = "regular_tests.rs"]
mod tests;
