//! Result of `keepup qualify --fleet`: the highest rate of all recorders of a fleet together.
//!
//! Rates are bytes per second, of all streams together if not stated otherwise. `None` means "not measured"
//! and is written as null.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Collected, Figure, Figures, Quantity};
use crate::head::Kind;
use crate::summary::{FailedRate, KneeInterval, Soak, Verdict};
use crate::test::test_summary;

/// Phase of the soaks.
const SOAK: &str = "soak";

test_summary! {
    /// Result of the qualification of a fleet. `workload` is the name of the detector profile.
    pub struct FleetQualifySummary: Kind::QualifyFleet, version 1 {
        /// Name of the fleet.
        pub fleet: String,
        /// Number of streams.
        pub streams: u32,
        /// Verdict.
        pub verdict: Verdict,
        /// Reasons for the verdict, most important first.
        pub verdict_reasons: Vec<String>,
        /// Required rate of the profile, mean over time.
        pub required_bytes_per_second: f64,
        /// Length of the detector's runs, seconds.
        pub required_run_seconds: Option<f64>,
        /// Required headroom (qualified over required rate), for example 1.3.
        pub headroom_wanted: f64,
        /// Bounds of the highest rate found with no loss and no growing backlog on any recorder.
        pub knee: Option<KneeInterval>,
        /// Rate sustained for the whole soak.
        pub qualified_bytes_per_second: Option<f64>,
        /// Lowest rate above the qualified one that failed because of the machines; null if none did.
        pub failed_above: Option<FailedRate>,
        /// The soak that held.
        pub soak: Option<Soak>,
        /// Limit of the rate, if identified.
        pub bottleneck: Option<FleetBottleneck>,
        /// The recorders.
        pub hosts: Vec<QualifiedHost>,
        /// Hosts that were lost; the search started again without them.
        pub lost: Vec<LostHost>,
        /// All trials in order, including failed ones.
        pub trials: Vec<FleetTrialResult>,
        /// Messages between the controller and its hosts during the trials.
        pub control: ControlTraffic,
        /// Payload stored on the volumes by all trials, bytes; of a part without a result, the most that it
        /// may have stored.
        pub bytes_written: u64,
        /// Limits of validity, one sentence each.
        pub limits: Vec<String>,
        /// Whether the sources prevented an answer.
        pub generator_limited: bool,
    }
}

/// What limits the rate of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetBottleneck {
    /// Hosts and stage, in words: "host daq2, volume /data/disk1".
    pub stage: String,
    /// Names of the hosts; empty if no single host limits the rate.
    pub hosts: Vec<String>,
    /// Figures, one sentence.
    pub evidence: String,
}

impl FleetBottleneck {
    /// Stage of a limit in what the recorders share: each is below its own knee.
    pub const SHARED: &'static str = "switch or sources";
}

/// A recorder of a qualified fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QualifiedHost {
    /// Name.
    pub host: String,
    /// Its source, `HOST:PORT`.
    pub source: String,
    /// Number of its streams.
    pub streams: u32,
    /// Its share of the highest rate that held.
    pub held_bytes_per_second: Option<f64>,
    /// Bounds of its own knee, measured alone; null without `--each`.
    pub alone: Option<KneeInterval>,
    /// Condition that its part did not meet at the lowest rate that failed; null if it met all.
    pub failed: Option<String>,
    /// Its limiting stage at that rate, or without a schedule.
    pub stage: Option<String>,
    /// CPU seconds of the recorder per GB in the last soak, or in the unthrottled trial without one.
    pub cpu_seconds_per_gb: Option<f64>,
    /// Longest delay of the start of its source after the agreed time, seconds.
    pub start_delay_seconds_max: Option<f64>,
    /// Offset of its clock.
    pub clock: Option<ClockOffset>,
}

/// The controller's clock less that of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockOffset {
    /// Offset, ns.
    pub ns: i64,
    /// Largest error, ns.
    pub error_ns: u64,
}

/// A host that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostHost {
    /// Name.
    pub host: String,
    /// Number of the trial, from 1.
    pub trial: usize,
    /// Cause.
    pub why: String,
}

/// A trial on several recorders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetTrialResult {
    /// Purpose, for example "narrow" or "soak"; after the name of the host if it was tested alone.
    pub phase: String,
    /// Requested rate; null: unthrottled.
    pub asked_bytes_per_second: Option<f64>,
    /// Time for which events were sent, seconds.
    pub seconds: f64,
    /// Sum of the rates received.
    pub achieved_bytes_per_second: f64,
    /// Events lost, at the sources and later.
    pub lost_events: u64,
    /// Whether every part passed.
    pub passed: bool,
    /// First condition that failed, with the host.
    pub failed_condition: Option<String>,
    /// Messages between the controller and its hosts, bytes.
    pub control_bytes: u64,
    /// Parts of the recorders.
    pub parts: Vec<FleetTrialPart>,
}

/// A recorder's part of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetTrialPart {
    /// Name of the recorder.
    pub host: String,
    /// Rate received; null without a result.
    pub achieved_bytes_per_second: Option<f64>,
    /// Events lost; null without a result.
    pub lost_events: Option<u64>,
    /// First condition that failed, or why it has no result.
    pub failed: Option<String>,
    /// Start of its source after the agreed time, seconds.
    pub start_delay_seconds: Option<f64>,
    /// Offset of its clock.
    pub clock: Option<ClockOffset>,
}

/// Control traffic during trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlTraffic {
    /// Bytes of all messages.
    pub bytes: u64,
    /// Payload received in the same time, bytes.
    pub payload_bytes: u64,
}

impl ControlTraffic {
    /// Control traffic as a share of the payload; none without payload.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.payload_bytes > 0).then(|| self.bytes as f64 / self.payload_bytes as f64)
    }
}

impl FleetQualifySummary {
    /// Qualified over required rate.
    #[must_use]
    pub fn headroom(&self) -> Option<f64> {
        let required = self.required_bytes_per_second;
        self.qualified_bytes_per_second.filter(|_| required > 0.0).map(|qualified| qualified / required)
    }

    /// The last soak, if any.
    #[must_use]
    pub fn last_soak(&self) -> Option<&FleetTrialResult> {
        self.trials.iter().rfind(|trial| trial.phase == SOAK)
    }
}

impl Figures for FleetQualifySummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        let mut rate = |place: &str, what, value| figures.add(place, what, Quantity::BytesPerSecond, value);
        rate("", "knee", self.knee.map(|knee| knee.lower_bytes_per_second));
        rate("", "qualified", self.qualified_bytes_per_second);
        for host in &self.hosts {
            rate(&host.host, "share of the rate that held", host.held_bytes_per_second);
            rate(&host.host, "knee alone", host.alone.map(|knee| knee.lower_bytes_per_second));
        }
        for host in &self.hosts {
            figures.add(&host.host, "recorder", Quantity::CpuSecondsPerGb, host.cpu_seconds_per_gb);
        }
        let lost = self.last_soak().map(|soak| soak.lost_events as f64);
        figures.add("", "events, in the last soak", Quantity::Lost, lost);
        figures.done()
    }
}

#[cfg(test)]
#[path = "fleet_qualify_tests.rs"]
mod tests;
