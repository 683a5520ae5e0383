//! Outcome of a finished run.
use keepup_results::Count;
use keepup_results::live::RunOutcome;

use crate::report::RecordReport;

/// Most incidents in an outcome.
const INCIDENTS_MAX: usize = 20;

/// Converts a run's report.
pub(super) fn outcome(report: &RecordReport, run: Option<u64>, name: &str) -> RunOutcome {
    let total = report.ledger.total();
    let count = |c: keepup_stream::ledger::Count| Count { events: c.events, bytes: c.bytes };
    let missing = total.gap_events.iter().filter(|(_, events)| **events > 0);
    let volumes = report.volumes.iter().filter(|_| !report.removed);
    let directories = volumes.filter_map(|volume| volume.directory.as_ref());
    RunOutcome {
        run,
        name: name.to_owned(),
        ended: report.why_ended(),
        received: count(total.received),
        durable: count(total.durable),
        missing: missing.map(|(cause, &events)| (cause.to_string(), events)).collect(),
        seconds: report.elapsed_ns as f64 / 1e9,
        incidents: report
            .trouble
            .iter()
            .cloned()
            .chain(report.rejected.iter().map(ToString::to_string))
            .chain(report.incidents.listed.iter().cloned())
            .take(INCIDENTS_MAX)
            .collect(),
        directories: directories.map(|directory| directory.display().to_string()).collect(),
        master: report.master.as_ref().map(|master| master.display().to_string()),
        whole: report.is_complete(),
    }
}
