//! Groups of `peers replay` with their claims. The goals are the project's budgets for replays.

use std::path::Path;
use std::time::Duration;

use super::programs::{Target, fio, keepup};
use super::traces::{
    DEPENDENT, FAST, FILE_BYTES, MIDDLE, MIXED, NOWHERE, READS, SLOW, Trace, dependent_seconds,
};
use crate::peers::claims::{Goal, figure, ratio};
use crate::peers::contestant::{Contestant, Figure};
use crate::peers::group::Group;
use crate::peers::runner::Work;

/// Largest span error, per cent.
const SPAN: Goal = Goal::AtMost(0.1);
/// Requests per second relative to fio.
const RATE: Goal = Goal::AtLeast(1.0);
/// Duration of a run: three timed passes.
const TIME: Duration = Duration::from_secs(15);
/// fio flags for a file, with registered buffers.
const RING: &str = "--ioengine=io_uring --direct=1 --fixedbufs=1 --replay_no_stall=1";
/// Additional flags for batches.
const BATCH: &str = "--iodepth_batch=8 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=64";

/// Timed replay.
struct Timed {
    group: &'static str,
    title: &'static str,
    trace: Trace,
    target: Target,
    /// Names of keepup and fio.
    names: [&'static str; 2],
}

/// Replay at full speed.
struct Afap {
    group: &'static str,
    title: &'static str,
    trace: Trace,
    target: Target,
    depth: u32,
    /// Names of keepup, fio, and fio with batches.
    names: [&'static str; 3],
}

macro_rules! timed {
    ($kind:literal, $rate:literal, $trace:expr, $target:expr, $title:literal) => {
        Timed {
            group: concat!($kind, "-", $rate),
            title: concat!($rate, " requests per second, timed, ", $title),
            trace: $trace,
            target: $target,
            names: [concat!("keepup-", $kind, "-", $rate), concat!("fio-", $kind, "-", $rate)],
        }
    };
}

macro_rules! afap {
    ($kind:literal, $depth:literal, $trace:expr, $target:expr, $title:literal) => {
        Afap {
            group: concat!($kind, "-", $depth),
            title: concat!("Full speed, ", $title, ", ", $depth, " in flight"),
            trace: $trace,
            target: $target,
            depth: $depth,
            names: [
                concat!("keepup-", $kind, "-", $depth),
                concat!("fio-", $kind, "-", $depth),
                concat!("fio-batch-", $kind, "-", $depth),
            ],
        }
    };
}

/// All groups. `traces` is the directory of the traces.
pub(super) fn all(program: &Path, traces: &Path) -> Vec<Group> {
    use Target::{File, Nowhere};
    let timed_ones = [
        timed!("timed", 250, SLOW, Nowhere, "null target"),
        timed!("timed", 2000, MIDDLE, Nowhere, "null target"),
        timed!("timed", 50000, FAST, Nowhere, "null target"),
        timed!("timed-file", 250, SLOW, File, "file"),
        timed!("timed-file", 2000, MIDDLE, File, "file"),
    ];
    let quick_ones = [
        afap!("null", 1, NOWHERE, Nowhere, "null target"),
        afap!("null", 32, NOWHERE, Nowhere, "null target"),
        afap!("null", 128, NOWHERE, Nowhere, "null target"),
        afap!("reads", 1, READS, File, "reads of a file"),
        afap!("reads", 32, READS, File, "reads of a file"),
        afap!("reads", 128, READS, File, "reads of a file"),
        afap!("mixed", 1, MIXED, File, "reads and writes of a file"),
        afap!("mixed", 32, MIXED, File, "reads and writes of a file"),
        afap!("mixed", 128, MIXED, File, "reads and writes of a file"),
    ];
    let timed_ones = timed_ones.into_iter().map(|one| timed(program, traces, &one));
    let quick_ones = quick_ones.into_iter().map(|one| afap(program, traces, &one));
    timed_ones.chain(quick_ones).chain([dependent(program, traces)]).collect()
}

fn group(
    (name, title): (&'static str, &'static str),
    target: Target,
    figures: Vec<Figure>,
    contestants: Vec<Box<dyn Contestant>>,
) -> Group {
    let bytes = if target == Target::File { FILE_BYTES } else { 0 };
    Group { work: Work { bytes, time: TIME }, ..Group::plain(name, title, figures, contestants) }
}

fn timed(program: &Path, traces: &Path, one: &Timed) -> Group {
    let path = traces.join(one.trace.name);
    let engine = match one.target {
        Target::Nowhere => "--ioengine=null",
        Target::File => "--ioengine=sync --direct=1",
    };
    let [ours, peer] = one.names;
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(keepup(program, ours, &path, one.target, "timed", None)),
        Box::new(fio(peer, &path, one.trace, one.target, engine)),
    ];
    let figures = vec![Figure::SpanError, Figure::LateP50, Figure::LateP99, Figure::LateMax];
    Group {
        claims: vec![
            figure("span error in per cent", Figure::SpanError, ours, Some(SPAN)),
            figure("span error in per cent", Figure::SpanError, peer, None),
        ],
        ..group((one.group, one.title), one.target, figures, contestants)
    }
}

fn afap(program: &Path, traces: &Path, one: &Afap) -> Group {
    let path = traces.join(one.trace.name);
    let engine = match one.target {
        Target::Nowhere => "--ioengine=null --replay_no_stall=1",
        Target::File => RING,
    };
    let [ours, peer, batch] = one.names;
    let (mode, flags) = (format!("afap --depth {}", one.depth), format!("{engine} --iodepth={}", one.depth));
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(keepup(program, ours, &path, one.target, &mode, None)),
        Box::new(fio(peer, &path, one.trace, one.target, &flags)),
    ];
    let mut peers = vec![peer];
    if one.target == Target::File && one.depth > 1 {
        contestants.push(Box::new(fio(batch, &path, one.trace, one.target, &format!("{flags} {BATCH}"))));
        peers.push(batch);
    }
    let claims = peers.into_iter().flat_map(|peer| {
        [
            ratio("requests/s", Figure::Operations, ours, peer, Some(RATE)),
            ratio("CPU per request", Figure::RequestCpu, ours, peer, None),
        ]
    });
    Group {
        claims: claims.collect(),
        ..group((one.group, one.title), one.target, vec![Figure::Operations, Figure::RequestCpu], contestants)
    }
}

fn dependent(program: &Path, traces: &Path) -> Group {
    let (path, seconds) = (traces.join(DEPENDENT), Some(dependent_seconds()));
    let ours = keepup(program, "keepup-dep", &path, Target::Nowhere, "dep", seconds);
    let figures = vec![Figure::Operations, Figure::SpanError, Figure::LateP50, Figure::LateP99];
    group(("dep", "By dependency, null target"), Target::Nowhere, figures, vec![Box::new(ours)])
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
