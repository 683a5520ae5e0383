//! Reads the small files of /proc and /sys below a root directory.
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Longest file that is read, bytes.
const BYTES_MAX: u64 = 4_096;

/// First line of a file without white space around it; none if it is empty or not readable.
pub(super) fn first_line(root: &Path, relative: impl AsRef<Path>) -> Option<String> {
    let mut text = String::new();
    File::open(root.join(relative)).ok()?.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
