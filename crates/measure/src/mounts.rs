//! Mounted file systems from /proc/self/mountinfo, and the one of a path.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::MeasureError;
use crate::text;

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Mount point.
    pub point: PathBuf,
    /// Type, as in `ext4`.
    pub fs_type: String,
    /// Source: a device path, or an arbitrary name.
    pub source: String,
    /// Mount and file system options without duplicates, comma-separated.
    pub options: String,
}

impl Mount {
    /// The file system of `path`. `root` is `/` outside tests. Fails if `path` does not exist, or
    /// no mount contains it.
    pub fn of(root: &Path, path: &Path) -> Result<Self, MeasureError> {
        let absolute =
            fs::canonicalize(path).map_err(|why| MeasureError::Read { path: path.to_owned(), why })?;
        let file = "proc/self/mountinfo";
        let mounts = parse_mounts(&text::read(root, file)?);
        holding(mounts, &absolute).ok_or_else(|| text::malformed(root, file, "no mount there holds the path"))
    }
}

/// The mount with the longest matching mount point; of several at one point the last, which hides
/// the others.
fn holding(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    let above = mounts.into_iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// Parses /proc/self/mountinfo (proc_pid_mountinfo(5)), in order; malformed lines are skipped.
pub fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mount> {
    // Any number of optional fields precede the lone hyphen.
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let (point, options) = (mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let (fs_type, source) = (file_system.next()?, file_system.next()?);
    let mut all: Vec<&str> = Vec::new();
    for option in options.split(',').chain(file_system.next().unwrap_or("").split(',')) {
        if !option.is_empty() && !all.contains(&option) {
            all.push(option);
        }
    }
    Some(Mount {
        point: PathBuf::from(unescape(point)),
        fs_type: fs_type.to_owned(),
        source: unescape(source),
        options: all.join(","),
    })
}

/// Decodes the kernel's octal escapes of blanks, tabs, newlines, `#` and backslashes.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let escaped = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped.filter(u8::is_ascii) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(part.get(3..).unwrap_or(""));
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
