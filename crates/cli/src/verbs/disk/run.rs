//! What all disk tests share: flags, checks before the first byte, repeats in turns, the table at the end.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::environment::Environment;
use keepup_measure::stats::median;
use keepup_recording::id::Id;
use keepup_results::{DISK_SCHEMA_VERSION, DiskPhase, DiskRun, DiskSummary, LoadResult, LoadUnit, rfc3339};
use keepup_workload::Context;
use keepup_workload::disk::{DiskTest, alternate};
use keepup_workload::load::LoadPlan;
use keepup_workload::preflight::{Checked, check, common_disks};

use crate::args::{Runs, default_volume};
use crate::exit::Exit;
use crate::loads::{self, announce};
use crate::output::{command, json, report_error, result, say};
use crate::signals::stop_flag;
use crate::verbs::keep::Kept;
use crate::verbs::record::usage;

/// Flags of every disk test.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Directory on the disk to measure; several are measured in turns [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    #[command(flatten)]
    runs: Runs,
}

/// What is to be done with a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is run.
    Measure,
    /// It is told to fio.
    ExportFio,
}

/// What distinguishes a test.
pub(super) struct Test<'a, T> {
    /// What it does.
    pub(super) test: T,
    /// Whether one run uses all volumes at once; else each has runs of its own.
    pub(super) together: bool,
    /// Its settings.
    pub(super) plan: serde_json::Value,
    /// What a run is told as, for people.
    pub(super) lines: &'a dyn Fn(&DiskRun) -> Vec<String>,
    /// What all runs come to, for people.
    pub(super) summary: &'a dyn Fn(&DiskSummary) -> String,
}

/// Runs the test on all volumes, in turns or at once.
pub(super) fn measure<T: DiskTest + Clone>(
    common: &Common,
    purpose: Purpose,
    test: &Test<'_, T>,
) -> anyhow::Result<Exit> {
    let volumes = common.volumes()?;
    let beside = common.runs.loads.plan()?;
    if purpose == Purpose::ExportFio {
        return export_fio(&test.test, &volumes, &beside);
    }
    let plan = plan(common, test, &volumes, &beside)?;
    if common.runs.dry_run {
        result(&plan);
        return Ok(Exit::Done);
    }
    say(&plan);
    let id = Id::random().context("cannot read random bytes")?.to_string();
    let mut summary = begin(test, &volumes);
    let mut kept =
        common.runs.out.as_deref().map(|out| Kept::begin(out, &id, (&summary).into())).transpose()?;
    let stop = stop_flag()?;
    let mut context = Context {
        clock: Arc::new(SystemClock),
        stop: Arc::clone(&stop),
        sample: Box::new(|_, _| {}),
        note: Box::new(say),
    };
    let directory = format!("keepup-disk-{}", &id[..8]);
    let places = places_of(&volumes, test.together);
    let mut loads = loads::start(&beside, &id[..8], &stop)?;
    let mut tell = |run: &DiskRun| {
        if let Some(kept) = &mut kept {
            kept.disk_run(run);
        }
        if !common.runs.json {
            result(&told(run, test, common.runs.repeats));
        }
    };
    let repeats = common.runs.repeats;
    let done = alternate(&test.test, &places, repeats, &directory, &mut loads, &mut context, &mut tell);
    drop(loads);
    summary.runs = done.runs;
    summary.failure = done.failure.as_ref().map(ToString::to_string);
    summary.interrupted = done.is_interrupted;
    match common.runs.json {
        true => json(&serde_json::to_value(&summary).context("cannot encode the result")?),
        false => result(&page(&summary, test)),
    }
    if let Some(kept) = kept {
        say(&format!("result: {}", kept.finish(&summary)?.display()));
    }
    if let Some(failure) = done.failure {
        let failure = anyhow::Error::from(failure);
        report_error(&failure);
        return Ok(Exit::of(&failure));
    }
    Ok(if stop.load(Ordering::Acquire) { Exit::Interrupted } else { Exit::Done })
}

/// A run for people.
fn told<T>(run: &DiskRun, test: &Test<'_, T>, repeats: u32) -> String {
    let head = format!("{}, run {} of {repeats}", run.place(), run.repeat);
    std::iter::once(head).chain((test.lines)(run)).collect::<Vec<_>>().join("\n")
}

/// All runs for people, with what the loads did beside them.
fn page<T>(summary: &DiskSummary, test: &Test<'_, T>) -> String {
    let loads: Vec<&[LoadResult]> = summary.runs.iter().map(|run| &run.loads[..]).collect();
    std::iter::once((test.summary)(summary)).chain(loads::over_runs(&loads)).collect::<Vec<_>>().join("\n")
}

/// The volumes of each run.
fn places_of(volumes: &[PathBuf], together: bool) -> Vec<Vec<PathBuf>> {
    match together {
        true => vec![volumes.to_vec()],
        false => volumes.iter().map(|volume| vec![volume.clone()]).collect(),
    }
}

/// Looks at the volumes, and says what will be done to them.
fn plan<T: DiskTest>(
    common: &Common,
    test: &Test<'_, T>,
    volumes: &[PathBuf],
    beside: &LoadPlan,
) -> anyhow::Result<String> {
    let cost = test.test.cost();
    for checked in check(volumes, cost.space_bytes)? {
        checked.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    if test.together {
        common_disks(volumes).iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    let runs = f64::from(common.runs.repeats) * places_of(volumes, test.together).len() as f64;
    let held = volumes.iter().map(|volume| (volume.clone(), cost.space_bytes)).collect();
    let time = Duration::try_from_secs_f64(cost.time.as_secs_f64() * runs).unwrap_or(Duration::MAX);
    let beside = announce(beside, &held, Some(time))?;
    let names: Vec<String> = volumes.iter().map(|volume| volume.display().to_string()).collect();
    let told = format!(
        "{} on {}: {runs} {}, at most {:.1} GB written in all, about {:.0} s on a slow disk; \
         removed afterwards",
        test.test.name(),
        names.join(if test.together { " + " } else { ", " }),
        if runs > 1.0 { "runs" } else { "run" },
        cost.bytes_written as f64 / 1e9 * f64::from(common.runs.repeats) * volumes.len() as f64,
        cost.time.as_secs_f64() * runs
    );
    Ok(std::iter::once(told).chain(beside).collect::<Vec<_>>().join("\n"))
}

/// The result before the first run.
fn begin<T: DiskTest>(test: &Test<'_, T>, volumes: &[PathBuf]) -> DiskSummary {
    DiskSummary {
        schema_version: DISK_SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created: rfc3339(SystemClock.unix_ns()),
        command: command(),
        workload: test.test.name().into(),
        plan: test.plan.clone(),
        environment: serde_json::to_value(Environment::collect(volumes, Path::new("/"))).unwrap_or_default(),
        runs: Vec::new(),
        failure: None,
        interrupted: false,
    }
}

/// Prints the test as a job file of fio.
fn export_fio<T: DiskTest>(test: &T, volumes: &[PathBuf], beside: &LoadPlan) -> anyhow::Result<Exit> {
    let file = test.fio(volumes).map_err(|why| usage(format!("no job file for {}: {why}", test.name())))?;
    let beside = match beside.specs.is_empty() {
        true => None,
        false => Some("; loads are not in here: run `keepup load` beside it".to_owned()),
    };
    let head = [
        format!("; {}", command()),
        "; run it with: fio FILE; its files are named keepup-fio-… and stay until you remove them".to_owned(),
        "; with huge pages (mem=mmaphuge) fio costs less CPU, as keepup does where it has them".to_owned(),
    ];
    let head: Vec<String> = head.into_iter().chain(beside).collect();
    result(&format!("{}\n{}", head.join("\n"), file.text()));
    Ok(Exit::Done)
}

impl Common {
    /// The volumes given, or the usual one, which is made.
    pub(super) fn volumes(&self) -> anyhow::Result<Vec<PathBuf>> {
        if !self.volume.is_empty() {
            return Ok(self.volume.clone());
        }
        let volume = default_volume();
        std::fs::create_dir_all(&volume).with_context(|| format!("cannot make {}", volume.display()))?;
        Ok(vec![volume])
    }

    /// The volumes, and what may be written to each, before the test's size is known.
    pub(super) fn room(&self) -> anyhow::Result<Vec<Checked>> {
        Ok(check(&self.volumes()?, 0)?)
    }

    /// Other volumes than those given.
    pub(super) fn set_volumes(&mut self, volumes: Vec<PathBuf>) {
        self.volume = volumes;
    }
}

/// The places of all runs, each once, in the order in which they came.
pub(super) fn places(summary: &DiskSummary) -> Vec<String> {
    let mut places = Vec::new();
    for place in summary.runs.iter().map(DiskRun::place) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// A number with so many digits after the point, or what stands for one that was not measured.
pub(super) fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Median, lowest and highest rate of every phase, what it cost in CPU, and what the loads did meanwhile.
pub(super) fn table(summary: &DiskSummary) -> String {
    let loads = summary.runs.first().map_or(&[][..], |run| &run.loads);
    let heads: String = loads.iter().map(|load| format!(" {:>12}", load_head(load))).collect();
    let mut lines = vec![format!(
        "{:<24} {:<24} {:>4} {:>12} {:>10} {:>10} {:>12} {:>12}{heads}",
        "volume", "phase", "runs", "median MB/s", "lowest", "highest", "CPU s/GB", "machine"
    )];
    for (place, phase) in summary.kinds() {
        let rates: Vec<f64> = summary.rates(&place, phase).map(|rate| rate / 1e6).collect();
        let per_gb = |cpu: &dyn Fn(&DiskPhase) -> Option<f64>| {
            let each = summary.phases(&place, phase).filter_map(cpu).collect::<Vec<_>>();
            figure(median(&each), 3)
        };
        let machine = |phase: &DiskPhase| {
            let gb = phase.bytes as f64 / 1e9;
            phase.machine_cpu_seconds.filter(|_| gb > 0.0).map(|seconds| seconds / gb)
        };
        let beside: String = (0..loads.len())
            .map(|n| format!(" {:>12}", load_cell(summary.phases(&place, phase), n, &loads[n])))
            .collect();
        lines.push(format!(
            "{place:<24} {phase:<24} {:>4} {:>12} {:>10} {:>10} {:>12} {:>12}{beside}",
            rates.len(),
            figure(median(&rates), 1),
            figure(rates.iter().copied().reduce(f64::min), 1),
            figure(rates.iter().copied().reduce(f64::max), 1),
            per_gb(&DiskPhase::cpu_seconds_per_gb),
            per_gb(&machine)
        ));
    }
    lines.push("MB = 10^6 bytes; CPU of keepup with its kernel workers, and of the whole machine".into());
    lines.join("\n")
}

/// Over the column of a load.
fn load_head(load: &LoadResult) -> String {
    let unit = if load.unit == LoadUnit::Cores { "cores" } else { "MB/s" };
    format!("{} {unit}", load.kind)
}

/// What load number `n` achieved beside a phase: the median of all runs.
fn load_cell<'a>(phases: impl Iterator<Item = &'a DiskPhase>, n: usize, load: &LoadResult) -> String {
    let rates: Vec<f64> = phases.filter_map(|phase| phase.load_rates.get(n).copied().flatten()).collect();
    match load.unit {
        LoadUnit::Cores => figure(median(&rates), 2),
        LoadUnit::BytesPerSecond => figure(median(&rates).map(|rate| rate / 1e6), 1),
    }
}
