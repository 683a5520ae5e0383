//! `keepup compare`: comparison of results.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_campaign::{Candidate, CompareOptions, compare, workload_of};
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::id::Id;
use keepup_reproduce::published_systems;
use keepup_results::{Begun, CompareSummary, Document, Kind, Stored, StoredResult, rfc3339};

use crate::exit::Exit;
use crate::output::{command, json, log, page};

/// Compare results: differences of the machines, then every figure with its interval
///
/// Each RESULT is a result directory or the `result.json` in it. A single result is split into its volumes, a
/// campaign into its cells. Results with the same NAME belong to one system and their values are pooled: run
/// A, B, A, B and name them so, and drift affects both systems alike.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup compare results/sweep-1 results/sweep-2
  keepup compare old=results/a1 new=results/b1 old=results/a2 new=results/b2 --axis kernel
  keepup compare results/concurrent-1 --baseline /data/a     the volumes of one result
  keepup compare before=a.json after=b.json --fail-below 0.95
  keepup compare results/testdisk-1 --published esrf-2007

Exit codes with --fail-below: 1 if a figure is significantly below the limit; 5 if one is below it but
not significantly, or the systems could not be ranked.")]
pub(crate) struct Args {
    /// Results, each with an optional system name
    #[arg(required = true, value_name = "[NAME=]RESULT")]
    results: Vec<String>,
    /// System that counts as 1.00 [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Difference to allow between the systems; repeatable
    ///
    /// One of machine, kernel, network, place, load, keepup, or the name of a setting.
    #[arg(long, value_name = "AXIS")]
    axis: Vec<String>,
    /// Add the published systems of a paper: esrf-2007 or cdf-csl; repeatable
    ///
    /// Published figures have no confidence interval.
    #[arg(long, value_name = "PAPER")]
    published: Vec<String>,
    /// Rank the systems whatever differs between them
    #[arg(long)]
    anyway: bool,
    /// Fail if a rate or mean time is below this share of the baseline, such as 0.95
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_below: Option<f64>,
    /// Compare only figures with this text in their name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print the comparison as one JSON object
    #[arg(long)]
    json: bool,
    /// Store the comparison in a new subdirectory of DIR
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| share.is_finite() && *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("{text:?} is not a share above 0 and at most 1, such as 0.95"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let candidates = candidates(&args.results)?;
    let options = CompareOptions {
        baseline: args.baseline.clone(),
        axes: args.axis.clone(),
        anyway: args.anyway,
        fail_below: args.fail_below,
        only: args.only.clone(),
    };
    let mut published = Vec::new();
    for paper in &args.published {
        let first = candidates.first().and_then(|candidate| candidate.results.first());
        published.extend(published_systems(paper, &first.map(workload_of).unwrap_or_default())?);
    }
    let created_unix_ns = SystemClock.unix_ns();
    let summary = CompareSummary {
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created: rfc3339(created_unix_ns),
        command: command(),
        ..compare(&candidates, &published, &options)?
    };
    match args.json {
        true => json(&Document::value(&summary).context("cannot encode the comparison")?),
        false => page(&Stored::Compare(Box::new(summary.clone()))),
    }
    if let Some(out) = &args.out {
        log(&format!("result: {}", keep(out, &summary, created_unix_ns)?.display()));
    }
    Ok(exit(&summary))
}

/// Exit code from `--fail-below`.
fn exit(summary: &CompareSummary) -> Exit {
    match &summary.limit {
        Some(limit) if !limit.failed.is_empty() => Exit::Failed,
        Some(limit) if !limit.open.is_empty() => Exit::Inconclusive,
        Some(_) if summary.not_ranked.is_some() => Exit::Inconclusive,
        _ => Exit::Done,
    }
}

/// Opens all results and groups them by name.
fn candidates(arguments: &[String]) -> anyhow::Result<Vec<Candidate>> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for argument in arguments {
        let (name, path) = name_and_path(argument);
        let opened = StoredResult::open(&path)?;
        match candidates.iter_mut().find(|candidate| candidate.name == name) {
            Some(candidate) => candidate.results.push(opened),
            None => candidates.push(Candidate { name, results: vec![opened] }),
        }
    }
    Ok(candidates)
}

/// Splits `NAME=PATH`; without a name, the last component of the path is the name.
fn name_and_path(argument: &str) -> (String, PathBuf) {
    if let Some((name, path)) = argument.split_once('=')
        && !name.is_empty()
        && !name.contains('/')
        && !Path::new(argument).exists()
    {
        return (name.to_owned(), PathBuf::from(path));
    }
    let path = PathBuf::from(argument);
    let last = path.file_name().filter(|last| *last != "result.json");
    let last = last.or_else(|| path.parent().and_then(Path::file_name)).map(|last| last.to_string_lossy());
    (last.map_or_else(|| argument.to_owned(), std::borrow::Cow::into_owned), path)
}

fn keep(out: &Path, summary: &CompareSummary, created_unix_ns: u64) -> anyhow::Result<PathBuf> {
    let begun = Begun {
        id: Id::random().context("cannot read random bytes")?.to_string()[..8].to_owned(),
        tool_version: summary.tool_version.clone(),
        created_unix_ns,
        command: summary.command.clone(),
        workload: "compare".into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    };
    super::test_session::store(out, Kind::Compare, summary.schema_version, &begun, summary)
}
