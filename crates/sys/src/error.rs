//! What can fail below the data path, with the hint that helps.
use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum SysError {
    /// Memory for the pool could not be had.
    #[error("cannot map {bytes} bytes for the block pool: {source}\nhint: choose a smaller pool with --pool")]
    Map {
        /// Size asked for.
        bytes: usize,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A size or count that makes no sense.
    #[error("{what}")]
    Invalid {
        /// What was wrong.
        what: String,
    },
    /// A ring could not be made.
    #[error("cannot open an io_uring ring: {source}\nhint: {hint}")]
    Ring {
        /// The kernel's answer.
        source: std::io::Error,
        /// The likely cause and its cure.
        hint: &'static str,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A file system without direct I/O, where nothing else was to be measured.
    #[error(
        "cannot open {} for direct I/O: this file system has none\n\
         hint: measure through the page cache, without --direct", path.display()
    )]
    NotDirect {
        /// The file.
        path: PathBuf,
    },
    /// Some other call failed.
    #[error("cannot {action}: {source}")]
    Call {
        /// What was tried.
        action: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl SysError {
    /// The operating system's error number, where there is one.
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
