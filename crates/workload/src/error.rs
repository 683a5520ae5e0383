//! Why something could not be measured: errors of all measurements, and those of network tests.
mod net;

use std::borrow::Cow;
use std::path::PathBuf;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_recorder::RecorderError;
use keepup_stream::source::SourceError;

pub use net::{NetError, SpecError};

/// An error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The recorder failed.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Something below the data path failed.
    #[error(transparent)]
    Sys(#[from] keepup_sys::SysError),
    /// A sampler or a record of the environment failed.
    #[error(transparent)]
    Measure(#[from] keepup_measure::error::MeasureError),
    /// A recording could not be read back or removed.
    #[error(transparent)]
    Recording(#[from] keepup_recording::error::RecordingError),
    /// A network test failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A volume does not do.
    #[error("cannot use volume {}: {why}", path.display())]
    Volume {
        /// The volume.
        path: PathBuf,
        /// Why.
        why: Cause,
        /// What kind of trouble it is.
        trouble: VolumeTrouble,
    },
    /// An interface that is not there.
    #[error("cannot check interface {name}: no interface of this host has that name")]
    Interface {
        /// The name.
        name: String,
        /// Those that are there.
        known: String,
    },
    /// An address that cannot be reached.
    #[error("cannot find the route to {peer}: {source}")]
    Route {
        /// The address.
        peer: std::net::IpAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A background load that cannot be had, or ended before its time.
    #[error("cannot run load {spec}: {why}")]
    Load {
        /// The load.
        spec: String,
        /// Why.
        why: Cause,
    },
    /// Some other call to the system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A thread of the workload died.
    #[error("the {name} thread panicked")]
    Thread {
        /// Which.
        name: &'static str,
    },
}

impl Diagnostic for WorkloadError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Recorder(e) => e.class(),
            Self::Source(e) => e.class(),
            Self::Sys(e) => e.class(),
            Self::Measure(e) => e.class(),
            Self::Recording(e) => e.class(),
            Self::Net(e) => e.class(),
            Self::Volume { trouble, .. } => match trouble {
                VolumeTrouble::Missing => ErrorClass::Usage,
                VolumeTrouble::Unsafe => ErrorClass::Refused,
                VolumeTrouble::Unable => ErrorClass::Environment,
            },
            Self::Interface { .. } => ErrorClass::Usage,
            Self::Route { .. } | Self::Load { .. } | Self::System { .. } | Self::Thread { .. } => {
                ErrorClass::Environment
            }
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Recorder(e) => e.hint(),
            Self::Source(e) => e.hint(),
            Self::Sys(e) => e.hint(),
            Self::Measure(e) => e.hint(),
            Self::Recording(e) => e.hint(),
            Self::Net(e) => e.hint(),
            Self::Volume { why, .. } | Self::Load { why, .. } => why.hint(),
            Self::Interface { known, .. } => Some(format!("this host has {known}").into()),
            Self::Route { peer, .. } => {
                Some(format!("`ip route get {peer}` shows the kernel's answer").into())
            }
            Self::System { .. } | Self::Thread { .. } => None,
        }
    }
}

/// Kinds of trouble with a volume; they end in different exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeTrouble {
    /// It is not a directory that exists: a slip in the command.
    Missing,
    /// Writing there would not be safe.
    Unsafe,
    /// It cannot be written to, or has too little space.
    Unable,
}

/// Error of a failed system call: what was tried, and the system's answer.
pub(crate) fn system(action: &str) -> impl Fn(std::io::Error) -> WorkloadError + '_ {
    move |source| WorkloadError::System { action: action.to_owned(), source }
}
