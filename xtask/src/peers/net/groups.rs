//! Groups of `peers net` with their claims. The goals are the project's budgets for network tests.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::ends::Safe;
use super::programs::{iperf3, keepup, nuttcp};
use super::wire::Wire;
use crate::peers::claims::{Goal, ratio};
use crate::peers::contestant::{Contestant, Figure};
use crate::peers::group::Group;
use crate::peers::runner::Work;

/// Seconds of a run, and of a trial at one rate.
const RUN_SECONDS: u64 = 4;
const TRIAL_SECONDS: u64 = 1;
/// Receive buffer of iperf3: the most that most systems allow without root.
const IPERF3_BUFFER: &str = "4M";

/// Names of keepup, of a keepup variant or second peer, and of iperf3.
type Names = [&'static str; 3];

/// All groups. Those over a cable are skipped without one.
pub(super) fn all(program: &Path, cable: &Result<Rc<Wire>, String>) -> Vec<Group> {
    let loopback = Rc::new(Wire::Loopback);
    let (wire, skipped) = match cable {
        Ok(wire) => (Rc::clone(wire), None),
        Err(why) => (Rc::clone(&loopback), Some(format!("no cable: {why}"))),
    };
    let tcp = |name, title, wire, flows, names| tcp((name, title), program, wire, flows, names);
    let safe = |name, title, wire, names| safe((name, title), program, wire, names);
    let over_loopback = vec![
        tcp(
            "tcp-loopback-1",
            "TCP over loopback, 1 flow",
            &loopback,
            1,
            ["keepup-l1", "nuttcp-l1", "iperf3-l1"],
        ),
        tcp(
            "tcp-loopback-4",
            "TCP over loopback, 4 flows",
            &loopback,
            4,
            ["keepup-l4", "nuttcp-l4", "iperf3-l4"],
        ),
        small(program, &loopback),
        receiving(program, &loopback),
        safe(
            "udp-safe-loopback",
            "UDP of 1400 B without loss, loopback",
            &loopback,
            ["trains-loopback", "batch-loopback", "iperf3-loopback"],
        ),
    ];
    let over_cable = vec![
        tcp("tcp-cable-1", "TCP over a cable, 1 flow", &wire, 1, ["keepup-c1", "nuttcp-c1", "iperf3-c1"]),
        tcp("tcp-cable-4", "TCP over a cable, 4 flows", &wire, 4, ["keepup-c4", "nuttcp-c4", "iperf3-c4"]),
        safe(
            "udp-safe-cable",
            "UDP of 1400 B without loss, cable",
            &wire,
            ["trains-cable", "batch-cable", "iperf3-cable"],
        ),
    ];
    let over_cable = over_cable.into_iter().map(|group| Group { skipped: skipped.clone(), ..group });
    over_loopback.into_iter().chain(over_cable).collect()
}

fn group(name: &'static str, title: &'static str, contestants: Vec<Box<dyn Contestant>>) -> Group {
    let work = Work { bytes: 0, time: Duration::from_secs(RUN_SECONDS) };
    Group { work, ..Group::plain(name, title, vec![Figure::Rate, Figure::Cpu], contestants) }
}

fn tcp(
    (name, title): (&'static str, &'static str),
    program: &Path,
    wire: &Rc<Wire>,
    flows: u32,
    [ours, other, peer]: Names,
) -> Group {
    let number = flows.to_string();
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(keepup(program, ours, wire, "tcp", &["--flows", &number], RUN_SECONDS)),
        Box::new(iperf3(peer, wire, &format!("-P {flows}"), RUN_SECONDS)),
        Box::new(nuttcp(other, wire, &format!("-N{flows}"), RUN_SECONDS)),
    ];
    Group {
        claims: vec![
            ratio("rate", Figure::Rate, ours, peer, Some(Goal::AtLeast(1.0))),
            ratio("CPU of both ends", Figure::Cpu, ours, peer, Some(Goal::AtMost(1.0))),
            ratio("rate", Figure::Rate, ours, other, None),
        ],
        ..group(name, title, contestants)
    }
}

fn small(program: &Path, wire: &Rc<Wire>) -> Group {
    let small = ["--message", "64 B"];
    let trains = [&small[..], &["--send", "segments", "--receive", "joined"]].concat();
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(keepup(program, "trains-small", wire, "udp", &trains, RUN_SECONDS)),
        Box::new(keepup(program, "batch-small", wire, "udp", &small, RUN_SECONDS)),
        Box::new(iperf3("iperf3-small", wire, "-u -b 0 -l 64", RUN_SECONDS)),
    ];
    Group {
        figures: vec![Figure::Events, Figure::Cpu],
        claims: vec![
            ratio("datagrams", Figure::Events, "trains-small", "iperf3-small", Some(Goal::AtLeast(2.0))),
            ratio("datagrams", Figure::Events, "batch-small", "iperf3-small", None),
        ],
        ..group("udp-small", "Received datagrams of 64 B over loopback", contestants)
    }
}

/// Receive methods, compared with the default.
fn receiving(program: &Path, wire: &Rc<Wire>) -> Group {
    let methods = ["batch", "plain", "joined", "ring"];
    let of = |method: &'static str| -> Box<dyn Contestant> {
        Box::new(keepup(program, method, wire, "udp", &["--receive", method], RUN_SECONDS))
    };
    let compared = |name: &&'static str| {
        [
            ratio("datagrams", Figure::Events, name, "batch", None),
            ratio("CPU of both ends", Figure::Cpu, name, "batch", None),
        ]
    };
    Group {
        figures: vec![Figure::Events, Figure::Cpu],
        claims: methods[1..].iter().flat_map(compared).collect(),
        ..group(
            "udp-receive",
            "Receive methods, received datagrams of 1400 B over loopback",
            methods.into_iter().map(of).collect(),
        )
    }
}

fn safe(
    (name, title): (&'static str, &'static str),
    program: &Path,
    wire: &Rc<Wire>,
    [trains_name, batch_name, peer_name]: Names,
) -> Group {
    let of_keepup = |rate: f64| vec!["--rate".to_owned(), format!("{rate:.0} B/s")];
    let of_iperf3 = |rate: f64| vec!["-b".to_owned(), format!("{:.0}", rate * 8.0)];
    let trains = ["--send", "segments", "--receive", "joined"];
    let peer = format!("-u -l 1400 -w {IPERF3_BUFFER}");
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(Safe {
            ends: keepup(program, trains_name, wire, "udp", &trains, TRIAL_SECONDS),
            rate: of_keepup,
        }),
        Box::new(Safe {
            ends: keepup(program, batch_name, wire, "udp", &[], TRIAL_SECONDS),
            rate: of_keepup,
        }),
        Box::new(Safe { ends: iperf3(peer_name, wire, &peer, TRIAL_SECONDS), rate: of_iperf3 }),
    ];
    Group {
        figures: vec![Figure::Rate],
        claims: vec![
            ratio("rate without loss", Figure::Rate, trains_name, peer_name, Some(Goal::AtLeast(2.0))),
            ratio("rate without loss", Figure::Rate, batch_name, peer_name, None),
        ],
        ..group(name, title, contestants)
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
