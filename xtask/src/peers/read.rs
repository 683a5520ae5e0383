//! `cargo xtask peers read`: compares reading a recording back with fio's and the shell's reads of its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use keepup_measure::sum::Sums;

use super::campaign::Campaign;
use super::children::Running;
use super::claims::{Goal, figure, ratio};
use super::contestant::{Contestant, Figure, Run, RunLimits};
use super::fio::{self, jobs};
use super::group::{Group, select};
use super::keepup::{Events, Keepup, Target};
use super::options::Options;
use super::render::Head;
use super::runner::Work;
use super::tools::Tool;
use super::transfer::cpu_ns;

/// Phases: with an empty page cache, and right after that.
const COLD: &str = "cold";
const AGAIN: &str = "again";
/// Transfer sizes, KiB, and depths of fio that are tried.
const SETTINGS: [(u32, u32); 7] =
    [(256, 8), (1024, 1), (1024, 2), (1024, 4), (1024, 8), (1024, 16), (4096, 4)];

/// Method.
const METHOD: &str = "\
- All read the segments of one recording, made before the first round by `keepup record` from events of
  256 KiB. If it is larger than the memory, a read through the page cache cannot be served from it.
- Cold: the page cache is dropped before (as root). Again: right after the cold run, without dropping.
- Rate: bytes of the files over the time from the start of the program to its exit; for fio, over the runtime
  of its job, which excludes start and exit.
- CPU: of the process (wait4), including io_uring workers.
- Page cache: change of `Cached` in /proc/meminfo during the run, including that of the program's own file.
- keepup verifies every checksum, header and sequence number; the peers discard what they read.";

/// How a program reads the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Verify,
    /// Transfer size in KiB, depth.
    Fio(u32, u32),
    /// Through the page cache, as `cat` does.
    Cat,
}

/// A program that reads the recording in `directory`.
struct Reading {
    name: &'static str,
    way: Way,
    keepup: PathBuf,
    directory: PathBuf,
}

impl Reading {
    fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.directory).context("list the recording")?;
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "mcap");
        let mut files: Vec<PathBuf> = paths.into_iter().filter(is_segment).collect();
        files.sort();
        Ok(files)
    }

    fn program(&self, files: &[PathBuf]) -> Command {
        match self.way {
            Way::Verify => {
                let mut command = Command::new(&self.keepup);
                command.arg("verify").arg(&self.directory);
                command
            }
            Way::Fio(kib, depth) => {
                let mut command = Command::new(fio::TOOL.program);
                command.args(fio_flags(kib, depth));
                let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
                command.arg(format!("--filename={}", names.join(":")));
                command
            }
            Way::Cat => {
                let mut command = Command::new("sh");
                command.args(["-c", "cat \"$@\" > /dev/null", "sh"]).args(files);
                command
            }
        }
    }

    fn read(&self, phase: &str, limit: Duration) -> Result<Run> {
        let files = self.files()?;
        let sizes: Result<Vec<u64>> = files.iter().map(|path| Ok(fs::metadata(path)?.len())).collect();
        let bytes = sizes?.iter().saturating_sum();
        let (cached, begin) = (cached_bytes()?, Instant::now());
        let (ended, said) = Running::start(self.program(&files))?.finish(limit)?;
        let mut seconds = begin.elapsed().as_secs_f64();
        let cached_bytes = cached_bytes()? as i64 - cached as i64;
        if let Way::Fio(..) = self.way {
            let job = jobs(&said)?.pop().context("no job in the output of fio")?;
            // Each file is read in whole blocks.
            ensure!(job.bytes.abs_diff(bytes) * 50 < bytes, "fio read {} of {bytes} bytes", job.bytes);
            seconds = job.seconds * bytes as f64 / job.bytes as f64;
        }
        Ok(Run {
            phase: phase.to_owned(),
            bytes,
            seconds,
            cpu_ns: Some(cpu_ns(&ended)),
            cached_bytes: Some(cached_bytes),
            resident_bytes_max: Some(ended.resident_bytes_max),
            ..Run::default()
        })
    }
}

fn fio_flags(kib: u32, depth: u32) -> Vec<String> {
    let fixed = "--name=read --rw=read --readonly --ioengine=io_uring --direct=1 --registerfiles=1 \
                 --fixedbufs=1 --file_service_type=sequential --thread=1 --output-format=json";
    let own = [format!("--bs={kib}k"), format!("--iodepth={depth}")];
    fixed.split_whitespace().map(str::to_owned).chain(own).collect()
}

/// Bytes in the page cache.
fn cached_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Cached:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("no Cached in /proc/meminfo")? << 10)
}

/// Drops clean pages, which root may do.
fn drop_cache() {
    if fs::write("/proc/sys/vm/drop_caches", "3").is_err() {
        eprintln!("note: only root can drop the page cache: cold runs are not cold");
    }
}

impl Contestant for Reading {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        match self.way {
            Way::Verify => "`keepup verify DIR`".to_owned(),
            Way::Fio(kib, depth) => format!("`fio {}`", fio_flags(kib, depth)[1..].join(" ")),
            Way::Cat => "`cat SEGMENTS > /dev/null`".to_owned(),
        }
    }

    fn tool(&self) -> Option<&'static Tool> {
        matches!(self.way, Way::Fio(..)).then_some(&fio::TOOL)
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        drop_cache();
        Ok(vec![self.read(COLD, limits.time)?, self.read(AGAIN, limits.time)?])
    }
}

fn groups(keepup: &Path, directory: &Path, (kib, depth): (u32, u32), bytes: u64) -> Vec<Group> {
    let reading = |name, way| -> Box<dyn Contestant> {
        Box::new(Reading { name, way, keepup: keepup.into(), directory: directory.into() })
    };
    let contestants = vec![
        reading("keepup-verify", Way::Verify),
        reading("fio-read", Way::Fio(kib, depth)),
        reading("cat", Way::Cat),
    ];
    let phase = |phase: &'static str| {
        let rate = |to, goal| ratio("rate", Figure::Rate, "keepup-verify", to, goal).in_phase(phase);
        [
            rate("fio-read", Some(Goal::AtLeast(0.95))),
            rate("cat", None),
            figure("CPU s/GB", Figure::Cpu, "keepup-verify", Some(Goal::AtMost(0.12))).in_phase(phase),
        ]
    };
    let figures = vec![Figure::Rate, Figure::Cpu, Figure::Cached, Figure::Memory];
    let group = Group::plain("read", "A recording read back", figures, contestants);
    vec![Group {
        phases: vec![COLD.to_owned(), AGAIN.to_owned()],
        claims: [phase(COLD), phase(AGAIN)].concat(),
        work: Work { bytes, time: Duration::ZERO },
        ..group
    }]
}

/// Checks the names in `--only`.
pub(super) fn check((options, bytes): (Options, u64)) -> Result<(Options, u64), String> {
    select(groups(Path::new("keepup"), Path::new("."), SETTINGS[0], bytes), &options.only)?;
    Ok((options, bytes))
}

/// Runs the campaign with a recording of `bytes`.
pub(super) fn run((options, bytes): &(Options, u64)) -> Result<()> {
    let campaign = Campaign::prepare(options, &[&fio::TOOL])?;
    campaign.scratch.check_free_space(2 * bytes)?;
    let recorded = campaign.scratch.within("recorded")?;
    eprintln!("recording {:.1} GB", *bytes as f64 / 1e9);
    let (keepup, time) = (&campaign.program, Duration::from_secs(600 + bytes / 20_000_000));
    let recorder = Keepup {
        name: "recorder",
        program: keepup.clone(),
        target: Target::Volume,
        events: Events::Large,
        streams: 4,
        connections: 1,
    };
    recorder.run(&RunLimits { directory: recorded.path(), bytes: *bytes, time })?;
    let directory = recorded.path().join("volume/peer");
    let (best, note) = calibrate(&directory, time)?;
    let mut groups =
        select(groups(keepup, &directory, best, *bytes), &options.only).map_err(|why| anyhow!(why))?;
    groups.iter_mut().for_each(|group| group.notes.push(note.clone()));
    let head = Head {
        title: "Reading a recording back, compared with its peers",
        what: format!("{:.1} GB, {}", *bytes as f64 / 1e9, options.rounds_text()),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}

/// Fastest setting of fio in one run each, with a note about all.
fn calibrate(directory: &Path, time: Duration) -> Result<((u32, u32), String)> {
    let (mut best, mut rates) = ((SETTINGS[0], 0.0), Vec::new());
    for (kib, depth) in SETTINGS {
        let way = Way::Fio(kib, depth);
        let reading = Reading { name: "fio", way, keepup: PathBuf::new(), directory: directory.into() };
        let rate = Figure::Rate.of(&reading.read(COLD, time)?).unwrap_or_default();
        eprintln!("fio, {kib} KiB x {depth}: {rate:.0} MB/s");
        rates.push(format!("{kib} KiB x {depth} {rate:.0} MB/s"));
        if rate > best.1 {
            best = ((kib, depth), rate);
        }
    }
    let (kib, depth) = best.0;
    let note = format!(
        "fio reads {kib} KiB x {depth}, the fastest setting in one run of each: {}",
        rates.join(", ")
    );
    Ok((best.0, note))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
