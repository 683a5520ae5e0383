//! Why a qualification could not be carried out.
use std::borrow::Cow;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_results::ResultsError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum QualifyError {
    /// Something that is measured failed.
    #[error(transparent)]
    Workload(#[from] keepup_workload::WorkloadError),
    /// The environment could not be recorded.
    #[error(transparent)]
    Measure(#[from] keepup_measure::error::MeasureError),
    /// The result could not be kept.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The search cannot be set up.
    #[error(transparent)]
    Search(#[from] crate::search::PlanError),
    /// The settings contradict each other or the machine.
    #[error("{what}")]
    Settings {
        /// What does not work.
        what: Cause,
        /// Whether another machine (or more space) would do, rather than another command.
        environment: bool,
    },
    /// The profile does not fit the settings.
    #[error(transparent)]
    Profile(#[from] keepup_plan::Invalid),
}

impl Diagnostic for QualifyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Workload(e) => e.class(),
            Self::Settings { environment: true, .. } | Self::Measure(_) => ErrorClass::Environment,
            Self::Results(e) => of_results(e),
            Self::Settings { environment: false, .. } | Self::Profile(_) | Self::Search(_) => {
                ErrorClass::Usage
            }
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Workload(e) => e.hint(),
            Self::Measure(e) => e.hint(),
            Self::Results(e) => e.hint(),
            Self::Search(e) => e.hint(),
            Self::Settings { what, .. } => what.hint(),
            Self::Profile(e) => e.hint(),
        }
    }
}

/// A qualification only writes results: what is in the way is not overwritten.
fn of_results(error: &ResultsError) -> ErrorClass {
    match error {
        ResultsError::Io { .. } => ErrorClass::Environment,
        ResultsError::NotEmpty { .. }
        | ResultsError::NotADirectory { .. }
        | ResultsError::NotAResult { .. }
        | ResultsError::BadName { .. }
        | ResultsError::LogBroken { .. }
        | ResultsError::Summary { .. }
        | ResultsError::Unwritable { .. }
        | ResultsError::NotASummary { .. }
        | ResultsError::CutOff { .. }
        | ResultsError::Event { .. }
        | ResultsError::Changed { .. }
        | ResultsError::SchemaVersion { .. } => ErrorClass::Refused,
    }
}
