//! Errors of reading and writing traces, with file and line or byte.
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use keepup_error::{Diagnostic, ErrorClass};

/// A position in a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePosition {
    /// Number of a line, from 1.
    Line(u64),
    /// Offset in bytes, from 0.
    Byte(u64),
}

impl fmt::Display for FilePosition {
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
    /// Failed I/O.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Action.
        action: &'static str,
        /// File.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Invalid content of a file.
    #[error("cannot read {position} of {}: {what}", path.display())]
    Invalid {
        /// File.
        path: PathBuf,
        /// Position in the file.
        position: FilePosition,
        /// Cause.
        what: String,
        /// Hint; may be empty.
        help: String,
    },
    /// A file with several possible meanings, of which the user must choose one.
    #[error("cannot interpret {}: {what}", path.display())]
    Ambiguous {
        /// File.
        path: PathBuf,
        /// Cause.
        what: String,
        /// The deciding flag.
        help: String,
    },
    /// Inconsistent files and flags, or an unknown device.
    #[error("{what}")]
    Usage {
        /// Cause.
        what: String,
        /// Hint; may be empty.
        help: String,
    },
}

impl Diagnostic for TraceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Io { source, .. } if source.kind() != std::io::ErrorKind::NotFound => {
                ErrorClass::Environment
            }
            Self::Invalid { .. } => ErrorClass::Failed,
            Self::Io { .. } | Self::Ambiguous { .. } | Self::Usage { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Invalid { help, .. } | Self::Ambiguous { help, .. } | Self::Usage { help, .. } => {
                Some(help.as_str()).filter(|help| !help.is_empty()).map(Cow::from)
            }
            Self::Io { .. } => None,
        }
    }
}

/// An error in a line or an event. Callers add its position.
#[derive(Debug)]
pub(super) struct ParseError {
    pub(super) what: String,
    pub(super) help: String,
}

impl ParseError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: String::new() }
    }

    #[must_use]
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: help.into(), ..self }
    }

    pub(super) fn at(self, position: FilePosition) -> ReadError {
        ReadError::Invalid { file: 0, position, error: self }
    }
}

/// An error of a reader, with the number of the file instead of its name.
#[derive(Debug)]
pub(super) enum ReadError {
    /// Failed read of the file with this number.
    Io(usize, std::io::Error),
    /// Invalid content.
    Invalid {
        /// Number of the file, from 0.
        file: usize,
        /// Position in the file.
        position: FilePosition,
        /// Error at this position.
        error: ParseError,
    },
    /// Several possible meanings.
    Ambiguous(ParseError),
    /// Flags that do not apply to the file.
    Usage(ParseError),
}

impl ReadError {
    /// Sets the number of the file.
    pub(super) fn in_file(self, number: usize) -> Self {
        match self {
            Self::Io(_, e) => Self::Io(number, e),
            Self::Invalid { position, error, .. } => Self::Invalid { file: number, position, error },
            other => other,
        }
    }

    /// Replaces the number of the file by its name.
    pub(super) fn with_paths(self, paths: &[PathBuf]) -> TraceError {
        let path = |number: usize| paths.get(number).cloned().unwrap_or_default();
        match self {
            Self::Io(file, source) => TraceError::Io { action: "read", path: path(file), source },
            Self::Invalid { file, position, error: ParseError { what, help } } => {
                TraceError::Invalid { path: path(file), position, what, help }
            }
            Self::Ambiguous(ParseError { what, help }) => TraceError::Ambiguous { path: path(0), what, help },
            Self::Usage(ParseError { what, help }) => TraceError::Usage { what, help },
        }
    }
}
