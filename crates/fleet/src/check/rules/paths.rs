//! Rules for the paths from recorders to sources.
use keepup_results::{FleetFinding, HostCheck, PathFacts};

use super::{Case, Subject, is_source, is_udp, records, with_command};
use crate::check::plan::SOURCES_MAX;

/// Largest IP packet, bytes: the loopback interface has a larger MTU.
const PACKET_MAX: u64 = 65_535;

/// All paths, with their recorders.
fn paths<'a>(case: &Case<'a>) -> impl Iterator<Item = (&'a HostCheck, &'a PathFacts)> {
    case.checked().flat_map(|(host, facts)| facts.paths.iter().map(move |path| (host, path)))
}

/// Address without the port, for a command.
fn ip(path: &PathFacts) -> &str {
    let host = path.address.rsplit_once(':').map_or(path.address.as_str(), |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Command that sends packets of `bytes` in one piece.
fn ping(path: &PathFacts, bytes: u64) -> String {
    let address = ip(path);
    // In front of the payload: headers of IP and ICMP.
    let headers = if address.contains(':') { 48 } else { 28 };
    format!("ping -M do -c 3 -s {} {address}", bytes.saturating_sub(headers))
}

/// A recorder must be able to connect to every source.
pub(super) fn reachable(case: &Case<'_>) -> Vec<FleetFinding> {
    let finding = |(host, path): (&HostCheck, &PathFacts)| {
        let setting = format!("connection to {}", path.source);
        let subject = Subject { hosts: &[&host.host], setting: &setting, source: "connect(2)" };
        let Some(why) = &path.failure else {
            return subject.fine(path.address.clone(), "a TCP connection was possible");
        };
        let port = path.address.rsplit_once(':').map_or("", |(_, port)| port);
        with_command(
            subject.harmful(
                "not possible",
                path.address.clone(),
                format!(
                    "{why}; the recorder gets no data from this source. Check `data` of the source in the \
                     fleet file, the route, and a firewall for TCP port {port}"
                ),
            ),
            format!("ping -c 3 {}", ip(path)),
        )
    };
    paths(case).map(finding).collect()
}

/// Every path of the plan must have been measured. It was not if the check was ended before, or did not start
/// because there was no source.
pub(super) fn measured(case: &Case<'_>) -> Vec<FleetFinding> {
    let planned = || case.hosts.iter().filter(|host| is_source(host)).take(SOURCES_MAX);
    let recorders = case.checked().filter(|(host, _)| records(host));
    let open = recorders.flat_map(|(host, facts)| {
        let is_measured = |source: &HostCheck| facts.paths.iter().any(|path| path.source == source.host);
        planned().filter(move |source| !is_measured(source)).map(move |source| (host, source))
    });
    let finding = |(host, source): (&HostCheck, &HostCheck)| {
        let setting = format!("connection to {}", source.host);
        let subject = Subject { hosts: &[&host.host], setting: &setting, source: "connect(2)" };
        subject.not_judged("the path was not measured before the check ended")
    };
    open.map(finding).collect()
}

/// Packets of the MTU must pass the switches between a source and its recorder.
pub(super) fn passes(case: &Case<'_>) -> Vec<FleetFinding> {
    let finding = |(host, path): (&HostCheck, &PathFacts)| {
        let setting = format!("MTU of the path to {}", path.source);
        let source = "ip(7), IP_MTU_DISCOVER; RFC 2923, section 2.1";
        let subject = Subject { hosts: &[&host.host], setting: &setting, source };
        let (Some(mtu), Some(source_mtu)) = (path.mtu, path.source_mtu) else {
            return subject.not_judged(
                "the source did not answer UDP packets on its data port; a firewall may drop them",
            );
        };
        let wanted = mtu.min(source_mtu).min(PACKET_MAX);
        let [there, back] = [path.to_source_bytes, path.from_source_bytes].map(Option::unwrap_or_default);
        let (least, direction) = match (there < wanted, back < wanted) {
            (false, false) => {
                let why = "packets of this size arrive in one piece in both directions";
                return subject.fine(format!("{wanted} bytes"), why);
            }
            (true, false) => (there, "to the source"),
            (false, true) => (back, "to the recorder"),
            (true, true) => (there.min(back), "in either direction"),
        };
        let why = format!(
            "both hosts may send packets of {wanted} bytes, but none of these arrived {direction}; a switch \
             or router on the way carries less. Larger UDP packets are lost, and TCP connections hang if \
             ICMP is filtered. Set the MTU of the switches, or {least} on both hosts"
        );
        with_command(
            subject.harmful(format!("{least} bytes"), format!("{wanted} bytes"), why),
            ping(path, wanted),
        )
    };
    let open = paths(case).filter(|(_, path)| path.failure.is_none());
    open.map(finding).collect()
}

/// A source and its recorder should have the same MTU.
pub(super) fn interface_mtu(case: &Case<'_>) -> Vec<FleetFinding> {
    let finding = |(host, path): (&HostCheck, &PathFacts)| {
        let (mtu, source_mtu) = (path.mtu?, path.source_mtu?);
        let setting = format!("MTU towards {}", path.source);
        let hosts = [host.host.as_str(), path.source.as_str()];
        let subject = Subject { hosts: &hosts[..1], setting: &setting, source: "ip-link(8), mtu; RFC 1191" };
        let device = path.interface.as_deref().unwrap_or("INTERFACE");
        if mtu == source_mtu {
            return Some(subject.fine(mtu, "as at the source"));
        }
        let wanted = format!("{source_mtu}, as at {}", path.source);
        if mtu > source_mtu {
            let why = format!(
                "the source sends packets of {source_mtu} bytes; larger ones cost less per byte. Raise the \
                 MTU of the source, or set the same on both hosts"
            );
            let subject = Subject { hosts: &hosts, ..subject };
            return Some(subject.look(mtu, wanted, why));
        }
        let command = format!("ip link set dev {device} mtu {source_mtu}   # on {}", host.host);
        Some(with_command(
            match is_udp(host) {
                true => subject.harmful(
                    mtu,
                    wanted,
                    format!("UDP packets of more than {mtu} bytes from the source are dropped on the way"),
                ),
                false => subject.look(
                    mtu,
                    wanted,
                    format!("TCP agrees on {mtu} bytes; larger packets cost less per byte"),
                ),
            },
            command,
        ))
    };
    paths(case).filter(|(_, path)| path.failure.is_none()).filter_map(finding).collect()
}
