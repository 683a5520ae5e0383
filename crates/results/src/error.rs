//! What can go wrong with result directories.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use keepup_error::{Diagnostic, ErrorClass};

/// Why a result could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The directory to be created holds files already.
    #[error("cannot create the result directory {}: it exists and is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The path exists and is no directory; a symbolic link is not followed.
    #[error("cannot create the result directory {}: it exists and is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory has no marker file.
    #[error(
        "cannot open the result directory {}: it has no `{}` file, so keepup did not make it",
        path.display(),
        crate::file_names::MARKER
    )]
    NotAResult {
        /// The directory.
        path: PathBuf,
    },
    /// A name that cannot be part of a file name.
    #[error(
        "cannot name a result directory after {what} `{text}`: only letters, digits, `.`, `_` and `-` can be \
         used, and no leading `.`"
    )]
    BadName {
        /// Which part of the name.
        what: &'static str,
        /// The text that was given.
        text: String,
    },
    /// A system call failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// An earlier write to the event log failed.
    #[error("cannot append to {}: an earlier write failed, the log ends there", path.display())]
    LogBroken {
        /// The log.
        path: PathBuf,
    },
    /// Text that is not what it should be.
    #[error("cannot read {}: {source}", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A file that was changed after keepup wrote it.
    #[error(
        "cannot read {}: it was changed after it was written, its checksum does not match",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Where the checksum is: the list, or none for the file itself.
        list: Option<PathBuf>,
    },
    /// A summary that could not be read back.
    #[error("cannot write {}: JSON cannot represent a figure of the summary: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// JSON that is no summary of a result.
    #[error("cannot read {}: it is not the summary of a result", path.display())]
    NotASummary {
        /// The file.
        path: PathBuf,
    },
    /// A measurement that was cut off too early.
    #[error("cannot open the result {}: the measurement was cut off, and {reason}", path.display())]
    CutOff {
        /// The directory.
        path: PathBuf,
        /// Why nothing can be made of it.
        reason: String,
    },
    /// A line of the event log that is damaged, and not the torn last one.
    #[error("cannot read line {line} of {}: {reason}", path.display())]
    Event {
        /// The log.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Why.
        reason: String,
    },
    /// A layout that this version does not know.
    #[error("cannot read {}: this keepup does not know its layout version {found}", path.display())]
    SchemaVersion {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
    },
}

impl Diagnostic for ResultsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => ErrorClass::Usage,
            Self::NotAResult { .. }
            | Self::NotASummary { .. }
            | Self::SchemaVersion { .. }
            | Self::BadName { .. } => ErrorClass::Usage,
            Self::NotEmpty { .. } | Self::NotADirectory { .. } => ErrorClass::Refused,
            Self::Summary { .. } | Self::Changed { .. } | Self::Event { .. } | Self::CutOff { .. } => {
                ErrorClass::Failed
            }
            Self::Io { .. } | Self::LogBroken { .. } | Self::Unwritable { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Changed { list: Some(list), .. } => {
                let list = crate::shell::quoted(&list.display().to_string());
                return Some(
                    format!("restore it from a copy, or remove {list} to read the result as it is").into(),
                );
            }
            Self::Changed { list: None, .. } => {
                "restore it from a copy, or remove its field `checksum` to read it as it is"
            }
            Self::NotEmpty { .. } | Self::NotADirectory { .. } => "name a directory that does not exist yet",
            Self::NotAResult { .. } => "name a directory that `keepup` printed as its result",
            Self::NotASummary { .. } => {
                "name a directory that `keepup` printed as its result, or the `result.json` in it"
            }
            Self::BadName { .. } => "choose another name",
            Self::CutOff { .. } => "measure again",
            Self::SchemaVersion { .. } => "use the keepup that wrote it, or a newer one",
            Self::Io { .. }
            | Self::LogBroken { .. }
            | Self::Summary { .. }
            | Self::Unwritable { .. }
            | Self::Event { .. } => return None,
        };
        Some(hint.into())
    }
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
