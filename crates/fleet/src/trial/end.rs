//! The end of a trial: results of the recorders, and hosts without a result.
use super::plan::HostPlan;
use super::total::{FleetTrial, HostResult, Outcome};
use crate::clock::Offset;
use crate::controller::PartEnd;
use crate::file::FleetFile;
use crate::message::HostId;

/// A trial that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialEnd {
    /// Results of the recorders.
    pub trial: FleetTrial,
    /// Recorders and sources that did not finish their parts.
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
    /// It does not answer any more; otherwise it reported an error.
    pub is_lost: bool,
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
                (HostPlan::Recorder(_), Some(PartEnd::Finished(text))) => {
                    match serde_json::from_str::<Outcome>(text) {
                        Ok(outcome) => (Some(outcome), None),
                        Err(error) => (None, Some((format!("malformed result: {error}"), false))),
                    }
                }
                (_, end) => (None, failure(end)),
            };
            if let Some((why, is_lost)) = &failure {
                let (why, is_lost) = (why.clone(), *is_lost);
                missing.push(Missing { host: part.host, name: name(part.host), why, is_lost });
            }
            if let HostPlan::Recorder(plan) = part.plan {
                hosts.push(HostResult {
                    host: name(part.host),
                    source: plan.source.clone(),
                    outcome,
                    failure: failure.map(|(why, _)| why),
                    clock: part.clock,
                });
            }
        }
        Self { trial: FleetTrial::new(&file.name, asked, control_bytes, hosts), missing, elapsed_s }
    }
}

/// Why a host has no result, and whether it was lost.
fn failure(end: Option<&PartEnd>) -> Option<(String, bool)> {
    match end {
        Some(PartEnd::Finished(_)) => None,
        Some(PartEnd::Failed(why)) => Some((why.clone(), false)),
        Some(PartEnd::Absent) => Some(("it did not join the fleet".to_owned(), true)),
        Some(PartEnd::Lost) => Some(("the host was lost".to_owned(), true)),
        Some(PartEnd::TimedOut(phase)) => Some((format!("it timed out while {phase}"), true)),
        None => Some(("no result".to_owned(), false)),
    }
}
