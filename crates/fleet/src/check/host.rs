//! Part of a host in a check.
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_plan::{Profile, ProfileError};
use keepup_qualify::doctor::{Needs, judge, judge_sender};
use keepup_results::{DoctorFinding, DoctorNeeds, DoctorSeverity, HostFacts, PathFacts};
use keepup_workload::doctor::{Scope, gather};
use serde::{Deserialize, Serialize};

use super::listener::Listener;
use super::packet::PathKey;
use super::plan::{CheckPlan, SourceAddress};
use super::{facts, path};
use crate::directories::Directories;
use crate::host::Done;
use crate::message::Role;
use crate::part::PartControl;

/// Paths measured at a time.
const PATHS_AT_A_TIME: usize = 8;

/// What the part of a host works with.
pub(super) struct Setting {
    pub(super) clock: Arc<dyn Clock>,
    /// Directories that may be judged.
    pub(super) directories: Directories,
    /// Of the packets between hosts.
    pub(super) key: PathKey,
}

/// What a host reports at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostOutcome {
    /// Requirements that it was judged for.
    pub needs: DoctorNeeds,
    /// Its facts.
    pub facts: HostFacts,
    /// Findings of `keepup doctor`.
    pub findings: Vec<DoctorFinding>,
}

/// Checks the host; returns the [`HostOutcome`] as JSON. A source then listens until the part is to end; a
/// recorder waits until all sources listen, and measures the paths to them.
pub(super) fn check(plan: &CheckPlan, setting: &Setting, control: &PartControl) -> Result<String, String> {
    let listener = plan.listen.as_ref().map(|listen| Listener::bind(listen, setting.key.clone()));
    // Nobody uses the address of a recorder in a check.
    let address = Some((Ipv4Addr::UNSPECIFIED, 0).into());
    control.report(Done::Prepared { run: control.run, address });
    let mut outcome = judged(plan, setting)?;
    match listener {
        Some(Ok(listener)) => listener.serve(control, &*setting.clock),
        Some(Err(why)) => outcome.findings.insert(0, cannot_listen(plan, why)),
        None if control.wait().is_some() => {
            outcome.facts.paths = paths(&plan.sources, setting, control);
        }
        None => {}
    }
    serde_json::to_string(&outcome).map_err(|error| format!("cannot write the result: {error}"))
}

/// Facts and findings without other hosts.
fn judged(plan: &CheckPlan, setting: &Setting) -> Result<HostOutcome, String> {
    let volumes = plan.volumes.iter().map(|volume| setting.directories.check(volume));
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let needs = needs(plan)?;
    let root = Path::new("/");
    let peers: Vec<IpAddr> = plan.sources.iter().filter_map(address).collect();
    let interfaces = facts::data_interfaces(root, plan.data.filter(|_| !plan.role.records()), &peers);
    let scope =
        Scope { volumes: volumes.clone(), interfaces: interfaces.iter().cloned().collect(), peer: None };
    let readings = gather(&scope, root).map_err(|error| error.to_string())?;
    let findings = match plan.role {
        Role::Source => judge_sender(&readings, &needs),
        Role::Recorder | Role::Spare | Role::Drain => judge(&readings, &needs),
    };
    let interfaces = readings.interfaces.keys().cloned().collect();
    let facts = facts::collect(root, &volumes, &interfaces);
    Ok(HostOutcome { needs: needs.summary(), facts, findings })
}

/// The needs of a plan, which comes from the network.
fn needs(plan: &CheckPlan) -> Result<Needs, String> {
    let stall = Duration::from_nanos(plan.stall_ns);
    let Some(toml) = &plan.profile else { return Ok(Needs::of_no_one(stall)) };
    // A share is complete: no other profile is read for it.
    let extended = |name: &str| Err(ProfileError::Unknown { name: name.to_owned(), close: Vec::new() });
    let profile: Profile = keepup_plan::parse(toml, "the plan of the controller", &extended)
        .map_err(|error| error.to_string())?;
    Ok(Needs::of(&profile, stall))
}

fn address(source: &SourceAddress) -> Option<IpAddr> {
    Some(source.address.parse::<Endpoint>().ok()?.address().ip())
}

/// Paths to all sources, some at a time.
fn paths(sources: &[SourceAddress], setting: &Setting, control: &PartControl) -> Vec<PathFacts> {
    let mut paths = Vec::with_capacity(sources.len());
    for some in sources.chunks(PATHS_AT_A_TIME) {
        if control.is_stopped() {
            break;
        }
        std::thread::scope(|scope| {
            let measure = |source| scope.spawn(move || path::measure(source, &setting.key, &*setting.clock));
            let threads: Vec<_> = some.iter().map(measure).collect();
            // A thread that panicked has no path; the process reports the panic.
            paths.extend(threads.into_iter().filter_map(|thread| thread.join().ok()));
        });
    }
    paths
}

fn cannot_listen(plan: &CheckPlan, why: String) -> DoctorFinding {
    DoctorFinding {
        severity: DoctorSeverity::Harmful,
        setting: "data port".to_owned(),
        value: Some("cannot listen".to_owned()),
        wanted: plan.listen.clone(),
        why: format!("{why}; recorders cannot reach this source"),
        source: "bind(2)".to_owned(),
        command: Some("ip address; ss -tulnp".to_owned()),
    }
}
