//! Errors of system calls, with hints.
use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::PathBuf;

use keepup_error::{Diagnostic, ErrorClass};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum SysError {
    /// The pool's memory could not be mapped.
    #[error("cannot map {bytes} bytes for the block pool: {source}")]
    Map {
        /// Requested size.
        bytes: usize,
        /// Cause.
        source: std::io::Error,
    },
    /// Invalid size or count.
    #[error("{what}")]
    Invalid {
        /// Problem.
        what: String,
    },
    /// An io_uring ring could not be created.
    #[error("cannot open an io_uring ring: {source}")]
    Ring {
        /// Cause.
        source: std::io::Error,
        /// Hint for the likely cause.
        hint: &'static str,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// Operation.
        action: &'static str,
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// Direct I/O was required and the file system does not support it.
    #[error("cannot open {} for direct I/O: this file system does not support it", path.display())]
    NotDirect {
        /// The file.
        path: PathBuf,
    },
    /// Any other system call failed.
    #[error("cannot {action}: {source}")]
    Call {
        /// Operation.
        action: &'static str,
        /// Cause.
        source: std::io::Error,
    },
}

impl Diagnostic for SysError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Map { .. }
            | Self::Invalid { .. }
            | Self::Ring { .. }
            | Self::File { .. }
            | Self::NotDirect { .. }
            | Self::Call { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Map { .. } => Some("choose a smaller pool with --pool".into()),
            Self::Ring { hint, .. } => Some((*hint).into()),
            Self::NotDirect { .. } => Some("measure through the page cache, without --direct".into()),
            Self::File { source, .. } if source.kind() == ErrorKind::FileTooLarge => {
                Some("raise the file size limit (ulimit -f), or use smaller files (--segment)".into())
            }
            Self::Invalid { .. } | Self::File { .. } | Self::Call { .. } => None,
        }
    }
}

/// Whether a write failed because no more may be written there: the disk is full, or a quota or the file size
/// limit of the process (`ulimit -f`) is reached.
pub fn is_out_of_space(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

impl SysError {
    /// Whether no more may be written there, see [`is_out_of_space`].
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Map { source, .. }
            | Self::Ring { source, .. }
            | Self::File { source, .. }
            | Self::Call { source, .. } => is_out_of_space(source),
            Self::Invalid { .. } | Self::NotDirect { .. } => false,
        }
    }

    /// The operating system's error number, if there is one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Map { source, .. }
            | Self::Ring { source, .. }
            | Self::File { source, .. }
            | Self::Call { source, .. } => source.raw_os_error(),
            Self::Invalid { .. } | Self::NotDirect { .. } => None,
        }
    }
}
