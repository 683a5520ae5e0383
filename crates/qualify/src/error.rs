//! Why a qualification could not be carried out.

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
    Results(#[from] keepup_results::ResultsError),
    /// The search cannot be set up.
    #[error("planning the rate search: {0}")]
    Search(#[from] crate::search::PlanError),
    /// The settings contradict each other or the machine.
    #[error("{what}")]
    Settings {
        /// What does not work, and what helps.
        what: String,
        /// Whether another machine (or more space) would do, rather than another command.
        environment: bool,
    },
    /// The profile does not fit the settings.
    #[error(transparent)]
    Profile(#[from] keepup_plan::Invalid),
}
