//! What can go wrong with result directories.

use std::io;
use std::path::{Path, PathBuf};

/// Why a result could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The directory to be created holds files already.
    #[error(
        "create the result directory {}: it exists and is not empty\n\
         hint: name a directory that does not exist yet",
        path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The path exists and is no directory; a symbolic link is not followed.
    #[error(
        "create the result directory {}: something else has this name\n\
         hint: name a directory that does not exist yet",
        path.display()
    )]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory has no marker file.
    #[error(
        "open the result directory {}: it has no `{}` file, so keepup did not make it\n\
         hint: name a directory that `keepup` printed as its result",
        path.display(),
        crate::directory::MARKER
    )]
    NotAResult {
        /// The directory.
        path: PathBuf,
    },
    /// A name that cannot be part of a file name.
    #[error(
        "name a result directory after {what} `{text}`: only letters, digits, `.`, `_` and `-` can be used, \
         and no `.` in front\nhint: choose another name"
    )]
    BadName {
        /// Which part of the name.
        what: &'static str,
        /// The text that was given.
        text: String,
    },
    /// A system call failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// An earlier write to the event log failed.
    #[error("append to {}: an earlier write failed, the log ends there", path.display())]
    LogBroken {
        /// The log.
        path: PathBuf,
    },
    /// Text that is not what it should be.
    #[error("read {}: {source}", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A summary that could not be read back.
    #[error("write {}: the summary holds a figure that JSON cannot say: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// JSON that is no summary of a result.
    #[error(
        "read {}: it is no summary of a result\n\
         hint: name a directory that `keepup` printed as its result, or the `result.json` in it",
        path.display()
    )]
    NotASummary {
        /// The file.
        path: PathBuf,
    },
    /// A measurement that was cut off too early.
    #[error(
        "open the result {}: the measurement was cut off, and {reason}\nhint: measure again",
        path.display()
    )]
    CutOff {
        /// The directory.
        path: PathBuf,
        /// Why nothing can be made of it.
        reason: String,
    },
    /// A line of the event log that is damaged, and not the torn last one.
    #[error("read {}, line {line}: {reason}", path.display())]
    Event {
        /// The log.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Why.
        reason: String,
    },
    /// A layout that this version does not know.
    #[error(
        "read {}: its layout, version {found}, is not known to this keepup; a newer one wrote it\n\
         hint: use the keepup that wrote it, or a newer one",
        path.display()
    )]
    SchemaVersion {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
    },
}

impl ResultsError {
    /// For `map_err`: what was tried, on which path.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| {
            let source = match keepup_sys::regular::is_link(&source) {
                true => io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it is a symbolic link; links are not followed",
                ),
                false => source,
            };
            Self::Io { what, path, source }
        }
    }
}
