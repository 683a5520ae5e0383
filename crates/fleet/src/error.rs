//! Errors of a fleet.
use std::borrow::Cow;

use keepup_error::{Cause, Diagnostic, ErrorClass};

/// Error of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The fleet file cannot be used.
    #[error("cannot use the fleet file: {0}")]
    File(Cause),
    /// The controller cannot listen.
    #[error("cannot listen on {address} for hosts: {why}")]
    Listen {
        /// Address.
        address: String,
        /// Cause.
        why: Cause,
    },
    /// A host cannot reach the controller, or is refused.
    #[error("cannot join the fleet of {address}: {why}")]
    Join {
        /// Address of the controller.
        address: String,
        /// Cause.
        why: Cause,
    },
    /// An agent cannot use its first line.
    #[error("cannot join the fleet: {0}")]
    JoinInfo(Cause),
    /// The socket for commands cannot be used.
    #[error("cannot use the control socket of the fleet: {0}")]
    Control(Cause),
    /// The fleet cannot run this trial.
    #[error("cannot run the trial: {0}")]
    Trial(Cause),
    /// The fleet cannot make this recording.
    #[error("cannot record: {0}")]
    Record(Cause),
    /// The hosts of the fleet cannot run the campaign.
    #[error("cannot run the campaign: {0}")]
    Campaign(Cause),
    /// Ctrl-C or `fleet down` before all hosts had joined.
    #[error("cannot {0}: stopped before all hosts had joined")]
    Stopped(String),
    /// The fleet cannot be qualified.
    #[error(transparent)]
    Qualify(#[from] keepup_qualify::QualifyError),
    /// A path outside the directories that the host may use.
    #[error("cannot use {path}: {why}")]
    Path {
        /// The path.
        path: String,
        /// Cause.
        why: Cause,
    },
}

impl Diagnostic for FleetError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::File(_) | Self::Trial(_) | Self::Record(_) => ErrorClass::Usage,
            Self::Path { .. } => ErrorClass::Refused,
            Self::Stopped(_) => ErrorClass::Interrupted,
            Self::Qualify(error) => error.class(),
            Self::Listen { .. }
            | Self::Join { .. }
            | Self::JoinInfo(_)
            | Self::Control(_)
            | Self::Campaign(_) => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::File(why)
            | Self::JoinInfo(why)
            | Self::Control(why)
            | Self::Trial(why)
            | Self::Campaign(why)
            | Self::Record(why) => why.hint(),
            Self::Stopped(_) => None,
            Self::Qualify(error) => error.hint(),
            Self::Listen { why, .. } | Self::Join { why, .. } | Self::Path { why, .. } => why.hint(),
        }
    }
}

/// Text of an error with its hint, for the controller.
pub(crate) fn error_text(error: &impl Diagnostic) -> String {
    let hint = error.hint().map(|hint| format!(" (hint: {hint})"));
    format!("{error}{}", hint.unwrap_or_default())
}

impl From<FleetError> for String {
    fn from(error: FleetError) -> Self {
        error_text(&error)
    }
}
