//! Why a soak cannot be started, resumed or continued.
use std::borrow::Cow;
use std::path::PathBuf;

use keepup_error::{Diagnostic, ErrorClass};
use keepup_sys::SysError;
use keepup_workload::WorkloadError;

/// An error of a soak.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// Something that all measurements share failed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A file or a disk failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A line of a soak's state that cannot be used.
    #[error("cannot use line {line} of the state {}, at offset {offset}: {what}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Where it begins in the file, bytes.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A soak that another process runs.
    #[error("cannot resume the soak in {}: another process runs it", path.display())]
    StateBusy {
        /// The state file.
        path: PathBuf,
    },
    /// A soak that does something else than what is asked for.
    #[error("cannot resume the soak in {}: it is another one, its {what}", path.display())]
    StatePlan {
        /// The state file.
        path: PathBuf,
        /// The first difference.
        what: String,
    },
    /// The file of a soak's state cannot be opened.
    #[error("cannot open the state {}: {source}", path.display())]
    StateFile {
        /// The state file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
        /// What helps.
        hint: String,
    },
    /// A reference that is not what it was.
    #[error("cannot copy {}: {what}", path.display())]
    Reference {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Diagnostic for SoakError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Workload(e) => e.class(),
            Self::Sys(e) => e.class(),
            Self::StatePlan { .. } => ErrorClass::Usage,
            Self::State { .. } | Self::Reference { .. } => ErrorClass::Failed,
            Self::StateBusy { .. } | Self::StateFile { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Workload(e) => e.hint(),
            Self::Sys(e) => e.hint(),
            Self::State { .. } => Some("nothing was changed; start again with another --state FILE".into()),
            Self::StatePlan { .. } => {
                Some("repeat the command that started it, or start another with another --state FILE".into())
            }
            Self::StateFile { hint, .. } => Some(hint.into()),
            Self::StateBusy { .. } | Self::Reference { .. } => None,
        }
    }
}

/// Error of a failed system call: what was tried, and the system's answer.
pub(crate) fn system(action: &str) -> impl Fn(std::io::Error) -> SoakError + '_ {
    move |source| WorkloadError::System { action: action.to_owned(), source }.into()
}
