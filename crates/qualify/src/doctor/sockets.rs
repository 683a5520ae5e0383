//! Rules for socket limits, the cores' receive work, and the route to the sender.
use keepup_results::DoctorFinding;

use super::{Case, FindingExt, SLOW, Subject, either, rate, read, size, whole_mib};

/// Minimum kernel memory per packet: a 2 KiB buffer and its metadata (linux/skbuff.h).
const PACKET_BYTES_MIN: f64 = 2304.0;
/// Round-trip time that a TCP window must cover (our choice): ten times that of one or two
/// switches.
const ROUND_TRIP_S: f64 = 1e-3;
/// Time for which a core may be busy elsewhere while packets queue (our choice).
const CORE_BUSY_S: f64 = 10e-3;
/// Largest IP packet, bytes.
const IP_PACKET_MAX: u64 = 65_535;
/// Share of receive polls cut short above which it is reported (our choice).
const SQUEEZED_SHARE: f64 = 1e-3;

/// Buffer size to request from a socket for a stall. The kernel doubles it for its metadata (socket(7)),
/// which is not enough for small packets.
fn stall_bytes(case: &Case<'_>, peak: f64) -> f64 {
    let mtu = case.ports().filter_map(|(_, port)| port.interface.basics.mtu.value()).min();
    let payload = case.needs.payload_of_packet(mtu.map_or(1500.0, |mtu| *mtu as f64));
    let counted = (PACKET_BYTES_MIN / 2.0 / payload).max(1.0);
    peak * counted * case.needs.stall.as_secs_f64()
}

/// Datagram sockets buffer packets while their reader stalls.
pub(super) fn udp_buffer(case: &Case<'_>) -> Vec<DoctorFinding> {
    if !case.needs.is_udp() {
        return Vec::new();
    }
    let subject = Subject::new(
        "net.core.rmem_max",
        "socket(7), SO_RCVBUF; slsDetectorPackage documentation, Receiver PC Tuning Options",
    );
    let judged = |subject: Subject| {
        let found = *read(&case.settings().sockets.rmem_max, &subject)?;
        let peak = case.needs.peak_of_connection();
        let needed = stall_bytes(case, peak);
        let wanted = whole_mib(needed);
        let (stall, milliseconds) = (rate(peak), case.needs.stall.as_millis());
        if found as f64 >= needed {
            return Ok(subject.fine(size(found), format!("holds a stall of {milliseconds} ms at {stall}")));
        }
        let held = case.needs.stall.as_secs_f64() * 1e3 * found as f64 / needed;
        Ok(subject
            .harmful(size(found), format!("{} or more", size(wanted)))
            .because(format!(
                "datagrams that arrive at a full socket buffer are dropped; at {stall} per socket the \
                 largest buffer allowed bridges {held:.1} ms, and a stall may take {milliseconds} ms"
            ))
            .command(format!("sysctl -w net.core.rmem_max={wanted}")))
    };
    vec![either(judged(subject))]
}

/// All datagram sockets together are limited too.
pub(super) fn udp_memory(case: &Case<'_>) -> Vec<DoctorFinding> {
    if !case.needs.is_udp() {
        return Vec::new();
    }
    let subject = Subject::new("net.ipv4.udp_mem", "Documentation/networking/ip-sysctl.rst, udp_mem");
    let judged = |subject: Subject| {
        let [low, pressure, most] = *read(&case.settings().sockets.udp_mem, &subject)?;
        let page = case.settings().memory.page_bytes;
        let wanted = (2 * whole_mib(stall_bytes(case, case.needs.peak))).div_ceil(page);
        let value = format!("{low} {pressure} {most}");
        if most >= wanted {
            return Ok(subject.fine(value, "in pages; enough for a stall of all sockets"));
        }
        Ok(subject
            .harmful(value, format!("maximum {wanted} pages or more"))
            .because(format!(
                "all UDP sockets together may use {most} pages of {page} bytes; a stall of {} ms at {} \
                 requires {wanted}",
                case.needs.stall.as_millis(),
                rate(case.needs.peak)
            ))
            .command(format!(
                "sysctl -w net.ipv4.udp_mem='{} {} {wanted}'",
                low.max(wanted / 2),
                pressure.max(wanted / 4 * 3)
            )))
    };
    vec![either(judged(subject))]
}

/// A TCP window must cover the bandwidth-delay product.
pub(super) fn tcp_buffer(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.is_udp() || !case.needs.is_networked() {
        return Vec::new();
    }
    let subject = Subject::new(
        "net.ipv4.tcp_rmem",
        "Documentation/networking/ip-sysctl.rst, tcp_rmem; fasterdata.es.net, Linux Tuning",
    );
    let judged = |subject: Subject| {
        let [least, first, most] = *read(&case.settings().sockets.tcp_rmem, &subject)?;
        let in_flight = case.needs.peak_of_connection() * ROUND_TRIP_S;
        // Half of the buffer is used for kernel metadata.
        let wanted = whole_mib(2.0 * in_flight);
        let value = format!("{least} {first} {most}");
        if most as f64 >= 2.0 * in_flight {
            return Ok(subject.fine(value, "the window covers a round trip of 1 ms"));
        }
        let severity = if (most as f64) < in_flight { Subject::harmful } else { Subject::look };
        Ok(severity(subject, value, format!("maximum {} or more", size(wanted)))
            .because(format!(
                "a connection of {} has {in_flight:.0} bytes in flight during a round trip of 1 ms, and \
                 half of the buffer is kernel overhead; a smaller window throttles the source",
                rate(case.needs.peak_of_connection())
            ))
            .command(format!("sysctl -w net.ipv4.tcp_rmem='{least} {first} {wanted}'")))
    };
    vec![either(judged(subject))]
}

/// Backlog queue of a core, for packets handed over by another core.
pub(super) fn backlog(case: &Case<'_>) -> Vec<DoctorFinding> {
    let subject = Subject::new(
        "net.core.netdev_max_backlog",
        "Documentation/admin-guide/sysctl/net.rst, netdev_max_backlog; slsDetectorPackage documentation, \
         Receiver PC Tuning Options",
    );
    // Cards with NAPI use it only if packets are distributed by software.
    let queued = |(_, port): &(_, &super::Port)| {
        !port.interface.is_card || port.interface.is_spread.value() == Some(&true)
    };
    let packets = case.ports().filter(queued).filter_map(|(_, port)| Some(case.packets(port)?.1));
    let Some(packets) = packets.reduce(f64::max) else { return Vec::new() };
    let judged = |subject: Subject| {
        let found = *read(&case.settings().sockets.netdev_max_backlog, &subject)?;
        let wanted = ((packets * CORE_BUSY_S / 1000.0).ceil() * 1000.0) as u64;
        if found >= wanted {
            return Ok(subject.fine(found, format!("holds 10 ms of packets at {packets:.0} packets/s")));
        }
        Ok(subject
            .look(found, format!("{wanted} or more"))
            .because(format!(
                "packets steered to another core by software wait in this queue and are dropped when it is \
                 full; at {packets:.0} packets/s it must hold 10 ms"
            ))
            .command(format!("sysctl -w net.core.netdev_max_backlog={wanted}")))
    };
    vec![either(judged(subject))]
}

/// Receive budget of a core; reported only if it was exhausted before.
pub(super) fn budget(case: &Case<'_>) -> Vec<DoctorFinding> {
    if !case.needs.is_networked() || case.needs.peak < SLOW {
        return Vec::new();
    }
    let subject = Subject::new(
        "net.core.netdev_budget",
        "Documentation/admin-guide/sysctl/net.rst, netdev_budget; /proc/net/softnet_stat, third column",
    );
    let judged = |subject: Subject| {
        let sockets = &case.settings().sockets;
        let found = *read(&sockets.netdev_budget, &subject)?;
        let time = *read(&sockets.netdev_budget_usecs, &subject)?;
        let done = read(&sockets.softnet, &subject)?;
        let share = done.squeezed as f64 / done.processed.max(1) as f64;
        if share < SQUEEZED_SHARE {
            return Ok(subject.fine(
                format!("{found} packets, {time} µs"),
                format!("{} receive polls cut short since boot", done.squeezed),
            ));
        }
        Ok(subject
            .look(format!("{found} packets, {time} µs"), format!("{} packets, {} µs", 2 * found, 2 * time))
            .because(format!(
                "{} receive polls ended with packets left since boot, one per {:.0} packets",
                done.squeezed,
                1.0 / share
            ))
            .command(format!(
                "sysctl -w net.core.netdev_budget={} net.core.netdev_budget_usecs={}",
                2 * found,
                2 * time
            )))
    };
    vec![either(judged(subject))]
}

/// MTU on the route to the sender.
pub(super) fn route(case: &Case<'_>) -> Vec<DoctorFinding> {
    let Some(route) = case.readings.route.as_ref().filter(|_| case.needs.is_networked()) else {
        return Vec::new();
    };
    let subject = Subject::new(format!("MTU on the route to {}", route.peer), "ip(7), IP_MTU");
    let judged = |subject: Subject| {
        let found = *read(&route.mtu, &subject)?;
        let name = read(&route.interface, &subject)?;
        let mtu = case.readings.interfaces.get(name).and_then(|port| port.interface.basics.mtu.value());
        // The kernel caps the reported value at the largest IP packet, one below the loopback
        // MTU.
        let mtu = mtu.map(|mtu| (*mtu).min(IP_PACKET_MAX));
        match mtu {
            Some(mtu) if found < mtu => {
                Ok(subject.look(found, format!("{mtu}, the MTU of {name}")).because(format!(
                    "the path MTU is smaller than that of the interface: larger datagrams are fragmented or \
                     dropped; check with `ip route get {}`",
                    route.peer
                )))
            }
            _ => Ok(subject.fine(found, format!("the MTU of {name}; the path to the sender was not probed"))),
        }
    };
    let mut findings = vec![either(judged(subject))];
    let other = route.interface.value().filter(|name| !case.readings.interfaces.contains_key(*name));
    findings.extend(other.map(|name| {
        Subject::new(format!("interface on the route to {}", route.peer), "ip-route(8)")
            .look(name, "one of those named with --interface")
            .because("replies to the sender use an interface that was not checked")
            .command(format!("ip route get {}", route.peer))
    }));
    findings
}
