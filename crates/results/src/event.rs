//! Events of a measurement, as `events.jsonl` holds them: one flat JSON object per line.
//!
//! A reader that knows only `event` and `t_unix_ns` can order and filter a whole log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::disk::DiskRun;
use crate::net::NetRun;
use crate::record::RecordRun;
use crate::register::RegisterRun;
use crate::replay::ReplayPass;
use crate::summary::{Kind, TrialResult, Verdict};

/// One thing that happened. `t_unix_ns` is nanoseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The measurement began: with this line alone a crashed run can still be told from others.
    Started {
        /// When.
        t_unix_ns: u64,
        /// Version of the layout, as in the summary.
        schema_version: u32,
        /// Version of keepup.
        tool_version: String,
        /// Identity of the result.
        id: String,
        /// What is done.
        kind: Kind,
        /// Exact command.
        command: String,
        /// Name of the profile.
        profile: String,
        /// The plan as it is run.
        plan: serde_json::Value,
        /// Environment record.
        environment: serde_json::Value,
    },
    /// A new phase began, for example a ceiling, the search, the soak.
    Phase {
        /// When.
        t_unix_ns: u64,
        /// Name of the phase.
        name: String,
    },
    /// What the samplers read.
    Sample {
        /// When.
        t_unix_ns: u64,
        /// Milliseconds since the measurement began, on the monotonic clock.
        t_ms: u64,
        /// Readings by name, units last in the name. One that is not finite is left out: JSON cannot say it.
        #[serde(serialize_with = "finite_only")]
        values: BTreeMap<String, f64>,
    },
    /// A trial ended.
    Trial {
        /// When.
        t_unix_ns: u64,
        /// What it showed.
        trial: Box<TrialResult>,
    },
    /// A run of a disk test ended.
    DiskRun {
        /// When.
        t_unix_ns: u64,
        /// What it found.
        run: Box<DiskRun>,
    },
    /// A run of a network test ended.
    NetRun {
        /// When.
        t_unix_ns: u64,
        /// What it found.
        run: Box<NetRun>,
    },
    /// A run of a recording's trial ended.
    RecordRun {
        /// When.
        t_unix_ns: u64,
        /// What it found.
        run: Box<RecordRun>,
    },
    /// A test of registers ended.
    RegisterRun {
        /// When.
        t_unix_ns: u64,
        /// What it found.
        run: Box<RegisterRun>,
    },
    /// A pass of a replay ended.
    ReplayPass {
        /// When.
        t_unix_ns: u64,
        /// What it found.
        pass: Box<ReplayPass>,
    },
    /// A run of a campaign's cell ended.
    CellRun {
        /// When.
        t_unix_ns: u64,
        /// Number of the cell, from 1.
        cell: u32,
        /// Which repetition, from 1.
        repetition: u32,
        /// How it ended.
        exit_code: i32,
        /// Where its result is, relative to the campaign's directory; null when it left none.
        directory: Option<String>,
        /// How long it took, seconds.
        seconds: f64,
        /// What went wrong, where anything did.
        why: Option<String>,
    },
    /// Events of a stream were lost.
    Loss {
        /// When it was noticed.
        t_unix_ns: u64,
        /// Stream.
        stream: u32,
        /// Sequence number of the first event lost, if known.
        first_sequence: Option<u64>,
        /// How many.
        events: u64,
        /// Why, in the ledger's words.
        cause: String,
    },
    /// A histogram of one phase or trial.
    Histogram {
        /// When it was closed.
        t_unix_ns: u64,
        /// Name, unit last.
        name: String,
        /// HDR histogram, V2, base64: existing HdrHistogram plotters read it.
        hdr_v2_base64: String,
    },
    /// Something a reader should know, in words.
    Note {
        /// When.
        t_unix_ns: u64,
        /// The words.
        text: String,
    },
    /// The measurement ended in order.
    Finished {
        /// When.
        t_unix_ns: u64,
        /// The answer, where there was a question that has one.
        verdict: Option<Verdict>,
    },
}

fn finite_only<S: Serializer>(values: &BTreeMap<String, f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().filter(|(_, value)| value.is_finite()))
}

#[cfg(test)]
#[path = "event_tests.rs"]
pub(crate) mod tests;
