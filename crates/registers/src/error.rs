//! Why registers could not be read.
use std::borrow::Cow;
use std::path::PathBuf;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_sys::SysError;

/// An error of register access: the target by its name, what was tried, why not, and what helps.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// A name that stands for no target.
    #[error("cannot use {name:?} as a target: {why}")]
    Name {
        /// What was written.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A target that is not there, or that this user may not touch.
    #[error("{target}: cannot open {}: {source}", path.display())]
    Open {
        /// The target.
        target: String,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: String,
    },
    /// A range of registers that the target or the way does not have.
    #[error("{target}: {what}")]
    Span {
        /// The target.
        target: String,
        /// What is wrong.
        what: String,
        /// What helps.
        hint: String,
    },
    /// A profile of a device that cannot be read or does not fit together.
    #[error("profile {origin}: {what}")]
    Profile {
        /// Its name or file.
        origin: String,
        /// What is wrong.
        what: Cause,
    },
    /// What would not be safe, and is not done.
    #[error("{target}: refused: {what}")]
    Unsafe {
        /// The target.
        target: String,
        /// What was asked for, and why it is not done.
        what: String,
        /// What helps.
        hint: String,
    },
    /// A driver that is not the one that is needed, or cannot be changed.
    #[error("{target}: {what}")]
    Driver {
        /// The target.
        target: String,
        /// What is wrong.
        what: String,
        /// What helps.
        hint: String,
    },
    /// An access that failed.
    #[error("{target}: cannot read by {method}: {source}")]
    Access {
        /// The target.
        target: String,
        /// The way.
        method: String,
        /// The answer.
        source: std::io::Error,
    },
    /// The thread cannot be bound to the processor that was asked for.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A board behind IPbus.
    #[error(transparent)]
    Ipbus(#[from] super::ipbus::IpbusError),
    /// Nobody answers as who should.
    #[error("{target}: {what}")]
    Identity {
        /// The target.
        target: String,
        /// What was read.
        what: String,
        /// What helps.
        hint: String,
    },
}

/// Names of targets, for the hint.
const TARGETS: &str = "ram | pci:0000:00:04.0/bar0 | pci-config:0000:00:04.0 | vfio:0000:00:04.0/bar0 | \
                       uio:0 | vme:/dev/bus/vme/m0 | ipbus://HOST:PORT | xdma:/dev/xdma0_c2h_0";

impl Diagnostic for RegisterError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Name { .. } | Self::Span { .. } | Self::Profile { .. } => ErrorClass::Usage,
            Self::Unsafe { .. } => ErrorClass::Refused,
            Self::Open { .. } | Self::Driver { .. } | Self::Access { .. } | Self::Identity { .. } => {
                ErrorClass::Environment
            }
            Self::Sys(error) => error.class(),
            Self::Ipbus(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Name { .. } => Some(TARGETS.into()),
            Self::Open { hint, .. }
            | Self::Span { hint, .. }
            | Self::Unsafe { hint, .. }
            | Self::Driver { hint, .. }
            | Self::Identity { hint, .. } => Some(hint.into()),
            Self::Profile { what, .. } => what.hint(),
            Self::Sys(error) => error.hint(),
            Self::Ipbus(error) => error.hint(),
            Self::Access { .. } => None,
        }
    }
}

/// The system's answer in an error of the layer below.
pub(super) fn answer(error: SysError) -> std::io::Error {
    match error {
        SysError::Call { source, .. } => source,
        other => std::io::Error::other(other.to_string()),
    }
}
