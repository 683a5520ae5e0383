//! Error of a request to a recorder's HTTP interface.
use std::borrow::Cow;

use keepup_error::{Cause, Diagnostic, ErrorClass};

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CtlError {
    /// No answer.
    #[error("cannot reach a recorder at {to}: {why}")]
    Unreachable {
        /// Address.
        to: String,
        /// Cause.
        why: String,
    },
    /// The recorder refused the command.
    #[error("{why}")]
    Refused {
        /// Cause from the recorder.
        why: Cause,
    },
    /// The command failed.
    #[error("{why}")]
    Failed {
        /// Cause from the recorder.
        why: Cause,
    },
    /// The answer is not that of a recorder.
    #[error("cannot parse the answer of {to}: {what}")]
    Answer {
        /// Address.
        to: String,
        /// Description of the defect.
        what: Cause,
    },
}

impl Diagnostic for CtlError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused { .. } => ErrorClass::Refused,
            Self::Failed { .. } => ErrorClass::Failed,
            Self::Unreachable { .. } | Self::Answer { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unreachable { .. } => {
                Some("start `keepup record --http HOST:PORT` there, or give its address with --to URL".into())
            }
            Self::Refused { why } | Self::Failed { why } => why.hint(),
            Self::Answer { what, .. } => {
                what.hint().or(Some("check that a keepup of this version serves there".into()))
            }
        }
    }
}
