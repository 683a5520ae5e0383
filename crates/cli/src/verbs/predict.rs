//! `keepup predict`: what a machine would do that is not there to be measured.
mod calibrate;
mod list;
mod machines;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_model::{Ask, Machine, SAMPLES, Sweep, assumptions, predict, predicted_papers};
use keepup_plan::units::{Bytes, Span};
use keepup_plan::{Profile, load};
use keepup_results::{Begun, PredictSummary, PredictedMachine, Prediction, Stored, TestSummary};

use crate::exit::{Exit, usage};
use crate::output::{command, json, page, say};

/// Where draws from the ranges come from: the same question has the same answer.
const SEED: u64 = 1;

/// Predict what a machine does for a detector: rate, bottleneck and runner-up, what would be enough
///
/// A machine is one of the catalogue (`keepup predict machines`), a file of your own, or one calibrated from
/// what was measured (`keepup predict calibrate RESULT`). Every number of it has a source, and a range from
/// which the interval of the answer is drawn. Without --on all machines of today are asked.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  keepup predict romanis --on papers/romanis --sweep disks=1..8
  keepup predict eiger2-4m --on today/camera-pc --with disks=6,net=ethernet-100g
  keepup predict csl --on papers/cdf-logger --hosts 4
  keepup predict calibrate results/qualify-1 > here.toml; keepup predict jungfrau --on ./here.toml
  keepup predict papers                     published figures beside the model's

Exit codes: 1 when one machine was asked about and it is not enough.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(Subcommand)]
enum What {
    /// The parts of the catalogue, or one of them with its figures and their sources
    Parts {
        /// Name of a part, or a piece of it
        name: Option<String>,
    },
    /// The machines of the catalogue, or one of them as a file
    Machines {
        /// Name of a machine
        name: Option<String>,
    },
    /// Published figures of five papers beside the model's
    Papers(PapersArgs),
    /// Make a machine of a qualification, as a file on standard output
    Calibrate(calibrate::Args),
}

#[derive(clap::Args)]
struct PapersArgs {
    /// cdf-csl, cern-vme, esrf-2007, romanis or tweakers-pci; all without a name
    paper: Vec<String>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct OneArgs {
    /// The detector: a built-in profile or a file
    profile: Option<String>,
    /// The machine: a name of the catalogue, or a path to a file
    #[arg(long, value_name = "MACHINE")]
    on: Option<String>,
    /// Change it: NAME=4 how many, NAME=PART of what, NAME.FIGURE=VALUE; several with commas
    #[arg(long, value_name = "SETTING", value_delimiter = ',')]
    with: Vec<String>,
    /// So many such machines side by side
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// One setting that takes several values: disks=1..8 or bus=pcie3x4,pcie3x8
    #[arg(long, value_name = "SETTING")]
    sweep: Option<Sweep>,
    /// Path of data through the machine [default: its main one]
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// Payload of one operation [default: the path's own, or the profile's event]
    #[arg(long, value_name = "SIZE")]
    operation: Option<Bytes>,
    /// Operations under way at a time, where each waits for those before it [default: a stream]
    #[arg(long, value_name = "N")]
    outstanding: Option<u32>,
    /// A stall that memory has to bridge; once for each
    #[arg(long, value_name = "TIME")]
    stall: Vec<Span>,
    /// From the end of one stall to the next: how much memory, or what is lost, is simulated
    #[arg(long, value_name = "TIME", requires = "stall")]
    stall_every: Option<Span>,
    /// Memory that there is for stalls
    #[arg(long, value_name = "SIZE", requires = "stall")]
    buffer: Option<Bytes>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct How {
    /// Print the prediction as one JSON object
    #[arg(long)]
    json: bool,
    /// Write the page with its charts to this file too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Keep the prediction too, in a directory of its own below this one
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.what {
        Some(What::Parts { name }) => list::parts(name.as_deref()),
        Some(What::Machines { name }) => list::machines(name.as_deref()),
        Some(What::Papers(args)) => papers(args),
        Some(What::Calibrate(args)) => calibrate::run(args),
        None => of_profile(&args.one),
    }
}

fn papers(args: &PapersArgs) -> anyhow::Result<Exit> {
    let mut summary = PredictSummary::begun(&begun("papers")?);
    let papers = predicted_papers(&args.paper, SAMPLES, SEED)?;
    if papers.cells.iter().any(|cell| cell.paper == "esrf-2007") {
        let scatter = 100.0 * keepup_reproduce::esrf_repeatability();
        summary.limits.push(format!(
            "Repeatability of ESRF's figures: {scatter:.1} % (standard deviation of pairs with and without \
             load, off the shared bus). Smaller differences are not significant."
        ));
    }
    summary.papers = Some(papers);
    tell(&summary, &args.how)?;
    Ok(Exit::Done)
}

fn of_profile(args: &OneArgs) -> anyhow::Result<Exit> {
    let Some(name) = &args.profile else {
        let why = Cause::new("cannot predict: no profile is named");
        return Err(usage(why.with_hint("keepup profile list, or keepup predict --help")));
    };
    let profile = load(name)?;
    let Some(on) = &args.on else { return machines::all(&profile, args) };
    let mut machine = machines::load(on)?;
    for setting in &args.with {
        machine.with(setting)?;
    }
    machine.hosts = args.hosts.unwrap_or(machine.hosts);
    let ask = ask(&profile, &machine, args);
    let mut summary = summary(&profile, &machine, &ask, args)?;
    match &args.sweep {
        None => summary.points = vec![predict(&machine, &ask, "")?],
        Some(sweep) => {
            summary.sweep = Some(sweep.axis.clone());
            for (label, setting) in sweep.settings() {
                let mut changed = machine.clone();
                changed.with(&setting)?;
                summary.points.push(predict(&changed, &ask, label)?);
            }
        }
    }
    tell(&summary, &args.how)?;
    Ok(exit(&summary))
}

fn exit(summary: &PredictSummary) -> Exit {
    let is_short = |point: &Prediction| point.headroom.is_some_and(|head| head < summary.headroom_wanted);
    if summary.points.iter().all(is_short) { Exit::Failed } else { Exit::Done }
}

fn ask(profile: &Profile, machine: &Machine, args: &OneArgs) -> Ask {
    let path = args.path.as_deref().unwrap_or(&machine.main);
    let own = machine.path.get(path).is_some_and(|path| path.operation.is_some());
    let event = profile.event.mean_bytes();
    Ask {
        path: args.path.clone(),
        operation_bytes: args.operation.map(|size| size.0 as f64).or((!own).then_some(event)),
        required_bytes_per_second: Some(profile.required_bytes_per_second()),
        headroom: profile.headroom,
        outstanding: args.outstanding,
        stall_seconds: args.stall.iter().map(|stall| stall.0.as_secs_f64()).collect(),
        stall_every_seconds: args.stall_every.map(|every| every.0.as_secs_f64()),
        buffer_bytes: args.buffer.map(|size| size.0 as f64),
        samples: SAMPLES,
        seed: SEED,
    }
}

/// What is asked, and on what the answer will rest.
fn summary(
    profile: &Profile,
    machine: &Machine,
    ask: &Ask,
    args: &OneArgs,
) -> anyhow::Result<PredictSummary> {
    let mut summary = PredictSummary::begun(&begun(&profile.name)?);
    summary.machine = PredictedMachine {
        name: machine.name.clone(),
        title: machine.title.clone(),
        path: ask.path_of(machine).to_owned(),
        operation_bytes: ask.system(machine)?.operation_bytes,
        operations_under_way: ask.outstanding,
        with: args.with.clone(),
        hosts: machine.hosts,
    };
    summary.required_bytes_per_second = ask.required_bytes_per_second;
    summary.headroom_wanted = ask.headroom;
    summary.assumptions = assumptions(machine, ask)?;
    summary.limits = machine.notes.iter().cloned().chain(limits()).collect();
    Ok(summary)
}

/// What no prediction has in it.
fn limits() -> impl Iterator<Item = String> {
    let limits = [
        "A prediction: nothing was measured. Stages of the path work at the same time, and the slowest one \
         sets the rate.",
        "The interval is drawn from the ranges of the numbers, not from the error of the model itself: see \
         `keepup predict papers` for that.",
    ];
    limits.into_iter().map(str::to_owned)
}

fn begun(workload: &str) -> anyhow::Result<Begun> {
    let id = keepup_recording::id::Id::random().context("cannot read random bytes")?;
    Ok(Begun {
        id: id.to_string()[..8].to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_ns: SystemClock.unix_ns(),
        command: command(),
        workload: workload.to_owned(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    })
}

fn tell(summary: &PredictSummary, how: &How) -> anyhow::Result<()> {
    let stored = Stored::Predict(Box::new(summary.clone()));
    match how.json {
        true => json(&serde_json::to_value(summary).context("cannot encode the prediction")?),
        false => page(&stored),
    }
    if let Some(path) = &how.html {
        let html = keepup_report::html(&stored, &keepup_report::History::default());
        std::fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("report: {}", path.display()));
    }
    if let Some(out) = &how.out {
        say(&format!("result: {}", keep(out, summary)?.display()));
    }
    Ok(())
}

fn keep(out: &Path, summary: &PredictSummary) -> anyhow::Result<PathBuf> {
    let begun = Begun {
        id: summary.id.clone(),
        created_unix_ns: keepup_results::unix_ns(&summary.created).unwrap_or_default(),
        ..begun(&format!("predict-{}", summary.workload))?
    };
    super::sitting::keep(out, PredictSummary::KIND, PredictSummary::SCHEMA_VERSION, &begun, summary)
}
