//! Result directory of a qualification of a fleet.
//!
//! Invariant: a failure before the first trial leaves no directory; a later one leaves a result with the
//! trials and the failure.
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_results::{
    Begun, Ended, Event, EventLog, FleetQualifySummary, FleetTrialResult, ResultDirectory, ResultsError,
    TestSummary,
};

use crate::output::{log, log_cause};

/// Result directory in progress.
pub(super) struct Store {
    directory: ResultDirectory,
    events: EventLog,
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
        let (kind, version) = (FleetQualifySummary::KIND, FleetQualifySummary::SCHEMA_VERSION);
        let (directory, events) = ResultDirectory::begin(out, kind, version, begun)?;
        Ok(Self { directory, events, summary })
    }

    /// Logs a trial. A failure is only a warning: the measurement continues.
    pub(super) fn keep(&mut self, trial: &FleetTrialResult) {
        let t_unix_ns = SystemClock.unix_ns();
        let event = Event::FleetTrial { t_unix_ns, trial: Box::new(trial.clone()) };
        self.summary.trials.push(trial.clone());
        warn(self.events.append(&event));
    }

    /// Stores the result; returns its directory.
    pub(super) fn finish(self, found: &FleetQualifySummary) -> Result<PathBuf, ResultsError> {
        finish(&self.directory, self.events, found)
    }

    /// Stores the trials of a qualification that failed; removes the directory if there are none.
    pub(super) fn fail(self, why: &anyhow::Error) {
        let Self { directory, events, mut summary } = self;
        if summary.trials.is_empty() {
            warn(directory.discard());
            return;
        }
        summary.end(Ended { failure: Some(format!("{why:#}")), interrupted: false });
        match finish(&directory, events, &summary) {
            Ok(directory) => log(&format!("result: {}", directory.display())),
            Err(why) => warn(Err(why)),
        }
    }
}

fn finish(
    directory: &ResultDirectory,
    mut events: EventLog,
    found: &FleetQualifySummary,
) -> Result<PathBuf, ResultsError> {
    events.append(&Event::Finished { t_unix_ns: SystemClock.unix_ns(), verdict: Some(found.verdict) })?;
    events.finish()?;
    directory.write_summary(found)?;
    Ok(directory.path().to_owned())
}

fn warn(outcome: Result<(), ResultsError>) {
    if let Err(why) = outcome {
        log_cause(&Cause::of(&why).map(|why| format!("warning: {why}")));
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
