//! One completed trial of a qualification.
use keepup_results::LoadResult;
use keepup_workload::record::TrialMeasured;

use crate::bottleneck::Evidence;
use crate::judge;
use crate::search::TrialOutcome;

/// A completed trial with its outcome.
pub(crate) struct TrialRun {
    pub(crate) measured: TrialMeasured,
    /// Rate, bytes per second; none: unthrottled.
    pub(crate) asked: Option<f64>,
    pub(crate) outcome: TrialOutcome,
    /// Results of the background loads from the start of the source to the last durable event.
    pub(crate) loads: Vec<LoadResult>,
    /// Failed condition of the drain, if any.
    pub(crate) drain_behind: Option<String>,
}

impl TrialRun {
    /// Reason why the recording was aborted, if it was.
    pub(crate) fn broken(&self) -> Option<String> {
        self.measured.broken_off()
    }

    /// Occupancy of every stage.
    pub(crate) fn evidence(&self) -> Evidence {
        let failed = judge::first_failed(&self.outcome).is_some() && !self.outcome.generator_limited;
        Evidence::of(&self.measured, self.asked, self.drain_behind.clone(), failed)
    }
}
