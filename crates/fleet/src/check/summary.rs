//! Result of all hosts together.
use std::collections::BTreeMap;

use keepup_results::{FleetFinding, HostCheck};

use super::host::HostOutcome;
use super::rules::{self, Case};
use crate::clock::Offset;
use crate::file::FleetFile;
use crate::message::Role;

/// What the controller knows about the check of a host.
#[derive(Clone, Debug)]
pub struct HostEnd {
    /// Its outcome as JSON, or why it has none.
    pub outcome: Result<String, String>,
    /// Clock of the controller minus that of the host.
    pub clock: Option<Offset>,
}

/// Hosts and findings of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The hosts, in the order of the fleet file.
    pub hosts: Vec<HostCheck>,
    /// Findings, worst first.
    pub findings: Vec<FleetFinding>,
}

/// Judges the hosts of `file`; `ends` has one entry for each. `tool_version` is that of the controller.
#[must_use]
pub fn summary(file: &FleetFile, ends: &[HostEnd], tool_version: &str) -> Judged {
    let mut own = Vec::new();
    let mut hosts = Vec::with_capacity(ends.len());
    for (entry, end) in file.hosts.iter().zip(ends) {
        let parse = |text: &String| {
            serde_json::from_str::<HostOutcome>(text).map_err(|error| format!("malformed result: {error}"))
        };
        let mut host = HostCheck {
            host: entry.name.clone(),
            role: role(entry.role).to_owned(),
            needs: None,
            facts: None,
            failure: None,
            clock_offset_ns: end.clock.map(|clock| clock.ns),
            clock_error_ns: end.clock.map(|clock| clock.error_ns),
        };
        match end.outcome.as_ref().map_err(Clone::clone).and_then(parse) {
            Ok(outcome) => {
                (host.needs, host.facts) = (Some(outcome.needs), Some(outcome.facts));
                let of_host = |finding| FleetFinding { hosts: vec![entry.name.clone()], finding };
                own.extend(outcome.findings.into_iter().map(of_host));
            }
            Err(why) => host.failure = Some(why),
        }
        hosts.push(host);
    }
    let across = rules::judge(&Case { tool_version, hosts: &hosts });
    let mut findings = merged(across.into_iter().chain(own));
    findings.sort_by_key(|found| found.finding.severity);
    Judged { hosts, findings }
}

/// Combines findings that are the same on several hosts.
fn merged(all: impl Iterator<Item = FleetFinding>) -> Vec<FleetFinding> {
    let mut findings: Vec<FleetFinding> = Vec::new();
    let mut places: BTreeMap<(String, Option<String>, String), Vec<usize>> = BTreeMap::new();
    for found in all {
        let text = &found.finding;
        let places = places.entry((text.setting.clone(), text.value.clone(), text.why.clone())).or_default();
        match places.iter().find(|place| findings[**place].finding == found.finding) {
            Some(place) => findings[*place].hosts.extend(found.hosts),
            None => {
                places.push(findings.len());
                findings.push(found);
            }
        }
    }
    findings
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Recorder => "recorder",
        Role::Source => "source",
        Role::Spare => "spare",
        Role::Drain => "drain",
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
