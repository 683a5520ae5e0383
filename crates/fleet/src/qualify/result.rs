//! Result of the qualification of a fleet.
use keepup_results::{FailedRate, KneeInterval, Soak, Verdict};
use serde::Serialize;

use super::bottleneck::FleetBottleneck;
use crate::clock::Offset;

/// Largest share of control traffic in the payload without a warning.
pub(super) const CONTROL_SHARE_MAX: f64 = 0.001;

/// Result of the qualification of a fleet. Rates are bytes per second, of all streams together if not stated
/// otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetQualification {
    /// Name of the fleet.
    pub fleet: String,
    /// Name of the detector profile.
    pub profile: String,
    /// Number of streams.
    pub streams: u32,
    /// Verdict.
    pub verdict: Verdict,
    /// Reasons for the verdict, most important first.
    pub verdict_reasons: Vec<String>,
    /// Required rate of the profile.
    pub required_bytes_per_second: f64,
    /// Required headroom.
    pub headroom_wanted: f64,
    /// Bounds of the highest rate found with no loss and no growing backlog on any recorder.
    pub knee: Option<KneeInterval>,
    /// Rate sustained for the whole soak.
    pub qualified_bytes_per_second: Option<f64>,
    /// Lowest rate above the qualified one that failed because of the machines.
    pub failed_above: Option<FailedRate>,
    /// The soak that held.
    pub soak: Option<Soak>,
    /// What limits the rate.
    pub bottleneck: Option<FleetBottleneck>,
    /// The recorders.
    pub hosts: Vec<QualifiedHost>,
    /// Hosts that were lost; the search started again without them.
    pub lost: Vec<LostHost>,
    /// All trials in order.
    pub trials: Vec<FleetTrialResult>,
    /// Messages between the controller and its hosts during the trials.
    pub control: ControlTraffic,
    /// Payload stored on the volumes by all trials, bytes; of a part without a result, the most that it may
    /// have stored.
    pub bytes_written: u64,
    /// Limits of validity, one sentence each.
    pub limits: Vec<String>,
    /// Whether the qualification was interrupted.
    pub interrupted: bool,
    /// Whether the sources prevented an answer.
    pub generator_limited: bool,
}

/// A recorder of a qualified fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QualifiedHost {
    /// Name.
    pub host: String,
    /// Its source.
    pub source: String,
    /// Number of its streams.
    pub streams: u32,
    /// Its share of the highest rate that held.
    pub held_bytes_per_second: Option<f64>,
    /// Bounds of its own knee, measured alone; none without `--each`.
    pub alone: Option<KneeInterval>,
    /// Condition that its part did not meet at the lowest rate that failed; none if it met all.
    pub failed: Option<String>,
    /// Its limiting stage at that rate, or without a schedule.
    pub stage: Option<String>,
    /// Longest delay of the start of its source after the agreed time, seconds.
    pub start_delay_seconds_max: Option<f64>,
    /// The controller's clock less its own, and the largest error, ns.
    pub clock: Option<Offset>,
}

/// A host that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostHost {
    /// Name.
    pub host: String,
    /// Number of the trial, from 1.
    pub trial: usize,
    /// Cause.
    pub why: String,
}

/// A trial on several recorders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetTrialResult {
    /// Purpose.
    pub phase: String,
    /// Requested rate; none: unthrottled.
    pub asked_bytes_per_second: Option<f64>,
    /// Time for which load was offered, seconds.
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetTrialPart {
    /// Name of the recorder.
    pub host: String,
    /// Rate received; none without a result.
    pub achieved_bytes_per_second: Option<f64>,
    /// Events lost; none without a result.
    pub lost_events: Option<u64>,
    /// First condition that failed, or why it has no result.
    pub failed: Option<String>,
    /// Start of its source after the agreed time, seconds.
    pub start_delay_seconds: Option<f64>,
    /// The controller's clock less its own, and the largest error, ns.
    pub clock: Option<Offset>,
}

/// Control traffic during trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
