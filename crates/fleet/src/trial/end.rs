//! The end of a trial: results of the recorders, and hosts without a result.
use super::plan::{HostPlan, RecorderPlan};
use super::total::{FleetTrial, HostResult, Outcome};
use crate::clock::Offset;
use crate::controller::{PartEnd, Phase};
use crate::file::FleetFile;
use crate::message::HostId;

/// A trial that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialEnd {
    /// Results of the recorders.
    pub trial: FleetTrial,
    /// Hosts that did not finish their parts.
    pub missing: Vec<Missing>,
    /// Time from the first order to the end, seconds.
    pub elapsed_s: f64,
}

/// A host that did not finish its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The host.
    pub host: HostId,
    /// Its name.
    pub name: String,
    /// Cause.
    pub why: String,
    /// It does not answer any more, or not in time; otherwise it reported an error.
    pub is_lost: bool,
    /// Payload that it may have stored without reporting it, bytes: at most what its source was to send.
    pub unreported_bytes: u64,
}

/// Part of a host, and how it ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedPart<'a> {
    /// The host.
    pub host: HostId,
    /// Its part.
    pub plan: &'a HostPlan,
    /// How it ended.
    pub end: Option<&'a PartEnd>,
    /// Whether the trial was ended because of it: see [`Deadline`](super::Deadline).
    pub is_late: bool,
    /// The controller's clock less that of the host.
    pub clock: Option<Offset>,
}

impl TrialEnd {
    /// The end of a trial with these parts at the rate `asked`, bytes per second.
    #[must_use]
    pub fn new(
        file: &FleetFile,
        asked: Option<f64>,
        parts: &[EndedPart<'_>],
        control_bytes: u64,
        elapsed_s: f64,
    ) -> Self {
        let name = |host: HostId| file.hosts.get(host as usize).map_or("", |entry| &entry.name).to_owned();
        let (mut hosts, mut missing) = (Vec::new(), Vec::new());
        for part in parts {
            let (outcome, failure) = match (part.plan, part.end) {
                (HostPlan::Recorder(_), Some(PartEnd::Finished(text))) => match outcome(text) {
                    Ok(outcome) => (Some(outcome), None),
                    Err(why) => (None, Some((format!("malformed result: {why}"), false))),
                },
                (_, end) => (None, failure(end)),
            };
            // The trial was ended for it, so its result does not count; damage that it reports does.
            let late =
                (part.is_late && outcome.is_some()).then(|| ("it did not end in time".to_owned(), true));
            let failure = failure.or(late);
            if let Some((why, is_lost)) = &failure {
                missing.push(Missing {
                    host: part.host,
                    name: name(part.host),
                    why: why.clone(),
                    is_lost: *is_lost,
                    unreported_bytes: if outcome.is_some() { 0 } else { unreported_bytes(part) },
                });
            }
            let failed_drain = outcome.as_ref().and_then(|outcome| outcome.drain_failure.as_ref());
            let mut own_drain = None;
            if let Some(why) = failed_drain {
                let drain = drain_host(part, parts);
                own_drain = (drain == part.host).then(|| format!("its drain: {why}"));
                let why = format!("the drain of {}: {why}", name(part.host));
                if missing.iter().all(|other: &Missing| other.host != drain) {
                    missing.push(Missing {
                        host: drain,
                        name: name(drain),
                        why,
                        is_lost: false,
                        unreported_bytes: 0,
                    });
                }
            }
            if let HostPlan::Recorder(plan) = part.plan {
                hosts.push(HostResult {
                    host: name(part.host),
                    source: plan.source.clone(),
                    outcome,
                    failure: failure.map(|(why, _)| why).or(own_drain),
                    clock: part.clock,
                });
            }
        }
        Self { trial: FleetTrial::new(&file.name, asked, control_bytes, hosts), missing, elapsed_s }
    }

    /// Payload that parts without a result may have stored, bytes.
    #[must_use]
    pub fn unreported_bytes(&self) -> u64 {
        self.missing.iter().map(|missing| missing.unreported_bytes).fold(0, u64::saturating_add)
    }
}

/// The host that receives what the recorder of `part` drains: itself without a drain host.
fn drain_host(part: &EndedPart<'_>, parts: &[EndedPart<'_>]) -> HostId {
    let HostPlan::Recorder(RecorderPlan { drain: Some(drain), .. }) = part.plan else { return part.host };
    let receives = |other: &&EndedPart<'_>| match other.plan {
        HostPlan::Drain(plan) => plan.copies.iter().any(|copy| Some(copy.listen) == drain.to),
        HostPlan::Recorder(_) | HostPlan::Source(_) => false,
    };
    parts.iter().find(receives).map_or(part.host, |other| other.host)
}

/// The result of a recorder, checked.
fn outcome(text: &str) -> Result<Outcome, String> {
    let outcome: Outcome = serde_json::from_str(text).map_err(|error| error.to_string())?;
    outcome.check()?;
    Ok(outcome)
}

/// Payload that a part without a result may have stored, bytes. A host that did not start has stored nothing.
fn unreported_bytes(part: &EndedPart<'_>) -> u64 {
    match (part.plan, part.end) {
        (HostPlan::Source(_) | HostPlan::Drain(_), _) => 0,
        (_, Some(PartEnd::Absent | PartEnd::TimedOut(Phase::Preparing))) => 0,
        (HostPlan::Recorder(plan), _) if plan.volumes.is_empty() => 0,
        (HostPlan::Recorder(plan), _) => {
            let planned = plan.rate.map(|rate| rate * plan.seconds);
            planned.or(plan.bytes_max).unwrap_or_default() as u64
        }
    }
}

/// Why a host has no result, and whether it was lost.
fn failure(end: Option<&PartEnd>) -> Option<(String, bool)> {
    match end {
        Some(end) => Some((end.failure()?, !matches!(end, PartEnd::Failed(_)))),
        None => Some(("no result".to_owned(), false)),
    }
}

#[cfg(test)]
#[path = "end_tests.rs"]
mod tests;
