//! Events of a measurement in `events.jsonl`: one flat JSON object per line.
//!
//! A reader can order and filter a log by `event` and `t_unix_ns` alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::disk::DiskRun;
use crate::fleet_qualify::FleetTrialResult;
use crate::head::Kind;
use crate::net::NetRun;
use crate::record::RecordRun;
use crate::register::RegisterRun;
use crate::replay::ReplayPass;
use crate::summary::{TrialResult, Verdict};

/// One event. `t_unix_ns` is nanoseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The measurement started; identifies a crashed run.
    Started {
        /// Time.
        t_unix_ns: u64,
        /// Layout version, as in the summary.
        schema_version: u32,
        /// Version of keepup.
        tool_version: String,
        /// Identity of the result.
        id: String,
        /// Kind of result.
        kind: Kind,
        /// Command line.
        command: String,
        /// Name of the profile.
        profile: String,
        /// Plan of the measurement.
        plan: serde_json::Value,
        /// Environment record.
        environment: serde_json::Value,
    },
    /// A phase started, for example a ceiling, the search, the soak.
    Phase {
        /// Time.
        t_unix_ns: u64,
        /// Name of the phase.
        name: String,
    },
    /// Readings of the samplers.
    Sample {
        /// Time.
        t_unix_ns: u64,
        /// Milliseconds since the start, on the monotonic clock.
        t_ms: u64,
        /// Readings by name, with the unit as suffix. Non-finite values are omitted, since JSON
        /// cannot represent them.
        #[serde(serialize_with = "finite_only")]
        values: BTreeMap<String, f64>,
    },
    /// A trial ended.
    Trial {
        /// Time.
        t_unix_ns: u64,
        /// Result of the trial.
        trial: Box<TrialResult>,
    },
    /// A trial on several recorders ended.
    FleetTrial {
        /// Time.
        t_unix_ns: u64,
        /// Result of the trial.
        trial: Box<FleetTrialResult>,
    },
    /// A run of a disk test ended.
    DiskRun {
        /// Time.
        t_unix_ns: u64,
        /// Result of the run.
        run: Box<DiskRun>,
    },
    /// A run of a network test ended.
    NetRun {
        /// Time.
        t_unix_ns: u64,
        /// Result of the run.
        run: Box<NetRun>,
    },
    /// A run of a recording trial ended.
    RecordRun {
        /// Time.
        t_unix_ns: u64,
        /// Result of the run.
        run: Box<RecordRun>,
    },
    /// A register test ended.
    RegisterRun {
        /// Time.
        t_unix_ns: u64,
        /// Result of the test.
        run: Box<RegisterRun>,
    },
    /// A replay pass ended.
    ReplayPass {
        /// Time.
        t_unix_ns: u64,
        /// Result of the pass.
        pass: Box<ReplayPass>,
    },
    /// A run of a campaign's cell ended.
    CellRun {
        /// Time.
        t_unix_ns: u64,
        /// Number of the cell, from 1.
        cell: u32,
        /// Number of the repetition, from 1.
        repetition: u32,
        /// Exit code.
        exit_code: i32,
        /// Path of its result relative to the campaign's directory; null without a result.
        directory: Option<String>,
        /// Duration, seconds.
        seconds: f64,
        /// Error, if any.
        why: Option<String>,
    },
    /// Events of a stream were lost.
    Loss {
        /// Time of detection.
        t_unix_ns: u64,
        /// Stream.
        stream: u32,
        /// Sequence number of the first event lost, if known.
        first_sequence: Option<u64>,
        /// Number of events.
        events: u64,
        /// Cause, in the ledger's words.
        cause: String,
    },
    /// Histogram of one phase or trial.
    Histogram {
        /// Time of completion.
        t_unix_ns: u64,
        /// Name, with the unit as suffix.
        name: String,
        /// HDR histogram, V2, base64, readable by HdrHistogram tools.
        hdr_v2_base64: String,
    },
    /// A note.
    Note {
        /// Time.
        t_unix_ns: u64,
        /// Text.
        text: String,
    },
    /// The measurement ended regularly.
    Finished {
        /// Time.
        t_unix_ns: u64,
        /// Verdict, if the measurement has one.
        verdict: Option<Verdict>,
    },
}

fn finite_only<S: Serializer>(values: &BTreeMap<String, f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().filter(|(_, value)| value.is_finite()))
}

#[cfg(test)]
#[path = "event_tests.rs"]
pub(crate) mod tests;
