//! A directory into which another program writes files. Each file becomes an event.
//!
//! A thread of the recorder watches the directory and sends the files over a socket pair: a [`Notice`] in
//! front of each file, its bytes, and a notice behind them. Invariants: nothing here does I/O; each version
//! of a file, known by device, inode, time of change and size, is recorded once, or counted as lost if it was
//! complete.
mod decoder;
mod notice;
mod table;

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_plan::units::Span;
use keepup_stream::wire::printable_end;

pub use self::decoder::Files;
pub use self::notice::Notice;
pub use self::table::{FileState, FileTable, Identity, Reason, RenamedFile, Verdict};
use crate::paths::{PREFIX_BYTES_MAX, split_path};

/// Scheme of a directory.
pub(crate) const SCHEME: &str = "dir:";
/// Ends of names that programs give to files which they have not finished.
const UNFINISHED: [&[u8]; 4] = [b".tmp", b".part", b".partial", b"~"];
/// Most levels of subdirectories.
pub const DEPTH_MAX: usize = 32;
/// Longest relative path of a file, bytes.
const PATH_BYTES_MAX: usize = 4096;
/// Longest file name, bytes.
const NAME_BYTES_MAX: usize = 255;
/// Shortest [`DirectoryAddress::settle`]: time stamps of files are as coarse as 10 ms.
const SETTLE_MIN: Duration = Duration::from_millis(20);
/// Longest [`DirectoryAddress::settle`].
const SETTLE_MAX: Duration = Duration::from_secs(3600);
/// Default interval of scans, where the kernel does not report changes.
pub const SETTLE: Duration = Duration::from_secs(2);

/// A directory, and which of its files are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryAddress {
    text: String,
    /// The directory.
    pub path: PathBuf,
    /// Patterns of names; a name must match one of them. Empty: all names but those of unfinished files.
    patterns: Vec<String>,
    /// Whether files in subdirectories are recorded too.
    pub is_recursive: bool,
    /// Whether files that were there before the start are recorded too.
    pub with_existing: bool,
    /// Interval of scans, if they are requested. A file found by a scan is read when it has not changed for
    /// this long.
    pub settle: Option<Duration>,
}

impl DirectoryAddress {
    /// Parses `dir:PATH[,OPTION=VALUE…]`; `,,` is a comma in the path. The error is an option and what is
    /// wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, String)> {
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (path, list) = split_path(rest);
        if path.is_empty() {
            return Err(("PATH".to_owned(), "expected dir:PATH".to_owned()));
        }
        let mut address = Self {
            text: text.to_owned(),
            path: PathBuf::from(path),
            patterns: Vec::new(),
            is_recursive: false,
            with_existing: false,
            settle: None,
        };
        for option in list.split(',').filter(|option| !option.is_empty()) {
            address.apply(option).map_err(|why| (option.to_owned(), why))?;
        }
        Ok(address)
    }

    fn apply(&mut self, option: &str) -> Result<(), String> {
        if option == "recursive" {
            self.is_recursive = true;
            return Ok(());
        }
        match option.split_once('=').ok_or("expected OPTION=VALUE or recursive")? {
            ("pattern", pattern) if pattern.is_empty() || pattern.contains('/') => {
                Err("expected a pattern of file names such as *.tif".to_owned())
            }
            ("pattern", pattern) => {
                self.patterns.push(pattern.to_owned());
                Ok(())
            }
            ("existing", "record") => {
                self.with_existing = true;
                Ok(())
            }
            ("existing", "skip") => {
                self.with_existing = false;
                Ok(())
            }
            ("existing", _) => Err("expected record or skip".to_owned()),
            ("settle", value) => {
                let settle = value.parse::<Span>().map_err(|e| e.to_string())?.0;
                if !(SETTLE_MIN..=SETTLE_MAX).contains(&settle) {
                    return Err("must be between 20 ms and 1 h".to_owned());
                }
                self.settle = Some(settle);
                Ok(())
            }
            _ => Err("unknown option; dir: has recursive, pattern, existing and settle".to_owned()),
        }
    }

    /// Whether a file of this name is recorded; the last part of a relative path decides. Hidden names only
    /// match a pattern that starts with a dot.
    pub fn wants(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let is_hidden = name.starts_with(b".");
        if self.patterns.is_empty() {
            return is_finished(name);
        }
        let matches = |pattern: &String| {
            is_hidden <= pattern.starts_with('.') && fast_glob::glob_match(pattern.as_bytes(), name)
        };
        self.patterns.iter().any(matches)
    }

    /// Whether the files of this subdirectory, a relative path, are recorded: neither hidden nor unfinished,
    /// and not too deep.
    pub fn wants_directory(&self, path: &[u8]) -> bool {
        let mut parts = path.split(|&byte| byte == b'/');
        self.is_recursive
            && path.len() < PATH_BYTES_MAX - NAME_BYTES_MAX
            && parts.clone().count() <= DEPTH_MAX
            && parts.next_back().is_some_and(is_finished)
    }

    /// Its part in the names of streams, if a recording has several sources.
    pub(crate) fn prefix(&self) -> String {
        printable(&self.path)
    }
}

/// Whether a name is neither hidden nor that of something unfinished.
fn is_finished(name: &[u8]) -> bool {
    !name.starts_with(b".") && !UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// A path as visible characters, at most 200 bytes of its end.
fn printable(path: &Path) -> String {
    let text = String::from_utf8_lossy(path.as_os_str().as_bytes());
    printable_end(&text.replace(char::is_whitespace, "_"), PREFIX_BYTES_MAX)
}

impl fmt::Display for DirectoryAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
