//! Reading the small text files of /proc and /sys below a root directory.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::MeasureError;

/// Maximum file size, far above any file read here; protects against endless files.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Text of `root`/`relative`; invalid UTF-8 is replaced, never an error.
pub(crate) fn read(root: &Path, relative: impl AsRef<Path>) -> Result<String, MeasureError> {
    let path = root.join(relative);
    // These files report size 0, so asking for the size first (as `fs::read` does) only costs time;
    // samplers read dozens of them ten times per second.
    let mut bytes = Vec::with_capacity(4096);
    match File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => Ok(String::from_utf8(bytes)
            .unwrap_or_else(|why| String::from_utf8_lossy(why.as_bytes()).into_owned())),
        Err(why) => Err(MeasureError::Read { path, why }),
    }
}

/// The same, trimmed (also of the NUL in device trees); an empty file is malformed.
pub(crate) fn read_trimmed(root: &Path, relative: impl AsRef<Path>) -> Result<String, MeasureError> {
    let relative = relative.as_ref();
    let text = read(root, relative)?;
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    if trimmed.is_empty() { Err(malformed(root, relative, "it is empty")) } else { Ok(trimmed.to_owned()) }
}

/// Reads a file with a single whole number.
pub(crate) fn read_number(root: &Path, relative: impl AsRef<Path>) -> Result<u64, MeasureError> {
    let relative = relative.as_ref();
    let text = read_trimmed(root, relative)?;
    text.parse().map_err(|_| malformed(root, relative, "it holds no whole number"))
}

/// Reads a file with 0 or 1.
pub(crate) fn read_flag(root: &Path, relative: impl AsRef<Path>) -> Result<bool, MeasureError> {
    Ok(read_number(root, relative)? != 0)
}

/// Error for a file with unexpected content.
pub(crate) fn malformed(root: &Path, relative: impl AsRef<Path>, why: &'static str) -> MeasureError {
    MeasureError::Malformed { path: root.join(relative), why }
}

/// Names of the entries of a directory, sorted.
pub(crate) fn names(root: &Path, relative: impl AsRef<Path>) -> Result<Vec<String>, MeasureError> {
    let path = root.join(relative);
    let read_error = |why| MeasureError::Read { path: path.clone(), why };
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(read_error)? {
        let name = entry.map_err(read_error)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Last component of a link's fully resolved target.
pub(crate) fn link_name(path: PathBuf) -> Result<String, MeasureError> {
    let target = fs::canonicalize(&path).map_err(|why| MeasureError::Read { path: path.clone(), why })?;
    match target.file_name() {
        Some(name) => Ok(name.to_string_lossy().into_owned()),
        None => Err(MeasureError::Malformed { path, why: "it leads to the root directory" }),
    }
}
