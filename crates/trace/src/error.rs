//! Why a trace cannot be read or written: file, line or byte, what is wrong, and what helps.
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use keepup_error::{Diagnostic, ErrorClass};

/// Where in a file something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Number of a line, from 1.
    Line(u64),
    /// Offset in bytes, from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// An error of a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system did not give or take the bytes.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Something in a file that cannot be used.
    #[error("cannot use {place} of {}: {what}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
        /// What helps; may be empty.
        help: String,
    },
    /// Something that only the user knows.
    #[error("cannot tell what {} means: {what}", path.display())]
    Asked {
        /// The file.
        path: PathBuf,
        /// What is not clear.
        what: String,
        /// The flag that says it.
        help: String,
    },
    /// Files, flags or a device that do not go together.
    #[error("{what}")]
    Usage {
        /// What does not.
        what: String,
        /// What would.
        help: String,
    },
}

impl Diagnostic for TraceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Io { source, .. } if source.kind() != std::io::ErrorKind::NotFound => {
                ErrorClass::Environment
            }
            Self::Bad { .. } => ErrorClass::Failed,
            Self::Io { .. } | Self::Asked { .. } | Self::Usage { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Bad { help, .. } | Self::Asked { help, .. } | Self::Usage { help, .. } => {
                Some(help.as_str()).filter(|help| !help.is_empty()).map(Cow::from)
            }
            Self::Io { .. } => None,
        }
    }
}

/// What is wrong with a line or an event, told by what reads it; where it is comes later.
#[derive(Debug)]
pub(super) struct Complaint {
    pub(super) what: String,
    pub(super) help: String,
}

impl Complaint {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: String::new() }
    }

    #[must_use]
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: help.into(), ..self }
    }

    pub(super) fn at(self, place: Place) -> Fault {
        Fault::Bad { file: 0, place, complaint: self }
    }
}

/// An error of a reader, which does not know its file's name.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system did not give the bytes of the file with this number.
    Io(usize, std::io::Error),
    /// Something that cannot be used.
    Bad {
        /// Number of the file, from 0.
        file: usize,
        /// Where.
        place: Place,
        /// What is wrong.
        complaint: Complaint,
    },
    /// Something that only the user knows.
    Asked(Complaint),
    /// Flags that do not go together with the file.
    Usage(Complaint),
}

impl Fault {
    /// The same fault, of file `number`.
    pub(super) fn of_file(self, number: usize) -> Self {
        match self {
            Self::Io(_, e) => Self::Io(number, e),
            Self::Bad { place, complaint, .. } => Self::Bad { file: number, place, complaint },
            other => other,
        }
    }

    /// With the file's name.
    pub(super) fn named(self, paths: &[PathBuf]) -> TraceError {
        let path = |number: usize| paths.get(number).cloned().unwrap_or_default();
        match self {
            Self::Io(file, source) => TraceError::Io { action: "read", path: path(file), source },
            Self::Bad { file, place, complaint: Complaint { what, help } } => {
                TraceError::Bad { path: path(file), place, what, help }
            }
            Self::Asked(Complaint { what, help }) => TraceError::Asked { path: path(0), what, help },
            Self::Usage(Complaint { what, help }) => TraceError::Usage { what, help },
        }
    }
}
