//! Why something could not be measured.
use std::path::PathBuf;

use keepup_recorder::RecorderError;
use keepup_stream::source::SourceError;

/// An error of this crate.
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
    /// A volume does not do.
    #[error("cannot use volume {}: {why}", path.display())]
    Volume {
        /// The volume.
        path: PathBuf,
        /// Why, and what helps.
        why: String,
        /// What kind of trouble it is.
        trouble: VolumeTrouble,
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

/// Kinds of trouble with a volume; they end in different exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeTrouble {
    /// It is not a directory that exists: a slip in the command.
    Missing,
    /// Writing there would not be safe.
    Unsafe,
    /// It cannot be written to, or has no room.
    Unable,
}
