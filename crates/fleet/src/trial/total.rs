//! Results of the hosts of a trial, and of all together.
use keepup_qualify::bottleneck::Evidence;
use keepup_qualify::search::TrialOutcome;
use keepup_results::RecordRun;
use keepup_results::format::{rate, rates};
use serde::{Deserialize, Serialize};

use crate::clock::Offset;
use crate::table::table;

/// What a recorder reports at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Result of its trial.
    pub run: RecordRun,
    /// Start of its source after the agreed time, by its own clock, seconds.
    pub start_delay_seconds: f64,
    /// Judgement of its part.
    pub judged: TrialOutcome,
    /// Occupancy of its stages.
    pub evidence: Evidence,
    /// Whether the path throttled its source.
    pub is_throttled: bool,
    /// Payload that its volumes could take before the trial, bytes; none without volumes.
    pub usable_bytes: Option<f64>,
    /// Size of its files, bytes.
    pub file_bytes: u64,
}

/// Result of a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostResult {
    /// Name of the host.
    pub host: String,
    /// Its source.
    pub source: String,
    /// Its outcome; none if it has none.
    pub outcome: Option<Outcome>,
    /// Why it has none, or why it does not count.
    pub failure: Option<String>,
    /// The controller's clock less its own, and the largest error, ns.
    pub clock: Option<Offset>,
}

/// Result of all recorders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetTrial {
    /// Name of the fleet.
    pub fleet: String,
    /// Requested rate of all, bytes per second; none: unthrottled.
    pub asked_bytes_per_second: Option<f64>,
    /// Sum of the rates received, bytes per second.
    pub achieved_bytes_per_second: f64,
    /// Events received by all.
    pub received_events: u64,
    /// Their payload, bytes.
    pub received_bytes: u64,
    /// Events that are not durable.
    pub lost_events: u64,
    /// Messages of the controller and its hosts during the trial, bytes.
    pub control_bytes: u64,
    /// The recorders.
    pub hosts: Vec<HostResult>,
}

impl FleetTrial {
    /// Adds up the results of `hosts`.
    #[must_use]
    pub fn new(
        fleet: &str,
        asked_bytes_per_second: Option<f64>,
        control_bytes: u64,
        hosts: Vec<HostResult>,
    ) -> Self {
        let runs = || hosts.iter().filter_map(|host| host.outcome.as_ref()).map(|outcome| &outcome.run);
        Self {
            fleet: fleet.to_owned(),
            asked_bytes_per_second,
            achieved_bytes_per_second: runs()
                .map(|run| run.achieved_bytes_per_second)
                .fold(0.0, |sum, rate| sum + rate),
            received_events: runs().map(|run| run.ledger.received.events).sum(),
            received_bytes: runs().map(|run| run.ledger.received.bytes).sum(),
            lost_events: runs().map(|run| run.ledger.lost.events).sum(),
            control_bytes,
            hosts,
        }
    }

    /// A table with a line for each recorder, and what all did together.
    #[must_use]
    pub fn table(&self) -> String {
        let rows: Vec<[String; COLUMNS]> =
            std::iter::once(HEAD.map(str::to_owned)).chain(self.hosts.iter().map(HostResult::row)).collect();
        let mut table = table(&rows, 2);
        for host in &self.hosts {
            if let Some(why) = &host.failure {
                table.push_str(&format!("{}: {why}\n", host.host));
            }
        }
        let achieved = self.achieved_bytes_per_second;
        let [achieved, asked] = rates([achieved, self.asked_bytes_per_second.unwrap_or(achieved)]);
        let share = self.control_bytes as f64 / self.received_bytes.max(1) as f64;
        table.push_str(&format!(
            "all: {achieved} of {asked}, {} events lost\ncontrol traffic: {:.4} % of the payload",
            self.lost_events,
            share * 100.0
        ));
        table
    }

    /// Whether every recorder has a result without loss, and in time.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = |outcome: &Outcome| outcome.run.is_whole();
        self.hosts.iter().all(|host| host.failure.is_none() && host.outcome.as_ref().is_some_and(is_whole))
    }
}

/// Columns of the table.
const COLUMNS: usize = 7;
const HEAD: [&str; COLUMNS] =
    ["recorder", "source", "received", "events", "lost", "start (ms)", "clock (ms)"];

impl HostResult {
    fn row(&self) -> [String; COLUMNS] {
        let none = || "-".to_owned();
        let of = |cell: fn(&Outcome) -> String| self.outcome.as_ref().map_or_else(none, cell);
        [
            self.host.clone(),
            self.source.clone(),
            of(|outcome| rate(outcome.run.achieved_bytes_per_second)),
            of(|outcome| outcome.run.ledger.received.events.to_string()),
            of(|outcome| outcome.run.ledger.lost.events.to_string()),
            of(|outcome| format!("{:+.2}", outcome.start_delay_seconds * 1e3)),
            self.clock.map_or_else(none, |clock| clock.text()),
        ]
    }
}

#[cfg(test)]
#[path = "total_tests.rs"]
mod tests;
