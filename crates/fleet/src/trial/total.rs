//! Results of the hosts of a trial, and of all together.
use keepup_qualify::bottleneck::Evidence;
use keepup_qualify::search::TrialOutcome;
use keepup_results::RecordRun;
use keepup_results::format::{rate, rates};
use serde::{Deserialize, Serialize};

use crate::clock::Offset;
use crate::table::table;

/// Highest rate in a result, bytes per second: more than the network of any host carries.
const RATE_MAX: f64 = 1e15;
/// Longest time in a result, seconds; far above the length of any trial.
const TIME_MAX_S: f64 = 1e9;

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
    /// Why its drain failed. Then nothing is known about the rate of the drain, and the trial does not count.
    #[serde(default)]
    pub drain_failure: Option<String>,
    /// Rate that its drain reached, payload bytes per second, if there is one and it had enough to do.
    #[serde(default)]
    pub drain_bytes_per_second: Option<f64>,
    /// Payload that its volumes could take before the trial, bytes; none without volumes.
    pub usable_bytes: Option<f64>,
    /// Size of its files, bytes.
    pub file_bytes: u64,
}

impl Outcome {
    /// Refuses rates and times that no trial can have. The result comes from another machine, and sums over
    /// all hosts must stay finite: others cannot be stored.
    ///
    /// # Errors
    /// The figure that is out of range.
    pub(super) fn check(&self) -> Result<(), String> {
        let (run, judged, evidence) = (&self.run, &self.judged, &self.evidence);
        let rates = [
            run.achieved_bytes_per_second,
            judged.achieved_rate,
            judged.offered_rate,
            evidence.rate,
            evidence.durable_rate,
        ];
        let times = [
            run.seconds,
            run.source_seconds,
            judged.duration_s,
            judged.clean_s,
            judged.elapsed_s,
            self.start_delay_seconds.abs(),
        ];
        let stall = judged.longest_stall.map(|stall| stall.as_secs_f64());
        within(
            "a rate",
            "bytes/s",
            RATE_MAX,
            rates.into_iter().chain(run.durable_bytes_per_second).chain(self.drain_bytes_per_second),
        )?;
        within("a time", "s", TIME_MAX_S, times.into_iter().chain(stall))?;
        within("an amount", "bytes", RATE_MAX * TIME_MAX_S, [judged.bytes])?;
        within("a CPU time", "s/GB", TIME_MAX_S, run.cpu.seconds_per_gb)
    }
}

/// Refuses a value that is not finite, negative or above `most`.
fn within(what: &str, unit: &str, most: f64, values: impl IntoIterator<Item = f64>) -> Result<(), String> {
    match values.into_iter().find(|value| !(0.0..=most).contains(value)) {
        Some(value) => Err(format!("{what} of {value:e} {unit} is out of range")),
        None => Ok(()),
    }
}

/// Sum of counts of several hosts, which may be anything.
fn total(counts: &mut dyn Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
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
            received_events: total(&mut runs().map(|run| run.ledger.received.events)),
            received_bytes: total(&mut runs().map(|run| run.ledger.received.bytes)),
            lost_events: total(&mut runs().map(|run| run.ledger.lost.events)),
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
        for host in &self.hosts {
            if let Some(why) =
                host.outcome.as_ref().and_then(|outcome| outcome.evidence.drain_behind.as_ref())
            {
                table.push_str(&format!("{}: {why}\n", host.host));
            }
        }
        let outcomes = self.hosts.iter().filter_map(|host| host.outcome.as_ref());
        let drained = outcomes.filter_map(|outcome| outcome.drain_bytes_per_second).reduce(|a, b| a + b);
        if let Some(drained) = drained {
            table.push_str(&format!("drained meanwhile: {}\n", rate(drained)));
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

    /// Whether every recorder has a result without loss, in time, and with a drain that did not fall behind.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = |outcome: &Outcome| outcome.run.is_whole() && outcome.evidence.drain_behind.is_none();
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
