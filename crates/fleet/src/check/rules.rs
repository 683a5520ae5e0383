//! Rules across hosts: facts of all hosts in, findings out.
//!
//! Invariants: no I/O; each rule is a function in [`RULES`]; what could not be read is never reported as
//! fine.
mod clocks;
mod hosts;
mod paths;

use keepup_results::{DoctorFinding, DoctorSeverity, FleetFinding, HostCheck, HostFacts};

/// Input of a rule.
pub(super) struct Case<'a> {
    /// Version of keepup on the controller.
    pub(super) tool_version: &'a str,
    /// The hosts.
    pub(super) hosts: &'a [HostCheck],
}

type Rule = fn(&Case<'_>) -> Vec<FleetFinding>;

/// All rules, in the order of findings of equal severity.
const RULES: [Rule; 10] = [
    hosts::joined,
    paths::reachable,
    paths::measured,
    paths::passes,
    paths::interface_mtu,
    hosts::versions,
    hosts::link_speeds,
    hosts::space,
    clocks::synchronised,
    clocks::offsets,
];

/// Findings about several hosts, or about one as a part of the fleet.
pub(super) fn judge(case: &Case<'_>) -> Vec<FleetFinding> {
    RULES.iter().flat_map(|rule| rule(case)).collect()
}

impl<'a> Case<'a> {
    /// Hosts that were checked, with their facts.
    fn checked(&self) -> impl Iterator<Item = (&'a HostCheck, &'a HostFacts)> {
        self.hosts.iter().filter_map(|host| Some((host, host.facts.as_ref()?)))
    }
}

/// Whether a host sends streams.
fn is_source(host: &HostCheck) -> bool {
    host.role == "source"
}

/// Whether the paths of a host to the sources are measured.
fn records(host: &HostCheck) -> bool {
    ["recorder", "spare"].contains(&host.role.as_str())
}

/// Whether packets that do not arrive are lost data.
fn is_udp(host: &HostCheck) -> bool {
    host.needs.as_ref().is_none_or(|needs| matches!(needs.transport.as_str(), "udp" | "spead"))
}

/// Subject of a finding: hosts, setting and source of the rule.
struct Subject<'a> {
    hosts: &'a [&'a str],
    setting: &'a str,
    source: &'static str,
}

impl Subject<'_> {
    fn finding(
        &self,
        severity: DoctorSeverity,
        value: Option<String>,
        wanted: Option<String>,
        why: impl Into<String>,
    ) -> FleetFinding {
        let (setting, source) = (self.setting.to_owned(), self.source.to_owned());
        FleetFinding {
            hosts: self.hosts.iter().map(|host| (*host).to_owned()).collect(),
            finding: DoctorFinding {
                severity,
                setting,
                value,
                wanted,
                why: why.into(),
                source,
                command: None,
            },
        }
    }

    fn harmful(&self, value: impl ToString, wanted: impl ToString, why: impl Into<String>) -> FleetFinding {
        self.finding(DoctorSeverity::Harmful, Some(value.to_string()), Some(wanted.to_string()), why)
    }

    fn look(&self, value: impl ToString, wanted: impl ToString, why: impl Into<String>) -> FleetFinding {
        self.finding(DoctorSeverity::WorthALook, Some(value.to_string()), Some(wanted.to_string()), why)
    }

    fn not_judged(&self, why: impl Into<String>) -> FleetFinding {
        self.finding(DoctorSeverity::NotJudged, None, None, why)
    }

    fn fine(&self, value: impl ToString, why: impl Into<String>) -> FleetFinding {
        let value = value.to_string();
        self.finding(DoctorSeverity::Fine, Some(value.clone()), Some(value), why)
    }
}

/// Adds a command to a finding.
fn with_command(mut finding: FleetFinding, command: impl Into<String>) -> FleetFinding {
    finding.finding.command = Some(command.into());
    finding
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
