//! Who is measured beside whom in `peers record`, and what is claimed about it. The goals are the project's
//! budgets for the recorder.

use std::path::Path;

use super::claims::{Claim, Goal};
use super::contestant::{Contestant, Figure};
use super::fio::Fio;
use super::iperf3::Iperf3;
use super::keepup::{Events, Keepup, Target};
use super::mbuffer::Mbuffer;
use super::options::Options;

/// Streams of the acoustic camera that the design takes its largest number from.
const MANY_STREAMS: u32 = 508;

/// Connections that they are dealt over, besides one: so many threads of the sender take part.
const MANY_CONNECTIONS: u32 = 8;

/// Contestants that take turns.
pub(super) struct Group {
    /// Its name in flags.
    pub(super) name: &'static str,
    /// What it is about.
    pub(super) title: &'static str,
    /// What the first column is called.
    pub(super) rate: &'static str,
    /// Columns of its table.
    pub(super) figures: Vec<Figure>,
    /// Who takes part.
    pub(super) contestants: Vec<Box<dyn Contestant>>,
    /// What is claimed.
    pub(super) claims: Vec<Claim>,
}

/// All groups, with this keepup and fio at this setting.
pub(super) fn all(keepup: &Path, fio: Fio) -> Vec<Group> {
    vec![volume(keepup, fio), path(keepup), streams(keepup), small(keepup)]
}

/// The options as they are when every name in them is known; otherwise says which is not.
pub(super) fn check(options: Options) -> Result<Options, String> {
    // Names hang neither on the program nor on the setting.
    select(all(Path::new("keepup"), Fio::FIRST), &options.only).map(|_| options)
}

/// What is left of the groups when only these names take part; otherwise says which name is unknown.
pub(super) fn select(groups: Vec<Group>, only: &[String]) -> Result<Vec<Group>, String> {
    if only.is_empty() {
        return Ok(groups);
    }
    let names: Vec<String> = groups
        .iter()
        .flat_map(|group| {
            let contestants = group.contestants.iter().map(|contestant| contestant.name().to_owned());
            std::iter::once(group.name.to_owned()).chain(contestants)
        })
        .collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(format!("--only {unknown}: there are {}", names.join(", ")));
    }
    let is_chosen = |name: &str| only.iter().any(|chosen| chosen == name);
    let selected = groups.into_iter().map(|mut group| {
        if !is_chosen(group.name) {
            group.contestants.retain(|contestant| is_chosen(contestant.name()));
        }
        group
    });
    Ok(selected.filter(|group| !group.contestants.is_empty()).collect())
}

fn recorder(name: &'static str, program: &Path, target: Target) -> Keepup {
    Keepup { name, program: program.to_path_buf(), target, events: Events::Large, streams: 1, connections: 1 }
}

/// keepup's figure to a peer's.
fn ratio(
    what: &'static str,
    figure: Figure,
    of: &'static str,
    to: &'static str,
    goal: Option<Goal>,
) -> Claim {
    Claim { what, figure, of, to: Some(to), goal }
}

fn figure(what: &'static str, figure: Figure, of: &'static str, goal: Goal) -> Claim {
    Claim { what, figure, of, to: None, goal: Some(goal) }
}

fn figures() -> Vec<Figure> {
    vec![Figure::Rate, Figure::Accepted, Figure::Cpu, Figure::CpuRunning, Figure::SenderCpu, Figure::Memory]
}

fn volume(program: &Path, fio: Fio) -> Group {
    let at_least = |least| Some(Goal::AtLeast(least));
    let less = Some(Goal::Below(1.0));
    Group {
        name: "volume",
        title: "One TCP stream to a disk",
        rate: "durable MB/s",
        figures: figures(),
        contestants: vec![
            Box::new(recorder("keepup", program, Target::Volume)),
            Box::new(Iperf3::to_file()),
            Box::new(Mbuffer::buffered()),
            Box::new(Mbuffer::direct()),
            Box::new(fio),
        ],
        claims: vec![
            ratio("durable rate", Figure::Rate, "keepup", "fio", at_least(0.95)),
            ratio("durable rate", Figure::Rate, "keepup", "iperf3", at_least(1.2)),
            ratio("durable rate", Figure::Rate, "keepup", "mbuffer", at_least(1.2)),
            ratio("durable rate", Figure::Rate, "keepup", "mbuffer-direct", at_least(1.2)),
            figure("CPU s/GB, whole process", Figure::Cpu, "keepup", Goal::AtMost(0.20)),
            figure("CPU s/GB, running", Figure::CpuRunning, "keepup", Goal::AtMost(0.20)),
            ratio("CPU, whole process", Figure::Cpu, "keepup", "mbuffer", less),
            ratio("CPU, whole process", Figure::Cpu, "keepup", "mbuffer-direct", less),
            ratio("CPU, whole process", Figure::Cpu, "keepup", "iperf3", None),
        ],
    }
}

fn path(program: &Path) -> Group {
    Group {
        name: "path",
        title: "The path without a disk",
        rate: "MB/s",
        figures: figures(),
        contestants: vec![
            Box::new(recorder("keepup-null", program, Target::Null)),
            Box::new(Iperf3::dropping()),
            Box::new(recorder("keepup-tmpfs", program, Target::Memory)),
        ],
        claims: vec![
            ratio("rate", Figure::Rate, "keepup-null", "iperf3-drop", Some(Goal::AtLeast(0.85))),
            ratio("rate", Figure::Rate, "keepup-tmpfs", "iperf3-drop", None),
            ratio("CPU, running", Figure::CpuRunning, "keepup-null", "iperf3-drop", None),
        ],
    }
}

fn streams(program: &Path) -> Group {
    let many = |recorder: Keepup| Keepup { streams: MANY_STREAMS, ..recorder };
    let dealt = |recorder: Keepup| Keepup { connections: MANY_CONNECTIONS, ..many(recorder) };
    let goal = Some(Goal::AtMost(1.15));
    Group {
        name: "streams",
        title: "508 streams, on one connection and on eight, beside one",
        rate: "MB/s",
        figures: figures(),
        contestants: vec![
            Box::new(recorder("null-1", program, Target::Null)),
            Box::new(many(recorder("null-508", program, Target::Null))),
            Box::new(dealt(recorder("null-508-8", program, Target::Null))),
            Box::new(recorder("volume-1", program, Target::Volume)),
            Box::new(many(recorder("volume-508", program, Target::Volume))),
            Box::new(dealt(recorder("volume-508-8", program, Target::Volume))),
        ],
        claims: vec![
            ratio("CPU, running", Figure::CpuRunning, "null-508", "null-1", goal),
            ratio("CPU, running", Figure::CpuRunning, "volume-508", "volume-1", goal),
            ratio("CPU, running, 8 connections", Figure::CpuRunning, "null-508-8", "null-1", None),
            ratio("CPU, running, 8 connections", Figure::CpuRunning, "volume-508-8", "volume-1", None),
            ratio("rate", Figure::Rate, "null-508", "null-1", None),
            ratio("rate", Figure::Rate, "volume-508", "volume-1", None),
            ratio("peak memory", Figure::Memory, "volume-508", "volume-1", None),
        ],
    }
}

fn small(program: &Path) -> Group {
    let small = |recorder: Keepup| Keepup { events: Events::Small, ..recorder };
    let goal = Goal::AtLeast(1.0);
    Group {
        name: "small",
        title: "Events of 1 KiB",
        rate: "MB/s",
        figures: std::iter::once(Figure::Events).chain(figures()).collect(),
        contestants: vec![
            Box::new(small(recorder("small-null", program, Target::Null))),
            Box::new(small(recorder("small-volume", program, Target::Volume))),
        ],
        claims: vec![
            figure("10^6 events/s", Figure::Events, "small-null", goal),
            figure("10^6 events/s", Figure::Events, "small-volume", goal),
        ],
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
