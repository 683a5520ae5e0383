//! Rules for hosts: which take part, versions, link speeds, free space.
use std::collections::BTreeMap;

use keepup_results::format::bytes;
use keepup_results::{FleetFinding, HostCheck, HostFacts};

use super::{Case, Subject, is_source, with_command};

/// Free space of a volume for a stream without a known end, bytes: 10 s at 1 GB/s (our choice).
const FREE_BYTES_MIN: u64 = 10_000_000_000;
const MEGABIT: f64 = 1e6 / 8.0;

/// Every host must take part.
pub(super) fn joined(case: &Case<'_>) -> Vec<FleetFinding> {
    let absent = case.hosts.iter().filter_map(|host| Some((host, host.failure.as_ref()?)));
    let finding = |(host, why): (&HostCheck, &String)| {
        let subject = Subject { hosts: &[&host.host], setting: "agent", source: "the fleet file" };
        with_command(
            subject.harmful("not checked", "a member of the fleet", why.clone()),
            "keepup fleet up FILE   # shows what the agents say",
        )
    };
    absent.map(finding).collect()
}

/// All hosts and the controller should have one version.
pub(super) fn versions(case: &Case<'_>) -> Vec<FleetFinding> {
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (host, facts) in case.checked().filter(|(_, facts)| facts.tool_version != case.tool_version) {
        others.entry(&facts.tool_version).or_default().push(&host.host);
    }
    let setting = "version of keepup";
    let finding = |(version, hosts): (&&str, &Vec<&str>)| {
        let subject = Subject { hosts, setting, source: "our choice" };
        subject.look(
            version,
            format!("{}, as on the controller", case.tool_version),
            "results of different versions are not comparable; install one version on all hosts",
        )
    };
    if !others.is_empty() {
        return others.iter().map(finding).collect();
    }
    let hosts: Vec<&str> = case.checked().map(|(host, _)| host.host.as_str()).collect();
    let fine = Subject { hosts: &hosts, setting, source: "our choice" };
    let is_any = !hosts.is_empty();
    is_any.then(|| fine.fine(case.tool_version, "as on the controller")).into_iter().collect()
}

/// The links of the recorders together should carry what those of the sources can send.
pub(super) fn link_speeds(case: &Case<'_>) -> Vec<FleetFinding> {
    let of_role = |role: &str| -> Vec<(&HostCheck, &HostFacts)> {
        case.checked().filter(|(host, _)| host.role == role).collect()
    };
    let (sources, recorders) = (of_role("source"), of_role("recorder"));
    if sources.is_empty() || recorders.is_empty() {
        return Vec::new();
    }
    let all = || sources.iter().chain(&recorders);
    let (setting, source) = ("sum of link speeds", "Documentation/ABI/testing/sysfs-class-net, speed");
    let unknown: Vec<&str> =
        all().filter(|(_, facts)| speed_mbit(facts).is_none()).map(|(host, _)| host.host.as_str()).collect();
    if !unknown.is_empty() {
        let subject = Subject { hosts: &unknown, setting, source };
        return vec![subject.not_judged("the speed of the data interface is not known")];
    }
    let sum = |hosts: &[(&HostCheck, &HostFacts)]| -> u64 {
        hosts.iter().filter_map(|(_, facts)| speed_mbit(facts)).fold(0, u64::saturating_add)
    };
    let (sent, received) = (sum(&sources), sum(&recorders));
    let hosts: Vec<&str> = recorders.iter().map(|(host, _)| host.host.as_str()).collect();
    let subject = Subject { hosts: &hosts, setting, source };
    let text = |mbit: u64| format!("{} Gbit/s", mbit as f64 / 1e3);
    vec![match received < sent {
        true => subject.look(
            text(received),
            format!("{}, as of the sources", text(sent)),
            format!(
                "the sources can send more than the recorders can receive; more than {:.2} GB/s in all is \
                 lost or delayed",
                received as f64 * MEGABIT / 1e9
            ),
        ),
        false => subject.fine(text(received), format!("the sources send at most {}", text(sent))),
    }]
}

/// Speed of all data interfaces of a host together, Mbit/s; none if one is not known.
fn speed_mbit(facts: &HostFacts) -> Option<u64> {
    let speeds: Option<Vec<u64>> = facts.interfaces.iter().map(|interface| interface.speed_mbit).collect();
    speeds.filter(|speeds| !speeds.is_empty()).map(|speeds| speeds.into_iter().fold(0, u64::saturating_add))
}

/// Volumes that are nearly full, if no profile says how much is needed.
pub(super) fn space(case: &Case<'_>) -> Vec<FleetFinding> {
    let mut findings = Vec::new();
    for (host, facts) in case.checked().filter(|(host, _)| !is_source(host)) {
        let Some(needs) = host.needs.as_ref().filter(|needs| needs.profile.is_none()) else { continue };
        let rate = needs.bytes_per_second / facts.volumes.len().max(1) as f64;
        for volume in &facts.volumes {
            let setting = format!("{}: free space", volume.path);
            let subject = Subject { hosts: &[&host.host], setting: &setting, source: "our choice" };
            findings.push(match volume.free_bytes {
                None => subject.not_judged("not readable"),
                Some(free) if free < FREE_BYTES_MIN => subject.look(
                    bytes(free),
                    format!("{} or more", bytes(FREE_BYTES_MIN)),
                    format!(
                        "the volume is full after {:.1} s; a profile states how much a run needs",
                        free as f64 / rate
                    ),
                ),
                Some(free) => subject.fine(bytes(free), "enough to start"),
            });
        }
    }
    findings
}
