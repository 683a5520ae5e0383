//! Groups of `peers disk` with their claims. The goals are the project's budgets for disk tests.

use std::path::PathBuf;
use std::time::Duration;

use super::fio::{Job, Setting};
use super::slope::Slope;
use super::{bonnie, fio, keepup, label, listing};
use crate::peers::claims::{Claim, Goal, figure, ratio};
use crate::peers::contestant::{Contestant, Figure};
use crate::peers::group::Group;
use crate::peers::options::DiskOptions;
use crate::peers::program::WHOLE;
use crate::peers::runner::Work;

/// Transfer sizes in bytes, and queue depths.
const SIZES: [u64; 3] = [64 << 10, 1 << 20, 4 << 20];
const DEPTHS: [u64; 3] = [1, 8, 32];
/// Most memory of fio buffers, including those of the next job.
const HUGE_BYTES: u64 = 160 << 20;

/// Size and depth of the CPU measurement.
const POINT: (u64, u64) = (1 << 20, 8);
/// Duration of the long run of a slope relative to the short one.
const LONG: u32 = 8;
/// File size of a slope. Small, because filling it only adds noise.
const SLOPE_FILE_BYTES: u64 = 128 << 20;
/// Size of the growing file relative to that of the sweep.
const GROWN: u64 = 2;

/// Block sizes with the page cache and without it, bytes.
const CACHED_CHUNK_BYTES: u64 = 8 << 10;
const DIRECT_CHUNK_BYTES: u64 = 1 << 20;

/// Series of the listing, as phase names.
const SERIES: [&str; 3] = ["1 x 4 GiB", "512 x 8 MiB", "2048 x 8 KiB"];
/// Total bytes of the series: 4 GiB + 512 x 8 MiB + 2048 x 8 KiB.
const SERIES_BYTES: u64 = (4 << 30) + (512 * (8 << 20)) + (2048 * (8 << 10));

/// Properties of the machine and options that determine the groups.
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    /// Path of keepup.
    pub(super) keepup: PathBuf,
    /// Whether it has `disk block`.
    pub(super) has_block: bool,
    /// Free reserved huge pages, bytes.
    pub(super) huge_bytes: u64,
    /// Options.
    pub(super) disk: DiskOptions,
}

impl Inputs {
    /// Properties with which all contestants can take part.
    pub(super) fn most(disk: &DiskOptions) -> Self {
        Self { keepup: "keepup".into(), has_block: true, huge_bytes: u64::MAX, disk: disk.clone() }
    }

    fn has_huge(&self) -> bool {
        self.huge_bytes >= HUGE_BYTES
    }

    /// Note if fio cannot use huge pages.
    fn huge_note(&self) -> Option<String> {
        (!self.has_huge()).then(|| {
            format!(
                "fio uses normal pages: {} MiB of huge pages are free, it needs {} (sysctl \
                 vm.nr_hugepages={}); keepup uses transparent huge pages if available",
                self.huge_bytes >> 20,
                HUGE_BYTES >> 20,
                HUGE_BYTES >> 21
            )
        })
    }
}

/// Formats a duration for a flag of keepup.
fn span(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// All groups.
pub(super) fn all(facts: &Inputs) -> Vec<Group> {
    vec![sweep(facts), cpu(facts), growing(facts), testdisk(facts), block(facts)]
}

fn group(name: &'static str, title: &'static str, contestants: Vec<Box<dyn Contestant>>) -> Group {
    Group::plain(name, title, vec![Figure::Rate, Figure::BilledMs], contestants)
}

/// Jobs of fio for all points: all writes, then all reads, as in keepup.
fn points(time: Duration) -> Vec<Job> {
    let job = |verb, bytes, depth| {
        let name = format!("{verb} {} x {depth}", label(bytes));
        Job { name, verb, bytes, depth, time: Some(time) }
    };
    let all = |verb| SIZES.into_iter().flat_map(move |bytes| DEPTHS.map(|depth| job(verb, bytes, depth)));
    all("write").chain(all("read")).collect()
}

fn sweep(facts: &Inputs) -> Group {
    let DiskOptions { time, file_bytes, .. } = facts.disk;
    let jobs = points(time);
    let list = |numbers: Vec<String>| numbers.join(",");
    let sizes = list(SIZES.iter().map(|bytes| label(*bytes)).collect());
    let depths = list(DEPTHS.iter().map(u64::to_string).collect());
    let (point_time, file) = (span(time), label(file_bytes));
    let flags = ["--sizes", &sizes, "--depths", &depths, "--time", &point_time, "--file", &file];
    let peer =
        |name, huge| fio::program(name, Setting { huge, unique: true, filled: true }, file_bytes, &jobs);
    let mut contestants: Vec<Box<dyn Contestant>> =
        vec![Box::new(keepup::test(&facts.keepup, "keepup", "sweep", &flags)), Box::new(peer("fio", false))];
    if facts.has_huge() {
        contestants.push(Box::new(peer("fio-huge", true)));
    }
    let best = if facts.has_huge() { "fio-huge" } else { "fio" };
    let goal = Some(Goal::AtLeast(0.98));
    let claim = |job: &Job| ratio("rate", Figure::Rate, "keepup", best, goal).in_phase(&job.name);
    Group {
        phases: jobs.iter().map(|job| job.name.clone()).collect(),
        claims: jobs.iter().map(claim).collect(),
        work: Work { bytes: file_bytes, time: time * jobs.len() as u32 },
        notes: facts.huge_note().into_iter().collect(),
        ..group("sweep", "Transfer sizes and depths in one file", contestants)
    }
}

/// keepup and fio writing with the size and depth of `POINT`.
fn written(facts: &Inputs, names: (&'static str, &'static str), unique: bool) -> [Box<dyn Contestant>; 2] {
    let (bytes, depth) = POINT;
    let (request, outstanding, file) = (label(bytes), depth.to_string(), label(SLOPE_FILE_BYTES));
    let duplicate = if unique { "0" } else { "100" };
    let own = |time| {
        let run = span(time);
        let flags = [
            ["--request", &request],
            ["--outstanding", &outstanding],
            ["--file", &file],
            ["--ramp", "1 ms"],
            ["--time", &run],
            ["--duplicate", duplicate],
        ];
        keepup::test(&facts.keepup, names.0, "scale", flags.as_flattened())
    };
    let peer = |time| {
        let job = Job { name: "write".to_owned(), verb: "write", bytes, depth, time: Some(time) };
        let setting = Setting { huge: facts.has_huge(), unique, filled: true };
        fio::program(names.1, setting, SLOPE_FILE_BYTES, &[job])
    };
    let (short, long) = (facts.disk.time, facts.disk.time * LONG);
    [
        Box::new(Slope { short: own(short), long: own(long) }),
        Box::new(Slope { short: peer(short), long: peer(long) }),
    ]
}

/// Claim that the CPU reported by a program is that accounted by the kernel.
fn account(of: &'static str) -> Claim {
    figure("reported CPU / CPU", Figure::BilledShare, of, Some(Goal::Within(0.05)))
}

fn slopes(name: &'static str, title: &'static str, contestants: Vec<Box<dyn Contestant>>) -> Group {
    let figures = vec![Figure::Rate, Figure::CpuMs, Figure::BilledMs, Figure::BilledShare];
    Group { figures, ..group(name, title, contestants) }
}

fn cpu(facts: &Inputs) -> Group {
    let constant = written(facts, ("keepup-constant", "fio-constant"), false);
    let unique = written(facts, ("keepup-unique", "fio-unique"), true);
    let mut claims = Vec::new();
    for (of, to, most, most_to_peer) in [
        ("keepup-constant", "fio-constant", 7.0, Some(Goal::AtMost(1.15))),
        ("keepup-unique", "fio-unique", 20.0, None),
    ] {
        claims.push(figure("CPU ms/GB", Figure::CpuMs, of, Some(Goal::AtMost(most))));
        claims.push(figure("reported CPU ms/GB", Figure::BilledMs, of, Some(Goal::AtMost(most))));
        claims.push(ratio("CPU", Figure::CpuMs, of, to, most_to_peer));
        claims.push(account(of));
    }
    let time = facts.disk.time * (LONG + 2);
    Group {
        claims,
        work: Work { bytes: SLOPE_FILE_BYTES, time },
        notes: facts.huge_note().into_iter().collect(),
        ..slopes("cpu", "CPU of overwriting, 1 MiB, depth 8", constant.into_iter().chain(unique).collect())
    }
}

fn growing(facts: &Inputs) -> Group {
    let (bytes, depth) = POINT;
    let grown_bytes = facts.disk.file_bytes * GROWN;
    let (request, depth_text) = (label(bytes), depth.to_string());
    let own = |size_bytes| {
        let size = label(size_bytes);
        let flags = [
            ["--files", "1"],
            ["--kind", "write"],
            ["--space", "new"],
            ["--request", &request],
            ["--depth", &depth_text],
            ["--size", &size],
        ];
        keepup::test(&facts.keepup, "keepup-growing", "concurrent", flags.as_flattened())
    };
    let peer = |size_bytes| {
        let job = Job { name: "write".to_owned(), verb: "write", bytes, depth, time: None };
        let setting = Setting { huge: facts.has_huge(), unique: true, filled: false };
        fio::program("fio-growing", setting, size_bytes, &[job])
    };
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(Slope { short: own(bytes), long: own(grown_bytes) }),
        Box::new(Slope { short: peer(bytes), long: peer(grown_bytes) }),
    ];
    Group {
        claims: vec![
            account("keepup-growing"),
            figure("reported CPU / CPU", Figure::BilledShare, "fio-growing", None),
            ratio("CPU", Figure::CpuMs, "keepup-growing", "fio-growing", None),
            ratio("rate", Figure::Rate, "keepup-growing", "fio-growing", None),
        ],
        work: Work { bytes: grown_bytes, time: Duration::ZERO },
        ..slopes("growing", "CPU of writing a growing file, 1 MiB, depth 8", contestants)
    }
}

fn testdisk(facts: &Inputs) -> Group {
    let program = facts.disk.testdisk.clone().unwrap_or_else(|| "testdisk".into());
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(keepup::test(&facts.keepup, "keepup-testdisk", "testdisk", &[])),
        Box::new(listing::program(&program)),
    ];
    let verbs = ["create", "overwrite"];
    let series = verbs.iter().flat_map(|verb| SERIES.map(|series| format!("{verb} {series}")));
    let phases: Vec<String> = series.collect();
    let goal = Some(Goal::Within(0.03));
    let rate =
        |phase: &String| ratio("rate", Figure::Rate, "keepup-testdisk", "listing", goal).in_phase(phase);
    let whole = ratio("CPU", Figure::Cpu, "keepup-testdisk", "listing", None).in_phase(WHOLE);
    let skipped = facts.disk.testdisk.is_none().then(|| {
        "--testdisk PROGRAM is missing: the compiled program of the paper, not part of keepup".to_owned()
    });
    Group {
        claims: phases.iter().map(rate).chain([whole]).collect(),
        phases: phases.into_iter().chain([WHOLE.to_owned()]).collect(),
        figures: vec![Figure::Rate, Figure::Cpu, Figure::BilledMs],
        // Each byte is written twice.
        work: Work { bytes: SERIES_BYTES, time: Duration::from_secs(300) },
        skipped,
        ..group("testdisk", "Files of three sizes, created and overwritten", contestants)
    }
}

fn block(facts: &Inputs) -> Group {
    // bonnie++ prints no figure for phases below half a second, and the page cache is fast.
    let (cached_bytes, direct_bytes) = (facts.disk.file_bytes / 2 * 3, facts.disk.file_bytes);
    let own = |name, access, bytes, chunk| {
        let (size, chunk) = (label(bytes), label(chunk));
        let flags = [access, "--size", &size, "--chunk", &chunk, "--files", "0"];
        keepup::test(&facts.keepup, name, "block", &flags)
    };
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(own("keepup-cached", "--cached", cached_bytes, CACHED_CHUNK_BYTES)),
        Box::new(bonnie::program("bonnie-cached", cached_bytes, CACHED_CHUNK_BYTES, false)),
        Box::new(own("keepup-direct", "--direct", direct_bytes, DIRECT_CHUNK_BYTES)),
        Box::new(bonnie::program("bonnie-direct", direct_bytes, DIRECT_CHUNK_BYTES, true)),
    ];
    let phases = ["write", "rewrite", "read", "seeks"].map(str::to_owned);
    let claim = |phase: &String| {
        let (what, figure) = match phase.as_str() {
            "seeks" => ("per second", Figure::Operations),
            _ => ("rate", Figure::Rate),
        };
        ratio(what, figure, "keepup-cached", "bonnie-cached", None).in_phase(phase)
    };
    let direct = ratio("rate", Figure::Rate, "keepup-direct", "bonnie-direct", None).in_phase("write");
    let skipped = (!facts.has_block).then(|| "this keepup has no test `disk block`".to_owned());
    Group {
        claims: phases.iter().map(claim).chain([direct]).collect(),
        phases: phases.to_vec(),
        figures: vec![Figure::Rate, Figure::Operations, Figure::BilledMs],
        work: Work { bytes: cached_bytes, time: Duration::ZERO },
        skipped,
        ..group("block", "A large file in blocks", contestants)
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
