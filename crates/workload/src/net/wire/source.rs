//! Messages about a source, inside the frames of `net::wire`.
//!
//! Invariant: a plan that passed [`SourceRequest::check`] can be run; counts that passed
//! [`SourceAnswer::report`] add up.
use std::time::Duration;

use keepup_results::printable::{deserialize_line, deserialize_optional_line};
use keepup_stream::source::{SourcePlan, SourceReport, StreamReport};
use serde::{Deserialize, Serialize};

/// Interval at which the server reports the counters of a running source.
pub(in crate::net) const REPORT_EVERY: Duration = Duration::from_millis(20);
/// Longest measurement of a source alone.
const CEILING_MAX: Duration = Duration::from_secs(60);
/// Longest schedule of a source.
pub(in crate::net) const SCHEDULE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(in crate::net) enum SourceRequest {
    /// Describe the machine.
    Describe,
    /// Measure the source alone for this time.
    Ceiling { plan: SourcePlan, time: Duration },
    /// Send the events of the plan to this port of the client.
    Start { plan: SourcePlan, port: u16 },
    /// Open a port at which the source of the plan waits for the client's recorder.
    Open { plan: SourcePlan },
    /// Start the source that waits.
    Run,
    /// End the schedule of the running source early and in order.
    Stop,
}

impl SourceRequest {
    /// Checks the values of a request.
    ///
    /// # Errors
    /// The first violated bound.
    pub(in crate::net) fn check(&self) -> Result<(), String> {
        let (plan, is_too_long) = match self {
            Self::Describe | Self::Run | Self::Stop => return Ok(()),
            Self::Ceiling { plan, time } => (plan, time.is_zero() || *time > CEILING_MAX),
            Self::Start { plan, port } => {
                if *port == 0 {
                    return Err("the recorder's port is 0".into());
                }
                if plan.protocol.waits_for_recorder() {
                    return Err(format!("a source as {} waits for its recorder", plan.protocol));
                }
                (plan, is_above_maximum(plan))
            }
            Self::Open { plan } => {
                if !plan.protocol.waits_for_recorder() {
                    return Err(format!("a source as {} connects to its recorder", plan.protocol));
                }
                (plan, is_above_maximum(plan))
            }
        };
        if is_too_long {
            return Err("the time of the source must be above 0, at most 7 days, and 60 s alone".into());
        }
        plan.check().map_err(|error| error.to_string())
    }
}

fn is_above_maximum(plan: &SourcePlan) -> bool {
    plan.duration.is_some_and(|duration| duration > SCHEDULE_MAX)
}

/// Answer of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(in crate::net) enum SourceAnswer {
    /// The machine.
    Machine { machine: SourceMachine },
    /// Rate of the source alone.
    Ceiling { bytes_per_second: f64 },
    /// The source waits for its recorder at this port.
    Waiting { port: u16 },
    /// The source was started, and no recorder connected.
    NoRecorder {
        #[serde(deserialize_with = "deserialize_line")]
        why: String,
    },
    /// Counters of the running source.
    Progress { progress: SourceProgress },
    /// Final counts; the source has ended.
    End { end: SourceEnd },
}

/// Machine of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::net) struct SourceMachine {
    /// Host name.
    #[serde(deserialize_with = "deserialize_line")]
    pub(in crate::net) host: String,
    /// Model of the processor.
    #[serde(deserialize_with = "deserialize_optional_line")]
    pub(in crate::net) cpu: Option<String>,
    /// Online logical cores.
    pub(in crate::net) cores: Option<u64>,
    /// Version of keepup.
    #[serde(deserialize_with = "deserialize_line")]
    pub(in crate::net) tool_version: String,
}

/// Counters of a running source, as in [`keepup_stream::source::SourceCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::net) struct SourceProgress {
    /// Time since the server received the request, on its monotonic clock, ns.
    pub(in crate::net) t_ns: u64,
    pub(in crate::net) due_events: u64,
    pub(in crate::net) due_bytes: u64,
    pub(in crate::net) sent_events: u64,
    pub(in crate::net) sent_bytes: u64,
    pub(in crate::net) lost_events: u64,
    pub(in crate::net) lost_bytes: u64,
    pub(in crate::net) backlog_bytes: u64,
    pub(in crate::net) blocked_ns: u64,
    pub(in crate::net) cpu_ns: u64,
}

/// Report of a source that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::net) struct SourceEnd {
    closed_loop: bool,
    streams: Vec<StreamReport>,
    durable_events: u64,
    longest_blocked_ns: u64,
    blocked_ns: u64,
    idle_ns: u64,
    cpu_ns: u64,
    /// Time from the request to the start of the schedule, ns.
    pub(in crate::net) lead_ns: u64,
    /// Time from the start of the schedule to the last event, ns.
    pub(in crate::net) elapsed_ns: u64,
    backlog_bytes_max: u64,
    /// Error that cut the source off.
    #[serde(deserialize_with = "deserialize_optional_line")]
    pub(in crate::net) failure: Option<String>,
}

impl SourceEnd {
    /// The report of a source; the server received the request at `begin_unix_ns`.
    pub(in crate::net) fn new(report: &SourceReport, begin_unix_ns: u64, failure: Option<String>) -> Self {
        Self {
            closed_loop: report.closed_loop,
            streams: report.streams.clone(),
            durable_events: report.durable_events,
            longest_blocked_ns: report.longest_blocked_ns,
            blocked_ns: report.blocked_ns,
            idle_ns: report.idle_ns,
            cpu_ns: report.cpu_ns,
            lead_ns: report.started_unix_ns.saturating_sub(begin_unix_ns),
            elapsed_ns: report.elapsed_ns,
            backlog_bytes_max: report.max_backlog_bytes,
            failure,
        }
    }

    /// The report with the start of the schedule on the client's clock. Lateness and the recorder's
    /// bye stay at the server.
    ///
    /// # Errors
    /// Counts that do not add up.
    pub(in crate::net) fn report(&self, started_unix_ns: u64) -> Result<SourceReport, String> {
        if let Some(stream) = self.streams.iter().find(|stream| stream.due != stream.sent + stream.lost) {
            return Err(format!("events of stream {} do not add up", stream.id));
        }
        let empty = SourceReport::empty(self.closed_loop).map_err(|error| error.to_string())?;
        Ok(SourceReport {
            streams: self.streams.clone(),
            durable_events: self.durable_events,
            is_acknowledged: true,
            longest_blocked_ns: self.longest_blocked_ns,
            blocked_ns: self.blocked_ns,
            idle_ns: self.idle_ns,
            cpu_ns: self.cpu_ns,
            started_unix_ns,
            ended_unix_ns: started_unix_ns.saturating_add(self.elapsed_ns),
            elapsed_ns: self.elapsed_ns,
            max_backlog_bytes: self.backlog_bytes_max,
            ..empty
        })
    }
}

impl SourceAnswer {
    /// The checked report in an answer; none in other answers.
    ///
    /// # Errors
    /// Counts that do not add up.
    pub(in crate::net) fn report(&self, started_unix_ns: u64) -> Result<Option<SourceReport>, String> {
        match self {
            Self::End { end } => end.report(started_unix_ns).map(Some),
            Self::Machine { .. }
            | Self::Ceiling { .. }
            | Self::Waiting { .. }
            | Self::NoRecorder { .. }
            | Self::Progress { .. } => Ok(None),
        }
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
