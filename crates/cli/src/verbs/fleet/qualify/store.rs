//! Result directory of a qualification of a fleet.
//!
//! Invariant: a failure before the first trial leaves no directory; a later one leaves a result with the
//! trials and the failure.
use std::path::{Path, PathBuf};

use keepup_measure::clock::{Clock, SystemClock};
use keepup_results::{
    Begun, ControlTraffic, Ended, Event, FleetQualifySummary, FleetTrialResult, ResultsError, TestSummary,
};

use crate::output::log;
use crate::verbs::test_session::{ResultWriter, warn};

/// Result directory in progress.
pub(super) struct Store {
    writer: ResultWriter,
    /// The result so far.
    summary: FleetQualifySummary,
}

impl Store {
    /// Creates a new subdirectory of `out` for a result that is `summary` before its first trial.
    pub(super) fn create(
        out: &Path,
        summary: FleetQualifySummary,
        begun: &Begun,
    ) -> Result<Self, ResultsError> {
        Ok(Self { writer: ResultWriter::create::<FleetQualifySummary>(out, begun)?, summary })
    }

    /// Logs a trial, after which all trials have written `bytes_written` bytes and caused the traffic
    /// `control`. A failure is only a warning: the measurement continues.
    pub(super) fn keep(&mut self, trial: &FleetTrialResult, bytes_written: u64, control: ControlTraffic) {
        let t_unix_ns = SystemClock.unix_ns();
        self.writer.append(&Event::FleetTrial { t_unix_ns, trial: Box::new(trial.clone()) });
        self.summary.trials.push(trial.clone());
        (self.summary.bytes_written, self.summary.control) = (bytes_written, control);
    }

    /// Stores the result; returns its directory.
    pub(super) fn finish(self, found: &FleetQualifySummary) -> Result<PathBuf, ResultsError> {
        self.writer.finish(found, Some(found.verdict))
    }

    /// Stores the trials of a qualification that failed; removes the directory if there are none.
    pub(super) fn fail(self, why: &anyhow::Error) {
        let Self { writer, mut summary } = self;
        if summary.trials.is_empty() {
            writer.discard();
            return;
        }
        summary.end(Ended { failure: Some(format!("{why:#}")), interrupted: false });
        match writer.finish(&summary, Some(summary.verdict)) {
            Ok(directory) => log(&format!("result: {}", directory.display())),
            Err(why) => warn(Err(why)),
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
