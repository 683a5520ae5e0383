//! Result of a recorder.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_recorder::report::RecordReport;
use keepup_recording::id::Id;
use serde::{Deserialize, Serialize};

use super::drain::DrainOutcome;

/// Most incidents that are reported; all are in the recording.
const INCIDENTS_MAX: usize = 20;

/// What a recorder reports at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordOutcome {
    /// Identity of the recording.
    pub recording: Id,
    /// Its directories; empty if it was removed because nothing had arrived.
    pub directories: Vec<PathBuf>,
    /// Why it ended.
    pub ended: String,
    /// Whether all that arrived is durable, and the recording has no defects.
    pub is_whole: bool,
    /// Streams.
    pub streams: u64,
    /// Events received.
    pub received_events: u64,
    /// Their payload, bytes.
    pub received_bytes: u64,
    /// Events on stable storage.
    pub durable_events: u64,
    /// Their payload, bytes.
    pub durable_bytes: u64,
    /// Missing sequence numbers, for any cause.
    pub missing_events: u64,
    /// The same by cause.
    pub missing: BTreeMap<String, u64>,
    /// Time from the first event to the last durable byte, ns.
    pub elapsed_ns: u64,
    /// CPU time of the data path, ns.
    pub cpu_ns: u64,
    /// Defects of the recording, data that arrived and are not recorded, and the first incidents.
    pub incidents: Vec<String>,
    /// Its drain, if there is a drain host and a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainOutcome>,
}

impl RecordOutcome {
    /// Parses the result of a part.
    ///
    /// # Errors
    /// The text is no such result; a text for the user.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("malformed result: {error}"))
    }

    /// Sums up a report. `directories` are those of the recording.
    pub(super) fn new(
        recording: Id,
        report: &RecordReport,
        directories: Vec<PathBuf>,
        drain: Option<DrainOutcome>,
    ) -> Self {
        let total = report.ledger.total();
        let rejected = report.rejected.iter().map(ToString::to_string);
        let incidents = report.trouble.iter().cloned().chain(rejected);
        let incidents = incidents.chain(report.incidents.listed.iter().cloned());
        Self {
            recording,
            directories: if report.removed { Vec::new() } else { directories },
            ended: report.why_ended(),
            is_whole: report.is_whole(),
            streams: report.ledger.streams.len() as u64,
            received_events: total.received.events,
            received_bytes: total.received.bytes,
            durable_events: total.durable.events,
            durable_bytes: total.durable.bytes,
            missing_events: total.gap_events.values().saturating_sum(),
            missing: total.gap_events.iter().map(|(cause, events)| (cause.to_string(), *events)).collect(),
            elapsed_ns: report.elapsed_ns,
            cpu_ns: report.threads().map(|thread| thread.cpu_ns).saturating_sum(),
            incidents: incidents.take(INCIDENTS_MAX).collect(),
            drain: drain.filter(|_| !report.removed),
        }
    }
}
