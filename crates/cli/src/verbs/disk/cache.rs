//! `keepup disk cache`: how much of what is written the page cache keeps.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use keepup_measure::memory::Memory;
use keepup_results::{CacheFinding, CacheStep, DiskFinding, DiskRun, DiskSummary};
use keepup_workload::disk::cache::{CacheProbe, Limit};

use super::run::{Common, Purpose, Test, measure};
use crate::args::size;
use crate::exit::Exit;

/// Find how large the page cache is: how much may be written until the first of it must be read from disk
///
/// Files are written through the page cache, then the first is read back and timed. The totals are doubled,
/// then the gap is halved. A disk test through the cache that is smaller than what is found measures memory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk cache --volume /data/a
  keepup disk cache --volume /data/a --max '8 GiB' --repeats 3")]
pub(crate) struct Args {
    /// Size of each file
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "128 MiB")]
    file: u64,
    /// Most that is written at a time [default: twice the memory, as far as there is room]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max: Option<u64>,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    if args.file < 1 << 20 {
        return Err(crate::verbs::record::usage("a file below 1 MiB is read too fast to be timed"));
    }
    let limit = match args.max {
        Some(bytes) => Limit { bytes, by: "--max".into() },
        None => {
            let memory = Memory::read(Path::new("/")).context("cannot tell how much memory there is")?;
            Limit::of(&args.common.room()?, memory.total_bytes)
        }
    };
    if limit.bytes < args.file {
        return Err(crate::verbs::record::usage(format!(
            "{} allows {} bytes, less than one file\nhint: a smaller --file",
            limit.by, limit.bytes
        )));
    }
    let plan = serde_json::json!({
        "file_bytes": args.file, "limit_bytes": limit.bytes, "limit": limit.by, "access": "buffered",
    });
    let test = CacheProbe { file_bytes: args.file, limit };
    let test = Test { test, together: false, plan, lines: &lines, summary: &summary };
    measure(&args.common, purpose, &test)
}

fn finding(run: &DiskRun) -> Option<&CacheFinding> {
    match &run.finding {
        Some(DiskFinding::Cache(finding)) => Some(finding),
        _ => None,
    }
}

fn gb(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

/// The two references and every total that was tried.
fn lines(run: &DiskRun) -> Vec<String> {
    let Some(finding) = finding(run) else { return Vec::new() };
    let rate = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{:.0} MB/s", rate / 1e6));
    let references = format!(
        "  from memory {}, from the volume {}",
        rate(finding.cached_bytes_per_second),
        rate(finding.cold_bytes_per_second)
    );
    let head = format!(
        "  {:>6} {:>12} {:>14} {:>12} {:>12} {:>14}",
        "files", "written", "first, MB/s", "from memory", "the kernel", "kernel's cache"
    );
    let step = |step: &CacheStep| {
        format!(
            "  {:>6} {:>12} {:>14.0} {:>10.0} % {:>12} {:>14}",
            step.files,
            gb(step.total_bytes),
            finding.file_bytes as f64 / step.seconds / 1e6,
            step.cached_share * 100.0,
            step.resident_share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0)),
            step.memory.map_or("-".into(), |memory| gb(memory.cached_bytes))
        )
    };
    [references, head].into_iter().chain(finding.steps.iter().map(step)).collect()
}

/// For every volume: between which totals the cache ends, over all runs, and what follows for other tests.
fn summary(summary: &DiskSummary) -> String {
    let mut places: BTreeMap<String, Vec<&CacheFinding>> = BTreeMap::new();
    for run in &summary.runs {
        places.entry(run.place()).or_default().extend(finding(run));
    }
    let told = places.iter().flat_map(|(place, findings)| conclusion(place, findings));
    told.chain(["GB = 10^9 bytes".to_owned()]).collect::<Vec<_>>().join("\n")
}

fn conclusion(place: &str, findings: &[&CacheFinding]) -> Vec<String> {
    let mut lines = Vec::new();
    let ends: Vec<(u64, u64)> =
        findings.iter().filter_map(|found| Some((found.cached_bytes, found.evicted_bytes?))).collect();
    let lowest = ends.iter().map(|(cached, _)| *cached).min();
    let highest = ends.iter().map(|(_, evicted)| *evicted).max();
    if let (Some(lowest), Some(highest)) = (lowest, highest) {
        let runs = if ends.len() == 1 { "1 run".into() } else { format!("{} runs", ends.len()) };
        lines.push(format!("{place}: the page cache keeps {} to {} ({runs})", gb(lowest), gb(highest)));
        lines.push(format!(
            "  files of at least {} defeat this cache when they are read from the front; of random reads in \
             a file of that size most still hit it",
            gb(highest)
        ));
    }
    for found in findings {
        if let Some(why) = &found.unanswered {
            let kept = gb(found.cached_bytes);
            lines.push(format!(
                "{place}: the size of the page cache is not known: {why}; it keeps {kept} or more"
            ));
        }
    }
    if let Some(before) = findings.first().and_then(|found| found.before) {
        lines.push(format!(
            "  the kernel, before: {} of {} of memory available, {} in the cache",
            gb(before.available_bytes),
            gb(before.total_bytes),
            gb(before.cached_bytes)
        ));
    }
    lines
}
