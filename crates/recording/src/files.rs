//! Opens files inside a recording's directory: regular files only, no symbolic links.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub(crate) use keepup_sys::regular::{open as open_regular, open_to_write as open_regular_to_write};
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::error::RecordingError;

/// Creates a file that must not exist.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)
}

/// Atomically and durably replaces the file `path` with what `fill` writes.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(FRESH);
    let fresh = Path::new(&fresh);
    let _ = std::fs::remove_file(fresh);
    let file = create_new(fresh)?;
    fill(&file)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)?;
    let home = path.parent().filter(|home| !home.as_os_str().is_empty());
    sync_directory(home.unwrap_or(Path::new(".")))
}

/// Suffix of the temporary file that replaces another one.
pub(crate) const FRESH: &str = ".new";

/// Flushes the file names of a directory.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Reads at `offset` until `buffer` is full or the file ends; returns the bytes read.
pub(crate) fn read_fully_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Checks that `path` is the name of the open `file`.
pub(crate) fn has_name(file: impl AsFd, path: &Path) -> Result<(), RecordingError> {
    let Some(found) = look_up(path) else { return Ok(()) };
    let open = fstat(file).map_err(|errno| RecordingError::io("inspect", path)(errno.into()))?;
    let is_it = |found: Metadata| (found.dev(), found.ino()) == (open.st_dev, open.st_ino);
    if found.is_ok_and(is_it) { Ok(()) } else { Err(RecordingError::Displaced { path: path.to_path_buf() }) }
}

/// What has the name `path`; `Err(())` if nothing has it, `None` if that is not known.
pub(crate) fn look_up(path: &Path) -> Option<Result<Metadata, ()>> {
    let is_absent = |error: &io::Error| {
        let errno = error.raw_os_error().map(Errno::from_raw_os_error);
        matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE))
    };
    match std::fs::symlink_metadata(path) {
        Ok(found) => Some(Ok(found)),
        Err(error) if is_absent(&error) => Some(Err(())),
        Err(_) => None,
    }
}
