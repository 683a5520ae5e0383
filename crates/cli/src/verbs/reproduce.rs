//! `keepup reproduce`: a paper's campaign on this machine, with its own tables.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use keepup_campaign::parse;
use keepup_reproduce::{PaperRequest, Reproduction, campaign_text, names, reproduction};

use super::campaign::{How, start};
use crate::args::volumes_or_default;
use crate::exit::{Exit, UsageError};
use crate::output::{LOG_VARIABLE, result, say};

/// Repeat one of the five papers that keepup grew out of on this machine, in the paper's own tables
///
/// A campaign with commands of keepup for what the paper measured, then the paper's tables and figures with
/// this machine beside the published systems, what was found, and which of the paper's claims do not follow
/// from its own numbers. It leaves a campaign's directory with all results and a report.html.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup reproduce esrf-2007 --volume /data/a --dry-run
  keepup reproduce cdf-csl --volume /data/a --volume /data/b
  keepup reproduce romanis --volume /data/a --volume /data/b --raid /data/striped
  keepup reproduce tweakers-pci --scale 0.1
  keepup reproduce cern-vme --target pci:0000:04:00.0/bar0 --with crate-7.json
  keepup reproduce esrf-2007 --print > mine.toml      the campaign itself, to be changed and run")]
pub(crate) struct Args {
    /// esrf-2007, cdf-csl, cern-vme, tweakers-pci or romanis
    #[arg(value_name = "PAPER", value_parser = known)]
    paper: String,
    /// Directory on a disk to measure; once for each disk [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// A directory on a RAID 0 of the same disks, of romanis
    #[arg(long, value_name = "DIR")]
    raid: Option<PathBuf>,
    /// What registers are read of, as `keepup register read` takes it, of cern-vme; once for each
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
    /// A result measured elsewhere that belongs into the tables, of cern-vme; once for each
    #[arg(long, value_name = "RESULT")]
    with: Vec<PathBuf>,
    /// Part of the paper's amounts of data that is moved
    #[arg(long, default_value_t = 1.0, value_parser = scale, value_name = "SHARE")]
    scale: f64,
    /// Runs of each cell [default: what suits the paper]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// Print the campaign's file, and stop
    #[arg(long)]
    print: bool,
    /// List the cells, and what they write, hold and take, and stop
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Directory for the campaign's own
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

fn known(text: &str) -> Result<String, String> {
    match reproduction(text) {
        Some(paper) => Ok(paper.name().to_owned()),
        None => Err(format!("there is no such paper; there are: {}", names().join(", "))),
    }
}

fn scale(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("{text:?} is not a part above 0 and at most 1"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let paper = reproduction(&args.paper)
        .ok_or_else(|| UsageError::new(format!("there is no paper {:?}", args.paper)))?;
    let volumes = volumes_or_default(&args.volume)?;
    let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    // What does not lie there yet.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let request = PaperRequest {
        // A campaign may be gone on with from another directory.
        volumes: volumes.iter().map(real).collect(),
        scale: args.scale,
        repetitions: args.repeats,
        raid: args.raid.as_ref().map(real),
        targets: args.target.clone(),
        with: args.with.iter().map(real).collect(),
        // Traces of another length are other ones.
        traces: absolute(&args.out).join(format!("{}-traces-{}", args.paper, args.scale)),
    };
    let text = campaign_text(paper, &request)?;
    if args.print {
        result(&text);
        return Ok(Exit::Done);
    }
    make_traces(paper, &request)?;
    let campaign = parse(&text, &args.paper, &names())?;
    start(campaign, &text, &How { out: &args.out, dry_run: args.dry_run, json: args.json })
}

/// Makes up the traces that are replayed, as `keepup trace make` does; those that are there stay.
fn make_traces(paper: &dyn Reproduction, request: &PaperRequest) -> anyhow::Result<()> {
    let traces = paper.traces(request.scale);
    for wanted in traces {
        let room = request.traces.join(wanted.folder);
        std::fs::create_dir_all(&room).with_context(|| format!("cannot make {}", room.display()))?;
        let path = room.join(format!("{}.trace", wanted.personality));
        if !path.exists() {
            say(&format!("making up the trace {}", path.display()));
            make_trace(wanted.personality, &wanted.time, &path)?;
        }
    }
    Ok(())
}

fn make_trace(personality: &str, time: &str, path: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let mut command = Command::new(program);
    command.args(["trace", "make", personality]).arg(path).args(["--time", time]).env_remove(LOG_VARIABLE);
    let ended = command.stdin(Stdio::null()).output().context("cannot run keepup trace make")?;
    match ended.status.success() {
        true => Ok(()),
        false => anyhow::bail!(
            "keepup trace make {personality}: {}",
            String::from_utf8_lossy(&ended.stderr).trim_start_matches("error: ").trim_end()
        ),
    }
}
