//! Rules for network cards: link, slot, MTU, rings, queues, offloads, interrupts, NUMA nodes.
use keepup_measure::environment::Link;
use keepup_measure::settings::{CoreList, Interrupt};
use keepup_results::DoctorFinding;
use keepup_workload::doctor::Port;

use super::{Case, FAST, FindingExt, SLOW, Subject, either, rate, read};

/// Ethernet overhead per packet, bytes: header, checksum, preamble and gap.
const FRAME_BYTES: f64 = 38.0;
/// Jumbo frames, as recommended by detector manuals.
const JUMBO_MTU: u64 = 9000;
/// Maximum packet rate of one source on one core: 25 Gbit/s in jumbo frames, the kernel's limit
/// according to the author of spead2. Half of it counts as near.
const PACKETS_MAX: f64 = 350e3;
/// Time that a ring should bridge (our choice): cores usually wake up and finish other softirqs
/// well within a millisecond.
const RING_S_MIN: f64 = 1e-3;
const RING_S: f64 = 10e-3;
/// Payload share of a slot's traffic after headers and acknowledgements (our choice, near that of
/// 100 Gbit/s cards).
const SLOT_SHARE: f64 = 0.85;

const GUIDE: &str = "slsDetectorPackage documentation, Receiver PC Tuning Options";

/// Interfaces must be up.
pub(super) fn state(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(format!("{name}: state"), "Documentation/networking/operstates.rst");
        let found = match read(&port.interface.basics.state, &subject) {
            Ok(found) => found,
            Err(finding) => return *finding,
        };
        match found.as_str() {
            "down" | "lowerlayerdown" | "notpresent" | "dormant" => subject
                .harmful(found, "up")
                .because("no traffic: it is disabled, or the link has no signal")
                .command(format!("ip link set dev {name} up")),
            _ => subject.fine(found, "the link is up"),
        }
    };
    case.ports().map(judged).collect()
}

/// The link must carry payload and overhead.
pub(super) fn speed(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(name, port): (&String, &Port)| {
        let subject =
            Subject::new(format!("{name}: speed"), "Documentation/ABI/testing/sysfs-class-net, speed");
        let judged = |subject: Subject| {
            let mbit = *read(&port.interface.basics.speed_mbit, &subject)?;
            let mtu = *read(&port.interface.basics.mtu, &subject)? as f64;
            let payload = case.needs.payload_of_packet(mtu);
            let overhead = case.needs.headers() + FRAME_BYTES;
            let wanted = case.rate_of_port() * (payload + overhead) / payload;
            let carried = mbit as f64 * 1e6 / 8.0;
            let value = format!("{mbit} Mbit/s");
            if carried >= wanted {
                let share = 100.0 * wanted / carried;
                return Ok(subject.fine(value, format!("the stream uses {share:.0} % of it")));
            }
            let needed = format!("{:.0} Mbit/s or more", wanted * 8.0 / 1e6);
            Ok(subject.harmful(value, needed).because(format!(
                "the link is too slow for {} of payload with headers; use a faster card or several links \
                 (--interface once for each)",
                rate(case.rate_of_port())
            )))
        };
        either(judged(subject))
    };
    case.cards().map(judged).collect()
}

/// A PCI Express slot that is too narrow for the card.
pub(super) fn slot(case: &Case<'_>) -> Vec<DoctorFinding> {
    case.cards().filter_map(|(name, port)| narrow(name, &port.interface.link, case.rate_of_port())).collect()
}

/// Judges a PCI Express link by the required throughput; none without such a link.
pub(super) fn narrow(name: &str, link: &Link, wanted: f64) -> Option<DoctorFinding> {
    let (speed, lanes) = (*link.gigatransfers.value()?, *link.lanes.value()?);
    let (speed_max, lanes_max) = (*link.gigatransfers_max.value()?, *link.lanes_max.value()?);
    let carried = link.bytes_per_second()? * SLOT_SHARE;
    let subject = Subject::new(format!("{name}: PCI Express link"), "lspci(8): LnkSta and LnkCap");
    let describe = |speed: f64, lanes: u64| format!("{lanes} lanes of {speed} GT/s");
    let value = describe(speed, lanes);
    let wants = describe(speed_max, lanes_max);
    if carried < wanted {
        return Some(subject.harmful(value, wants).because(format!(
            "carries about {}, but {} are required; use another slot or change the firmware setting",
            rate(carried),
            rate(wanted)
        )));
    }
    let carries = format!("carries about {}", rate(carried));
    // Idle links may be slowed down to save power, so only the width indicates a wrong slot.
    Some(match lanes < lanes_max && carried < 2.0 * wanted {
        true => subject.look(value, wants).because(format!(
            "{carries}, less than the device supports: use a slot with more lanes if available"
        )),
        false => subject.fine(value, carries),
    })
}

/// Larger packets reduce the packet rate.
pub(super) fn mtu(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(
            format!("{name}: MTU"),
            "slsDetectorPackage documentation, Receiver PC Tuning Options; the author of spead2 in pangeo #6",
        );
        let judged = |subject: Subject| {
            let found = *read(&port.interface.basics.mtu, &subject)?;
            // The sender's packets are limited by the path MTU.
            let path_mtu = case.readings.route.as_ref().and_then(|route| {
                let same = route.interface.value() == Some(name);
                route.mtu.value().filter(|_| same)
            });
            let mtu = path_mtu.map_or(found, |route| (*route).min(found));
            let flows = f64::from(case.needs.connections);
            let packets = |mtu: u64| case.rate_of_port() / case.needs.payload_of_packet(mtu as f64) / flows;
            let (now, jumbo) = (packets(mtu), packets(JUMBO_MTU));
            let fine = |subject: Subject| subject.fine(found, format!("{now:.0} packets/s"));
            let limit = if case.needs.is_udp() { PACKETS_MAX } else { 2.0 * PACKETS_MAX };
            if now < limit / 2.0 {
                return Ok(fine(subject));
            }
            let why =
                format!("{now:.0} packets/s per source; one core handles about {PACKETS_MAX:.0} at most");
            let severity = match case.needs.is_udp() && now > limit {
                true => Subject::harmful,
                false => Subject::look,
            };
            if mtu >= JUMBO_MTU - 1000 || jumbo > 0.9 * now {
                return Ok(Subject::look(subject, found, "fewer packets").because(format!(
                    "{why}. Larger packets do not help: distribute the data over more sources"
                )));
            }
            Ok(severity(subject, found, JUMBO_MTU)
                .because(format!(
                    "{why}; an MTU of {JUMBO_MTU} reduces it to {jumbo:.0}. All switches and the detector \
                     must support it"
                ))
                .command(format!("ip link set dev {name} mtu {JUMBO_MTU}")))
        };
        either(judged(subject))
    };
    case.ports()
        .filter(|(_, port)| port.interface.basics.mtu.value().is_none_or(|mtu| *mtu > 0))
        .map(judged)
        .collect()
}

/// The receive ring buffers packets until the kernel reads them.
pub(super) fn ring(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.peak < SLOW {
        return Vec::new();
    }
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(format!("{name}: receive ring"), GUIDE);
        let judged = |subject: Subject| {
            let found = *read(&port.card.ring, &subject)?;
            let most = *read(&port.card.ring_max, &subject)?;
            let Some((_, packets)) = case.packets(port) else {
                return Err(Box::new(subject.not_judged("not readable: the MTU of the interface")));
            };
            let queues = port.interface.receive_queues.value().map_or(1, |queues| *queues).max(1);
            let flows = u64::from(case.needs.connections).min(queues);
            let seconds = f64::from(found) / (packets / flows as f64);
            let value = format!("{found} packets");
            let lasts = format!("holds {:.2} ms of packets", seconds * 1e3);
            let is_short = case.needs.is_udp() && seconds < RING_S_MIN;
            if found >= most && is_short {
                return Ok(subject
                    .look(value, "more")
                    .because(format!("{lasts}, the card's maximum: use larger packets or another card")));
            }
            if seconds >= RING_S || found >= most {
                return Ok(subject.fine(value, lasts));
            }
            let needed = (packets / flows as f64 * RING_S).ceil() as u32;
            let wanted = needed.checked_next_power_of_two().map_or(most, |wanted| wanted.min(most));
            let severity = if is_short { Subject::harmful } else { Subject::look };
            let lost = if case.needs.is_udp() { "lost" } else { "retransmitted" };
            Ok(severity(subject, value, format!("{wanted} packets"))
                .because(format!(
                    "{lasts} at {:.0} packets/s; packets that find it full are {lost}, and only the card \
                     counts them",
                    packets / flows as f64
                ))
                .command(format!("ethtool -G {name} rx {wanted}")))
        };
        either(judged(subject))
    };
    case.cards().map(judged).collect()
}

/// Several connections can be received on several cores.
pub(super) fn queues(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.connections < 2 || case.needs.peak < FAST {
        return Vec::new();
    }
    let judged = |(name, port): (&String, &Port)| {
        let subject =
            Subject::new(format!("{name}: receive queues"), "Documentation/networking/scaling.rst, RSS");
        let found = *port.interface.receive_queues.value()?;
        let most = u64::from(*port.card.queues_max.value()?);
        let cores = case.settings().processors.online.value().map_or(1, |cores| cores.0.len() as u64);
        let wanted = u64::from(case.needs.connections).min(most).min(cores);
        if found >= wanted || case.rate_of_port() / (found.max(1) as f64) < FAST {
            return Some(subject.fine(found, "no core is overloaded by receiving"));
        }
        let kind = if port.card.has_combined_queues.value() == Some(&false) { "rx" } else { "combined" };
        Some(
            subject
                .look(found, wanted)
                .because(format!(
                    "{} connections share {found} of {most} queues, and each queue is received by one core",
                    case.needs.connections
                ))
                .command(format!("ethtool -L {name} {kind} {wanted}")),
        )
    };
    case.cards().filter_map(judged).collect()
}

/// Without GRO each packet of a TCP stream passes through the kernel separately.
pub(super) fn gro(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.is_udp() || case.needs.peak < SLOW {
        return Vec::new();
    }
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(
            format!("{name}: generic-receive-offload"),
            "Documentation/networking/segmentation-offloads.rst; ethtool(8)",
        );
        match read(&port.card.gro, &subject) {
            Err(finding) => *finding,
            Ok(true) => subject.fine("on", "packets of a stream are coalesced before processing"),
            Ok(false) => {
                let harmful = case.needs.peak_of_connection() >= 2.0 * FAST;
                let severity = if harmful { Subject::harmful } else { Subject::look };
                severity(subject, "off", "on")
                    .because("each packet is processed separately, at several times the CPU cost")
                    .command(format!("ethtool -K {name} gro on"))
            }
        }
    };
    case.cards().map(judged).collect()
}

/// Software checksums cost a pass over all data.
pub(super) fn checksum(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(
            format!("{name}: rx-checksumming"),
            "Documentation/networking/checksum-offloads.rst; ethtool(8)",
        );
        match port.card.receive_checksum.value()? {
            true => Some(subject.fine("on", "the card verifies checksums")),
            false => Some(
                subject
                    .look("off", "on")
                    .because("the kernel reads all data once more to verify checksums")
                    .command(format!("ethtool -K {name} rx on")),
            ),
        }
    };
    case.cards().filter(|_| case.is_fast()).filter_map(judged).collect()
}

/// With flow control a full card pauses the sender instead of dropping packets.
pub(super) fn flow_control(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(format!("{name}: flow control"), GUIDE);
        let judged = |subject: Subject| {
            let receive = *read(&port.card.pause_receive, &subject)?;
            let send = *read(&port.card.pause_send, &subject)?;
            let on_off = |on: bool| if on { "on" } else { "off" };
            let value = format!("rx {}, tx {}", on_off(receive), on_off(send));
            Ok(match send {
                true => subject.fine(value, "a full card can pause the sender"),
                false => subject
                    .look(value, "rx on, tx on")
                    .because(
                        "a card with a full ring drops packets instead of pausing the switch or detector; \
                         leave it off if other traffic on the switch must not be paused",
                    )
                    .command(format!("ethtool -A {name} rx on tx on")),
            })
        };
        either(judged(subject))
    };
    let applies = case.needs.is_udp() && case.needs.peak >= SLOW;
    case.cards().filter(|_| applies).map(judged).collect()
}

/// Data interrupts with the cores that serve them.
fn served(port: &Port) -> impl Iterator<Item = (&Interrupt, &CoreList)> {
    port.interface.interrupts.iter().filter_map(|interrupt| Some((interrupt, interrupt.cores.as_ref()?)))
}

/// Command for several interrupts.
fn affinity(numbers: &[u64], cores: &str) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("for i in {}; do echo {cores} > /proc/irq/$i/smp_affinity_list; done", numbers.join(" "))
}

const LOCALITY: &str = "Documentation/core-api/irq/irq-affinity.rst; jive5ab flexbuf guide: loss is driven \
    by non-locality";

/// Interrupts on cores of another NUMA node fetch every packet across nodes.
pub(super) fn interrupt_node(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.node_count() < 2 || case.needs.peak < SLOW {
        return Vec::new();
    }
    let judged = |(name, port): (&String, &Port)| {
        let subject = Subject::new(format!("{name}: cores of its interrupts"), LOCALITY);
        let judged = |subject: Subject| {
            let local = read(&port.interface.local_cores, &subject)?;
            if served(port).next().is_none() {
                return Err(Box::new(subject.not_judged("not readable: no interrupt of the card is listed")));
            }
            let away: Vec<u64> = served(port)
                .filter(|(_, cores)| !cores.0.is_subset(&local.0))
                .map(|(interrupt, _)| interrupt.number)
                .collect();
            if away.is_empty() {
                return Ok(subject.fine(format!("within {local}"), "cores of the card's node"));
            }
            let severity =
                if case.needs.is_udp() && case.is_fast() { Subject::harmful } else { Subject::look };
            Ok(severity(subject, format!("{} outside of {local}", away.len()), format!("within {local}"))
                .because(
                    "every packet crosses NUMA nodes; stop irqbalance first, because it would move the \
                     interrupts again",
                )
                .command(affinity(&away, &local.to_string())))
        };
        either(judged(subject))
    };
    case.cards().map(judged).collect()
}

/// Several queues served by one core act like a single queue.
pub(super) fn interrupt_spread(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.connections < 2 || !case.is_fast() {
        return Vec::new();
    }
    let judged = |(name, port): (&String, &Port)| {
        let receives = |interrupt: &Interrupt| {
            let name = interrupt.name.to_ascii_lowercase();
            !["tx", "output"].iter().any(|sends| name.contains(sends)) || name.contains("rx")
        };
        let interrupts: Vec<_> = served(port).filter(|(interrupt, _)| receives(interrupt)).collect();
        let subject = Subject::new(format!("{name}: cores that receive"), LOCALITY);
        let (first, rest) = interrupts.split_first()?;
        if rest.is_empty() {
            return None;
        }
        if first.1.0.len() > 1 || rest.iter().any(|(_, cores)| cores != &first.1) {
            return Some(subject.fine("several", "queues are served by more than one core"));
        }
        let mut commands = Vec::new();
        let online = case.settings().processors.online.value()?;
        let local = port.interface.local_cores.value().unwrap_or(online);
        for ((interrupt, _), core) in interrupts.iter().zip(local.0.iter().cycle()) {
            commands.push(format!("echo {core} > /proc/irq/{}/smp_affinity_list", interrupt.number));
        }
        Some(
            subject
                .look(format!("only core {}", first.1), "one core per queue")
                .because(format!("one core serves the interrupts of {} queues", interrupts.len()))
                .command(commands.join("; ")),
        )
    };
    case.cards().filter_map(judged).collect()
}

/// Data received on one node and written on another crosses nodes twice.
pub(super) fn disk_node(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.node_count() < 2 || !case.is_fast() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (name, port) in case.cards() {
        let Some(node) = port.interface.node.value() else { continue };
        let volumes = case.settings().volumes.iter();
        for (disk, queue) in volumes.flat_map(|volume| &volume.queues) {
            let Some(other) = queue.node.value() else { continue };
            let setting = format!("{name} and {disk}: NUMA nodes");
            let subject = Subject::new(setting, "Documentation/admin-guide/mm/numaperf.rst; axboe/fio #141");
            let nodes = &case.settings().processors.nodes;
            let distance = nodes.get(node).and_then(|own| {
                let at = nodes.keys().position(|number| number == other)?;
                own.distances.value()?.get(at).copied()
            });
            let value = format!("{node} and {other}");
            findings.push(match node == other {
                true => subject.fine(value, "one node"),
                false => {
                    let distance = distance.map(|d| format!(" (distance {d}, own 10)")).unwrap_or_default();
                    let cores = nodes.get(node).and_then(|own| own.cores.value());
                    let finding = subject.look(value, "one node").because(format!(
                        "data crosses NUMA nodes{distance}; use another slot, or run the recorder on the \
                         node of the card"
                    ));
                    match cores {
                        Some(cores) => finding.command(format!("keepup record --cpus {cores} …")),
                        None => finding,
                    }
                }
            });
        }
    }
    findings
}
