//! Opens files inside a recording's directory: regular files only, no symbolic links.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

pub(crate) use keepup_sys::regular::{open as open_regular, open_to_write as open_regular_to_write};

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
