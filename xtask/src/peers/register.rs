//! `cargo xtask peers register`: compares the register read loop with plain C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::campaign::Campaign;
use super::claims::{Goal, ratio};
use super::contestant::{Contestant, Figure, Run};
use super::group::{Group, select};
use super::options::Options;
use super::program::Program;
use super::render::Head;
use super::runner::Work;
use super::tools::Tool;

/// Method.
const METHOD: &str = "\
- Both programs map 2 MiB of private memory and read 32-bit registers from its start, each with one volatile
  load. A trial reads at least 1000 registers; the figure is the median of 201 trials per depth. A load from
  memory takes less than a nanosecond, so the overhead of the loop is more visible than with device registers,
  which take 100 to 1000 times as long.";
/// Registers per transfer.
const DEPTHS: [u64; 5] = [1, 0x40, 0x400, 0x4000, 0x80000];
const TRIALS: &str = "201";
const REGISTER_BYTES: u64 = 4;
/// Smallest speed relative to the plain loop.
const GOAL: Goal = Goal::AtLeast(0.98);
const LOADS: &str = include_str!("register/loads.c");
const COMPILER: Tool = Tool { program: "cc", package: "gcc" };

/// Checks the names in `--only`.
pub(super) fn check(options: Options) -> Result<Options, String> {
    select(groups(Path::new("keepup"), Path::new("loads")), &options.only)?;
    Ok(options)
}

/// Runs the campaign.
pub(super) fn run(options: &Options) -> Result<()> {
    let campaign = Campaign::prepare(options, &[&COMPILER])?;
    ensure!(COMPILER.is_installed(), "{}", COMPILER.advice());
    let loads = compile(campaign.scratch.path())?;
    let groups = select(groups(&campaign.program, &loads), &options.only).map_err(|why| anyhow!(why))?;
    let head = Head {
        title: "Register loads compared with a plain loop",
        what: format!("{}; memory of this machine", options.rounds_text()),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}

fn compile(directory: &Path) -> Result<PathBuf> {
    let (source, program) = (directory.join("loads.c"), directory.join("loads"));
    fs::write(&source, LOADS).with_context(|| format!("write {}", source.display()))?;
    let mut compiler = Command::new(COMPILER.program);
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(&source);
    ensure!(compiler.status().context("run cc")?.success(), "cc could not compile {}", source.display());
    Ok(program)
}

fn groups(keepup: &Path, loads: &Path) -> Vec<Group> {
    let depths = DEPTHS.map(|depth| format!("{depth:#x}"));
    let read = ["register", "read", "ram", "--method", "mmap", "--json", "--trials", TRIALS, "--depth"];
    let contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(Program {
            name: "keepup",
            program: keepup.to_path_buf(),
            arguments: read.map(str::to_owned).into_iter().chain([depths.join(",")]).collect(),
            shown: None,
            tool: None,
            read: Box::new(read_keepup),
        }),
        Box::new(Program {
            name: "plain-c",
            program: loads.to_path_buf(),
            arguments: depths.to_vec(),
            shown: None,
            tool: None,
            read: Box::new(told_by_loads),
        }),
    ];
    let claim =
        |depth: &u64| ratio("rate", Figure::Rate, "keepup", "plain-c", Some(GOAL)).in_phase(&phase(*depth));
    vec![Group {
        phases: DEPTHS.iter().map(|depth| phase(*depth)).collect(),
        claims: DEPTHS.iter().map(claim).collect(),
        work: Work { bytes: 0, time: Duration::from_secs(1) },
        ..Group::plain("loads", "Registers of 32 bits, read at a time", vec![Figure::Rate], contestants)
    }]
}

fn phase(depth: u64) -> String {
    format!("{depth:#x}")
}

fn transfer(depth: u64, seconds: f64) -> Run {
    Run { phase: phase(depth), bytes: depth * REGISTER_BYTES, events: Some(depth), seconds, ..Run::default() }
}

fn read_keepup(said: &str) -> Result<Vec<Run>> {
    let summary: Value = serde_json::from_str(said).context("parse the output of keepup")?;
    if let Some(failure) = summary["failure"].as_str() {
        bail!("keepup failed: {failure}");
    }
    let points =
        summary["run"]["methods"][0]["points"].as_array().context("no depth in the output of keepup")?;
    let point = |point: &Value| {
        let seconds = point["seconds"].as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
        Some(transfer(point["depth"].as_u64()?, keepup_measure::stats::median(&seconds)?))
    };
    points.iter().map(point).collect::<Option<_>>().context("a depth without trials in the output of keepup")
}

fn told_by_loads(said: &str) -> Result<Vec<Run>> {
    let line = |line: &str| {
        let (depth, ns) = line.split_once(' ')?;
        let (depth, ns) = (depth.parse().ok()?, ns.parse::<f64>().ok()?);
        Some(transfer(depth, ns * depth as f64 / 1e9))
    };
    said.lines().map(line).collect::<Option<_>>().with_context(|| format!("no depth and time: {said:?}"))
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
