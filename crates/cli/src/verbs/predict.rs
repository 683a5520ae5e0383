//! `keepup predict`: model of other hardware.
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
use keepup_results::{Begun, Document, PredictSummary, PredictedMachine, Prediction, Stored, TestSummary};
use keepup_sys::output as output_file;

use crate::exit::{Exit, usage};
use crate::output::{command, json, log, page};

/// Seed of the random draws, constant so that predictions are reproducible.
const SEED: u64 = 1;

/// Predict the rate and bottleneck of other hardware for a detector
///
/// A machine comes from the catalogue (`keepup predict machines`), from a file, or from a measurement
/// (`keepup predict calibrate RESULT`). Every figure has a source and a range; the interval of the prediction
/// is computed from the ranges. Without --on the prediction covers all current machines of the catalogue.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  keepup predict romanis --on papers/romanis --sweep disks=1..8
  keepup predict eiger2-4m --on today/camera-pc --with disks=6,net=ethernet-100g
  keepup predict csl --on papers/cdf-logger --hosts 4
  keepup predict calibrate results/qualify-1 > here.toml; keepup predict jungfrau --on ./here.toml
  keepup predict papers                     published figures and those of the model

Exit codes: 1 if no predicted machine reaches the required rate with the headroom of the profile.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    one: OneArgs,
}

#[derive(Subcommand)]
enum Verb {
    /// List the parts of the catalogue, or show the figures of one with their sources
    Parts {
        /// Name of a part, or a substring
        name: Option<String>,
    },
    /// List the machines of the catalogue, or print one as a file
    Machines {
        /// Name of a machine
        name: Option<String>,
    },
    /// Compare published figures of five papers with those of the model
    Papers(PapersArgs),
    /// Print a machine file from a qualification
    Calibrate(calibrate::Args),
}

#[derive(clap::Args)]
struct PapersArgs {
    /// cdf-csl, cern-vme, esrf-2007, romanis or tweakers-pci [default: all]
    paper: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
struct OneArgs {
    /// Detector: a built-in profile or the path of a profile file
    profile: Option<String>,
    /// Machine: a name of the catalogue or the path of a file
    #[arg(long, value_name = "MACHINE")]
    on: Option<String>,
    /// Change the machine: NAME=COUNT, NAME=PART or NAME.FIGURE=VALUE
    #[arg(long, value_name = "SETTING", value_delimiter = ',')]
    with: Vec<String>,
    /// Number of machines in parallel
    #[arg(long, value_name = "N")]
    hosts: Option<u32>,
    /// Vary one setting: disks=1..8 or bus=pcie3x4,pcie3x8
    #[arg(long, value_name = "SETTING")]
    sweep: Option<Sweep>,
    /// Data path through the machine [default: its main path]
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// Payload of one operation [default: the path's, or the profile's event]
    #[arg(long, value_name = "SIZE")]
    operation: Option<Bytes>,
    /// Concurrent operations, for closed-loop transfers [default: a stream]
    #[arg(long, value_name = "N")]
    outstanding: Option<u32>,
    /// Stall that the buffer must bridge; repeatable
    #[arg(long, value_name = "TIME")]
    stall: Vec<Span>,
    /// Time from the end of one stall to the start of the next, to simulate loss
    #[arg(long, value_name = "TIME", requires = "stall")]
    stall_every: Option<Span>,
    /// Buffer memory for stalls
    #[arg(long, value_name = "SIZE", requires = "stall")]
    buffer: Option<Bytes>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
struct OutputArgs {
    /// Print the prediction as one JSON object
    #[arg(long)]
    json: bool,
    /// Also write an HTML report with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Store the prediction in a new subdirectory of DIR
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Some(Verb::Parts { name }) => list::parts(name.as_deref()),
        Some(Verb::Machines { name }) => list::machines(name.as_deref()),
        Some(Verb::Papers(args)) => papers(args),
        Some(Verb::Calibrate(args)) => calibrate::run(args),
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
    print(&summary, &args.output)?;
    Ok(Exit::Done)
}

fn of_profile(args: &OneArgs) -> anyhow::Result<Exit> {
    let Some(name) = &args.profile else {
        let why = Cause::new("cannot predict: no profile given");
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
    print(&summary, &args.output)?;
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
        event_bytes: Some(event),
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

/// Summary with the question and the assumptions, without the prediction.
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
        event_bytes: ask.event_bytes,
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

/// Limits of every prediction.
fn limits() -> impl Iterator<Item = String> {
    let limits = [
        "This is a prediction, not a measurement. The stages of the path work in parallel, and the slowest \
         one sets the rate.",
        "The interval follows from the ranges of the figures. It does not include the error of the model: \
         see `keepup predict papers`.",
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

fn print(summary: &PredictSummary, output: &OutputArgs) -> anyhow::Result<()> {
    let stored = Stored::Predict(Box::new(summary.clone()));
    match output.json {
        true => json(&Document::value(summary).context("cannot encode the prediction")?),
        false => page(&stored),
    }
    if let Some(path) = &output.html {
        let html = keepup_report::html(&stored, &keepup_report::History::default());
        output_file::write(path, html.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        log(&format!("report: {}", path.display()));
    }
    if let Some(out) = &output.out {
        log(&format!("result: {}", keep(out, summary)?.display()));
    }
    Ok(())
}

fn keep(out: &Path, summary: &PredictSummary) -> anyhow::Result<PathBuf> {
    let begun = Begun {
        id: summary.id.clone(),
        created_unix_ns: keepup_results::unix_ns(&summary.created).unwrap_or_default(),
        ..begun(&format!("predict-{}", summary.workload))?
    };
    super::test_session::store(out, PredictSummary::KIND, PredictSummary::SCHEMA_VERSION, &begun, summary)
}
