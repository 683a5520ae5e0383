//! Trace replay by keepup and fio, and parsers of their output.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use keepup_measure::sum::Sums;
use serde_json::Value;

use super::traces::{FILE_BYTES, Trace};
use crate::peers::children::Running;
use crate::peers::contestant::{Contestant, Lateness, Run, RunLimits};
use crate::peers::fio::{TOOL, jobs};
use crate::peers::tools::{Tool, typed};

/// Target of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Null target.
    Nowhere,
    /// File in the directory of the run.
    File,
}

/// Parser of a run in the output of a program.
type Reader = Box<dyn Fn(&str) -> Result<Run>>;

/// Program that replays a trace, optionally after a preparation.
pub(super) struct Replayer {
    name: &'static str,
    program: PathBuf,
    /// Arguments of the uncounted preparation that creates the file.
    before: Option<Vec<String>>,
    arguments: Vec<String>,
    tool: Option<&'static Tool>,
    /// Exit codes with a result.
    codes: &'static [i32],
    read: Reader,
}

/// keepup in `mode`. `seconds` is the duration of the trace, if not in the result.
pub(super) fn keepup(
    program: &Path,
    name: &'static str,
    trace: &Path,
    target: Target,
    mode: &str,
    seconds: Option<f64>,
) -> Replayer {
    let where_to = match target {
        Target::Nowhere => "--target null",
        Target::File => "--volume . --engine io_uring --access direct",
    };
    Replayer {
        name,
        program: program.to_path_buf(),
        before: None,
        arguments: with_trace(
            ["replay".into(), trace.to_string_lossy().into_owned()],
            &[where_to, "--mode", mode, "--json"],
        ),
        tool: None,
        // 1: the trace timing was not kept, which is what is measured.
        codes: &[0, 1],
        read: Box::new(move |said| read_keepup(said, seconds)),
    }
}

/// fio with `flags` for its engine and `trace` at `path`.
pub(super) fn fio(name: &'static str, path: &Path, trace: Trace, target: Target, flags: &str) -> Replayer {
    let fill = format!(
        "--name=fill --filename=target --rw=write --bs=1m --size={FILE_BYTES} --direct=1 --refill_buffers \
         --end_fsync=1"
    );
    let log = format!("--read_iolog={}", path.display());
    Replayer {
        name,
        program: TOOL.program.into(),
        before: (target == Target::File).then(|| fill.split_whitespace().map(str::to_owned).collect()),
        arguments: with_trace(["--name=peer".into(), log], &[flags, "--thread=1 --output-format=json"]),
        tool: Some(&TOOL),
        codes: &[0],
        read: Box::new(move |said| read_fio(said, trace)),
    }
}

fn with_trace(first: [String; 2], rest: &[&str]) -> Vec<String> {
    let rest = rest.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned);
    first.into_iter().chain(rest).collect()
}

impl Contestant for Replayer {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        typed(&self.program, &self.arguments)
    }

    fn tool(&self) -> Option<&'static Tool> {
        self.tool
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let start = |arguments: &[String]| {
            let mut command = Command::new(&self.program);
            command.args(arguments).current_dir(limits.directory);
            Running::start(command)
        };
        if let Some(arguments) = &self.before {
            start(arguments)?.finish(limits.time)?;
        }
        let (_, said) = start(&self.arguments)?.finish_with(limits.time, self.codes)?;
        Ok(vec![(self.read)(&said)?])
    }
}

/// Relative error of `took`.
fn error(took: f64, wanted: f64) -> f64 {
    (took / wanted - 1.0).abs()
}

/// Parses the passes of keepup, without the first.
fn read_keepup(said: &str, seconds: Option<f64>) -> Result<Run> {
    let summary: Value = serde_json::from_str(said).context("parse the output of keepup")?;
    if let Some(failure) = summary["failure"].as_str() {
        bail!("keepup failed: {failure}");
    }
    let passes = summary["passes"].as_array().context("no pass in the output of keepup")?;
    let warm: Vec<&Value> = passes.iter().filter(|pass| pass["is_cold"] == false).collect();
    ensure!(!warm.is_empty(), "no pass that counts in the output of keepup");
    ensure!(warm.iter().all(|pass| pass["failed"] == 0), "requests of keepup failed");
    let sum = |key: &str| {
        let figures: Option<Vec<f64>> = warm.iter().map(|pass| pass[key].as_f64()).collect();
        Some(figures?.iter().float_sum())
    };
    let figures = sum("requests").zip(sum("seconds")).zip(sum("cpu_seconds"));
    let ((requests, took), cpu) = figures.context("no rate in the output of keepup")?;
    let worst = |what: &str, key: &str| warm.iter().filter_map(|p| p[what][key].as_f64()).reduce(f64::max);
    let late = |key: &str| worst("lateness", key);
    let lateness = late("p50_ns").zip(late("p99_ns")).zip(late("max_ns"));
    let each = seconds.map(|wanted| error(took / warm.len() as f64, wanted));
    Ok(Run {
        events: Some(requests as u64),
        seconds: took,
        billed_ns: Some((cpu * 1e9) as u64),
        span_error: each.or(worst("fidelity", "span_error")),
        lateness: lateness.map(|((p50, p99), max)| Lateness {
            p50_ns: p50 as u64,
            p99_ns: p99 as u64,
            max_ns: max as u64,
        }),
        ..Run::default()
    })
}

/// Parses the only job of fio.
fn read_fio(said: &str, trace: Trace) -> Result<Run> {
    let run = jobs(said)?.pop().context("no job in the output of fio")?;
    ensure!(run.events == Some(trace.requests), "fio made {:?} of {} requests", run.events, trace.requests);
    let span_error = error(run.seconds, trace.span_seconds());
    Ok(Run { phase: String::new(), bytes: 0, span_error: Some(span_error), ..run })
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
