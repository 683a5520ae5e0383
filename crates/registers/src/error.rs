//! Errors of register access.
use std::borrow::Cow;
use std::path::PathBuf;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_sys::SysError;

/// An error of register access.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Invalid target name.
    #[error("cannot use {name:?} as a target: {why}")]
    Name {
        /// Name as given.
        name: String,
        /// Cause.
        why: String,
    },
    /// Target missing or not accessible to this user.
    #[error("cannot open {} for {target}: {source}", path.display())]
    Open {
        /// Target.
        target: String,
        /// File.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
        /// Remedy.
        hint: String,
    },
    /// Registers, depth or method that the target does not have.
    #[error("cannot access {target}: {what}")]
    Span {
        /// Target.
        target: String,
        /// Cause.
        what: String,
        /// Remedy.
        hint: String,
    },
    /// Unreadable or invalid device profile.
    #[error("cannot use profile {origin}: {what}")]
    Profile {
        /// Name or file.
        origin: String,
        /// Cause.
        what: Cause,
    },
    /// Access refused because it is unsafe.
    #[error("cannot access {target}: {what}")]
    Unsafe {
        /// Target.
        target: String,
        /// Cause.
        what: String,
        /// Remedy.
        hint: String,
    },
    /// Unsuitable driver, or a driver that cannot be changed.
    #[error("cannot use {target}: {what}")]
    Driver {
        /// Target.
        target: String,
        /// Cause.
        what: String,
        /// Remedy.
        hint: String,
    },
    /// Failed access.
    #[error("cannot access {target} by {method}: {source}")]
    Access {
        /// Target.
        target: String,
        /// Access method.
        method: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Failed call, as of pinning the thread to a processor.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// Error of an IPbus board.
    #[error(transparent)]
    Ipbus(#[from] super::ipbus::IpbusError),
    /// Another device than expected, or none.
    #[error("cannot use {target}: {what}")]
    Identity {
        /// Target.
        target: String,
        /// What was read.
        what: String,
        /// Remedy.
        hint: String,
    },
}

/// Examples of target names.
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

/// The system's error within an error of `keepup-sys`.
pub(super) fn into_io_error(error: SysError) -> std::io::Error {
    match error {
        SysError::Call { source, .. } => source,
        other => std::io::Error::other(other.to_string()),
    }
}
