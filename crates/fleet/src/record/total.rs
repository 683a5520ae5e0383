//! Results of the recorders of a recording, and of all together.
use std::path::PathBuf;

use keepup_recording::id::Id;
use keepup_recording::set::{RecordingSet, SetEnd, SetMove, SetRecording};
use keepup_results::format::{bytes, number, rate};
use serde::Serialize;

use super::drain::{DrainEnd, DrainOutcome, DrainResult};
use super::outcome::RecordOutcome;
use super::plan::RecordPlan;
use crate::controller::PartEnd;

/// Reason of a recording whose recorder has not reported its end.
const NOT_REPORTED: &str = "the end of the run was not reported";
/// Most bytes of a reason in a set.
const WHY_BYTES_MAX: usize = 4096;

/// Result of a recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecorderResult {
    /// Name of the host.
    pub host: String,
    /// Directories of its recording, by its plan.
    pub directories: Vec<PathBuf>,
    /// Its outcome; none if it has none.
    pub outcome: Option<RecordOutcome>,
    /// Why it has none.
    pub failure: Option<String>,
    /// How its part ended.
    #[serde(skip)]
    end: SetEnd,
    /// Whether it has had streams. Before, it has no recording.
    #[serde(skip)]
    had_streams: bool,
    #[serde(skip)]
    is_spare: bool,
}

impl RecorderResult {
    /// A recorder that has no streams yet.
    #[must_use]
    pub fn new(host: &str, plan: &RecordPlan, is_spare: bool) -> Self {
        Self {
            host: host.to_owned(),
            directories: plan.volumes.iter().map(|volume| volume.join(&plan.name)).collect(),
            outcome: None,
            failure: Some(NOT_REPORTED.to_owned()),
            end: SetEnd::Lost,
            had_streams: false,
            is_spare,
        }
    }

    /// It gets streams.
    pub const fn take_streams(&mut self) {
        self.had_streams = true;
    }

    /// Enters the end of its part.
    pub fn enter(&mut self, end: &PartEnd) {
        let (outcome, failure, kind) = match end {
            PartEnd::Finished(text) => match RecordOutcome::parse(text) {
                Ok(outcome) => (Some(outcome), None, SetEnd::Finished),
                Err(why) => (None, Some(why), SetEnd::Failed),
            },
            PartEnd::Failed(_) | PartEnd::TimedOut(_) => (None, end.failure(), SetEnd::Failed),
            PartEnd::Absent => (None, end.failure(), SetEnd::Absent),
            PartEnd::Lost => (None, end.failure(), SetEnd::Lost),
        };
        (self.outcome, self.failure, self.end) = (outcome, failure, kind);
    }

    fn recording(&self) -> SetRecording {
        let id = self.outcome.as_ref().map(|outcome| outcome.recording);
        let made = self.outcome.as_ref().map_or(&self.directories, |outcome| &outcome.directories);
        let why = self.failure.as_deref().map(limited);
        let (id, end, why) = match self.end {
            SetEnd::Finished if made.is_empty() => {
                (None, SetEnd::Absent, Some("no event arrived".to_owned()))
            }
            // What is in its directories, if anything, is not of this run.
            _ if self.outcome.is_none() && !self.had_streams => (None, SetEnd::Absent, why),
            end => (id, end, why),
        };
        let directories = if end == SetEnd::Absent { Vec::new() } else { made.clone() };
        SetRecording { host: self.host.clone(), id, directories, end, why }
    }

    fn is_whole(&self) -> bool {
        match &self.outcome {
            Some(outcome) => outcome.is_whole && outcome.drain.as_ref().is_none_or(DrainOutcome::is_whole),
            None => self.is_spare && !self.had_streams,
        }
    }

    /// What the copy lacks, in lines.
    fn drain_lines(&self) -> String {
        let Some((outcome, drain)) = self.outcome.as_ref().and_then(|all| Some((all, all.drain.as_ref()?)))
        else {
            return String::new();
        };
        let [copied, all] = [drain.durable_events, outcome.durable_events].map(number);
        let mut lines = match &drain.end {
            DrainEnd::Complete => String::new(),
            DrainEnd::Stopped => {
                format!("{}: the drain was stopped, {copied} of {all} events are copied\n", self.host)
            }
            DrainEnd::Failed(why) => {
                format!("{}: the drain failed, {copied} of {all} events are copied: {why}\n", self.host)
            }
        };
        if drain.missing_events > 0 {
            let missing = number(drain.missing_events);
            lines.push_str(&format!("{}: {missing} events cannot be read and are not copied\n", self.host));
        }
        for incident in &drain.incidents {
            lines.push_str(&format!("{}: drain: {incident}\n", self.host));
        }
        lines
    }

    fn row(&self) -> [String; COLUMNS] {
        let none = || "-".to_owned();
        let of = |cell: fn(&RecordOutcome) -> String| self.outcome.as_ref().map_or_else(none, cell);
        [
            self.host.clone(),
            of(|outcome| number(outcome.streams)),
            of(|outcome| number(outcome.received_events)),
            of(|outcome| bytes(outcome.received_bytes)),
            of(|outcome| number(outcome.missing_events)),
            of(|outcome| rate(outcome.received_bytes as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64)),
        ]
    }
}

/// Text of one line within the limit of a set.
fn limited(why: &str) -> String {
    let mut text: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    while text.len() > WHY_BYTES_MAX {
        text.pop();
    }
    text
}

/// Streams of a lost recorder that went to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Host that had them.
    pub from: String,
    /// Host that took them; none: they are distributed over all recorders that are left.
    pub to: Option<String>,
    /// Epoch from which this holds.
    pub epoch: u64,
    /// When, ns since the Unix epoch.
    pub at_unix_ns: u64,
}

/// A recording on several hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FleetRecording {
    /// Name of the fleet.
    pub fleet: String,
    /// Name of the recording on every volume.
    pub name: String,
    /// Run number.
    pub run: u64,
    /// Identity of the set.
    pub id: Id,
    /// Start, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// The recorders.
    pub recorders: Vec<RecorderResult>,
    /// Streams that moved.
    pub moves: Vec<Moved>,
    /// The drain hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drains: Vec<DrainResult>,
    /// Why it ended early.
    pub ended_early: Option<String>,
}

impl FleetRecording {
    /// The set file's content.
    #[must_use]
    pub fn set(&self) -> RecordingSet {
        let moves = self.moves.iter().cloned();
        let moves =
            moves.map(|Moved { from, to, epoch, at_unix_ns }| SetMove { from, to, epoch, at_unix_ns });
        RecordingSet {
            name: self.name.clone(),
            run: Some(self.run),
            id: self.id,
            created_unix_ns: self.created_unix_ns,
            fleet: self.fleet.clone(),
            recordings: self.recorders.iter().map(RecorderResult::recording).collect(),
            moves: moves.collect(),
        }
    }

    /// Whether the recording ended as intended, and every recorder with a whole recording and copy. A spare
    /// that was not needed may be absent.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = self.recorders.iter().all(RecorderResult::is_whole);
        self.ended_early.is_none() && is_whole && self.drains.iter().all(DrainResult::is_whole)
    }

    /// A table with a line for each recorder, and what happened to them.
    #[must_use]
    pub fn table(&self) -> String {
        let rows: Vec<[String; COLUMNS]> = std::iter::once(HEAD.map(str::to_owned))
            .chain(self.recorders.iter().map(RecorderResult::row))
            .collect();
        let mut text = crate::table::table(&rows, 1);
        for recorder in &self.recorders {
            if let Some(why) = &recorder.failure {
                text.push_str(&format!("{}: {why}\n", recorder.host));
            }
            for incident in recorder.outcome.iter().flat_map(|outcome| &outcome.incidents) {
                text.push_str(&format!("{}: {incident}\n", recorder.host));
            }
            text.push_str(&recorder.drain_lines());
        }
        self.drains.iter().for_each(|drain| text.push_str(&drain.lines()));
        for Moved { from, to, .. } in &self.moves {
            let to = to.as_deref().unwrap_or("the other recorders");
            text.push_str(&format!("the streams of {from} moved to {to}\n"));
        }
        if let Some(why) = &self.ended_early {
            text.push_str(&format!("the recording ended early: {why}\n"));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Columns of the table.
const COLUMNS: usize = 6;
const HEAD: [&str; COLUMNS] = ["recorder", "streams", "events", "received", "missing", "rate"];

#[cfg(test)]
#[path = "total_tests.rs"]
mod tests;
