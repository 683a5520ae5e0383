//! Why a trace cannot be replayed.
use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_sys::SysError;
use keepup_trace::TraceError;
use keepup_workload::WorkloadError;

/// An error of replaying.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Something that all measurements share failed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A file or a disk failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace does not go with what is asked.
    #[error("cannot replay {trace}: {what}")]
    Unfit {
        /// The trace.
        trace: String,
        /// Why not.
        what: String,
        /// What helps.
        hint: String,
    },
    /// Requests failed.
    #[error(
        "cannot replay {trace} on {place}: {count} requests failed, the first: {why}; what was measured \
         before is kept"
    )]
    Failed {
        /// The trace.
        trace: String,
        /// Where.
        place: String,
        /// How many.
        count: u64,
        /// What became of the first.
        why: String,
    },
}

impl Diagnostic for ReplayError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Workload(e) => e.class(),
            Self::Sys(e) => e.class(),
            Self::Trace(e) => e.class(),
            Self::Unfit { .. } => ErrorClass::Usage,
            Self::Failed { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Workload(e) => e.hint(),
            Self::Sys(e) => e.hint(),
            Self::Trace(e) => e.hint(),
            Self::Unfit { hint, .. } => Some(hint.into()),
            Self::Failed { .. } => Some("dmesg shows the kernel's log".into()),
        }
    }
}
