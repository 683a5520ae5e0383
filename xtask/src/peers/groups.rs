//! Groups of `peers record` with their claims. The goals are the project's budgets for the recorder.

use std::path::Path;
use std::time::Duration;

use super::claims::{Goal, figure, ratio};
use super::contestant::{Contestant, Figure};
use super::fio::Fio;
use super::group::{Group, select};
use super::iperf3::Iperf3;
use super::keepup::{Events, Keepup, Target};
use super::mbuffer::Mbuffer;
use super::options::Options;
use super::runner::Work;

/// Streams of the acoustic camera, the largest number in the design.
const MANY_STREAMS: u32 = 508;

/// Number of connections, and of sender threads, in the multi-connection runs.
const MANY_CONNECTIONS: u32 = 8;

/// All groups, for runs of `bytes`.
pub(super) fn all(keepup: &Path, fio: Fio, bytes: u64) -> Vec<Group> {
    let mut groups = vec![volume(keepup, fio), path(keepup), streams(keepup), small(keepup)];
    groups.iter_mut().for_each(|group| group.work.bytes = bytes);
    groups
}

/// Checks the names in `--only`.
pub(super) fn check((options, bytes): (Options, u64)) -> Result<(Options, u64), String> {
    // Names do not depend on the program or the setting.
    select(all(Path::new("keepup"), Fio::FIRST, bytes), &options.only).map(|_| (options, bytes))
}

/// Group with single-phase runs. The caller sets the bytes.
fn group(name: &'static str, title: &'static str, contestants: Vec<Box<dyn Contestant>>) -> Group {
    Group {
        name,
        title,
        rate: "MB/s",
        phases: vec![String::new()],
        figures: figures(),
        contestants,
        claims: Vec::new(),
        work: Work { bytes: 0, time: Duration::ZERO },
        skipped: None,
        notes: Vec::new(),
    }
}

fn recorder(name: &'static str, program: &Path, target: Target) -> Keepup {
    Keepup { name, program: program.to_path_buf(), target, events: Events::Large, streams: 1, connections: 1 }
}

fn figures() -> Vec<Figure> {
    vec![Figure::Rate, Figure::Accepted, Figure::Cpu, Figure::CpuRunning, Figure::SenderCpu, Figure::Memory]
}

fn volume(program: &Path, fio: Fio) -> Group {
    let at_least = |least| Some(Goal::AtLeast(least));
    let less = Some(Goal::Below(1.0));
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(recorder("keepup", program, Target::Volume)),
        Box::new(Iperf3::to_file()),
        Box::new(Mbuffer::buffered()),
        Box::new(Mbuffer::direct()),
        Box::new(fio),
    ];
    Group {
        rate: "durable MB/s",
        claims: vec![
            ratio("durable rate", Figure::Rate, "keepup", "fio", at_least(0.95)),
            ratio("durable rate", Figure::Rate, "keepup", "iperf3", at_least(1.2)),
            ratio("durable rate", Figure::Rate, "keepup", "mbuffer", at_least(1.2)),
            ratio("durable rate", Figure::Rate, "keepup", "mbuffer-direct", at_least(1.2)),
            figure("CPU s/GB, whole process", Figure::Cpu, "keepup", Some(Goal::AtMost(0.20))),
            figure("CPU s/GB, running", Figure::CpuRunning, "keepup", Some(Goal::AtMost(0.20))),
            ratio("CPU, whole process", Figure::Cpu, "keepup", "mbuffer", less),
            ratio("CPU, whole process", Figure::Cpu, "keepup", "mbuffer-direct", less),
            ratio("CPU, whole process", Figure::Cpu, "keepup", "iperf3", None),
        ],
        ..group("volume", "One TCP stream to a disk", contestants)
    }
}

fn path(program: &Path) -> Group {
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(recorder("keepup-null", program, Target::Null)),
        Box::new(Iperf3::dropping()),
        Box::new(recorder("keepup-tmpfs", program, Target::Memory)),
    ];
    Group {
        claims: vec![
            ratio("rate", Figure::Rate, "keepup-null", "iperf3-drop", Some(Goal::AtLeast(0.85))),
            ratio("rate", Figure::Rate, "keepup-tmpfs", "iperf3-drop", None),
            ratio("CPU, running", Figure::CpuRunning, "keepup-null", "iperf3-drop", None),
        ],
        ..group("path", "The path without a disk", contestants)
    }
}

fn streams(program: &Path) -> Group {
    let many = |recorder: Keepup| Keepup { streams: MANY_STREAMS, ..recorder };
    let dealt = |recorder: Keepup| Keepup { connections: MANY_CONNECTIONS, ..many(recorder) };
    let goal = Some(Goal::AtMost(1.15));
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(recorder("null-1", program, Target::Null)),
        Box::new(many(recorder("null-508", program, Target::Null))),
        Box::new(dealt(recorder("null-508-8", program, Target::Null))),
        Box::new(recorder("volume-1", program, Target::Volume)),
        Box::new(many(recorder("volume-508", program, Target::Volume))),
        Box::new(dealt(recorder("volume-508-8", program, Target::Volume))),
    ];
    Group {
        claims: vec![
            ratio("CPU, running", Figure::CpuRunning, "null-508", "null-1", goal),
            ratio("CPU, running", Figure::CpuRunning, "volume-508", "volume-1", goal),
            ratio("CPU, running, 8 connections", Figure::CpuRunning, "null-508-8", "null-1", None),
            ratio("CPU, running, 8 connections", Figure::CpuRunning, "volume-508-8", "volume-1", None),
            ratio("rate", Figure::Rate, "null-508", "null-1", None),
            ratio("rate", Figure::Rate, "volume-508", "volume-1", None),
            ratio("peak memory", Figure::Memory, "volume-508", "volume-1", None),
        ],
        ..group(
            "streams",
            "508 streams on one and on eight connections, compared with one stream",
            contestants,
        )
    }
}

fn small(program: &Path) -> Group {
    let small = |recorder: Keepup| Keepup { events: Events::Small, ..recorder };
    let goal = Some(Goal::AtLeast(1.0));
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(small(recorder("small-null", program, Target::Null))),
        Box::new(small(recorder("small-volume", program, Target::Volume))),
    ];
    Group {
        figures: std::iter::once(Figure::Events).chain(figures()).collect(),
        claims: vec![
            figure("10^6 events/s", Figure::Events, "small-null", goal),
            figure("10^6 events/s", Figure::Events, "small-volume", goal),
        ],
        ..group("small", "Events of 1 KiB", contestants)
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
