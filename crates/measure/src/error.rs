//! What can go wrong while measuring: one error type for the crate.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use keepup_error::{Diagnostic, ErrorClass};

/// A measurement that could not be taken. The message says what was tried, on what, and why it failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A file of the kernel, or a directory asked about, could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// A file was read but does not hold what it should.
    #[error("cannot read {}: {why}", path.display())]
    Malformed {
        /// What was read.
        path: PathBuf,
        /// What was missing in it.
        why: &'static str,
    },
    /// No block device of this machine holds the path.
    #[error("cannot find the block device under {}: {why}", path.display())]
    NoDevice {
        /// The path asked about.
        path: PathBuf,
        /// Why there is none.
        why: String,
    },
    /// The background thread could not be started.
    #[error("cannot start the sampler's thread: {why}")]
    Thread {
        /// The system's reason.
        why: io::Error,
    },
}

impl Diagnostic for MeasureError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Read { .. } | Self::Malformed { .. } | Self::NoDevice { .. } | Self::Thread { .. } => {
                ErrorClass::Environment
            }
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::NoDevice { path, .. } => Some(
                format!(
                    "name a directory on a local disk; `findmnt -T {}` shows what holds it",
                    path.display()
                )
                .into(),
            ),
            Self::Thread { .. } => Some("raise the limit on processes (`ulimit -u`)".into()),
            Self::Read { .. } | Self::Malformed { .. } => None,
        }
    }
}
