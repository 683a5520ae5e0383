//! `keepup campaign`: matrices of runs.
mod cells;
mod runner;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use keepup_campaign::{
    Campaign, CampaignDirectory, DriveOutcome, Forecasts, RunDone, State, StoredCampaign, drive, load,
    summarise,
};
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::environment::Environment;
use keepup_recording::id::Id;
use keepup_results::{Begun, CampaignSummary, Ended, Stored};

use self::runner::Child;
use crate::exit::Exit;
use crate::forecast::foretell;
use crate::output::{command, json, page, result, say, tell};
use crate::signals::stop_flag;

/// Run a matrix of measurements in turns: configurations against tests, each compared with a baseline
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup campaign run two-disks.toml --dry-run
  keepup campaign run two-disks.toml --out results
  keepup campaign status results/two-disks-20261122T093000Z-0123abcd
  keepup campaign resume results/two-disks-20261122T093000Z-0123abcd")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Run(RunArgs),
    Resume(ResumeArgs),
    Status(StatusArgs),
}

/// Run the campaign of a file
///
/// Every cell is a command of keepup with a result of its own. Ends with 1 when any run was not fit, lost
/// data or crashed; else with 4 when any could not be made here; else with 5 when any is inconclusive, or a
/// rule of [stop] left some; else with 0.
#[derive(clap::Args)]
struct RunArgs {
    /// What varies, in TOML
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory for the campaign's own
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// List the cells, and what they write, hold and take, and stop
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Go on with a campaign that was interrupted, killed, or ended by one of its rules
///
/// A run that was cut off is made again; what it left is kept aside. Title, repetitions and [stop] may be
/// changed in the directory's campaign.toml before.
#[derive(clap::Args)]
struct ResumeArgs {
    /// The campaign's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Go on though the order, the baseline or keepup itself is another by now
    #[arg(long)]
    anyway: bool,
    /// Run again what failed; what it left is kept aside
    #[arg(long)]
    failed: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Tell how far a campaign is, also while it runs
#[derive(clap::Args)]
struct StatusArgs {
    /// The campaign's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Run(args) => begin(args),
        Verb::Resume(args) => resume(args),
        Verb::Status(args) => status(args),
    }
}

/// What is done with a campaign.
pub(super) struct How<'a> {
    /// Directory for the campaign's own.
    pub(super) out: &'a Path,
    /// Only told.
    pub(super) dry_run: bool,
    /// Printed as one JSON object.
    pub(super) json: bool,
}

fn begin(args: &RunArgs) -> anyhow::Result<Exit> {
    let (campaign, text) = load(&args.file, &keepup_reproduce::names())?;
    start(campaign, &text, &How { out: &args.out, dry_run: args.dry_run, json: args.json })
}

/// Runs a campaign from its begin; `text` is its file's.
pub(super) fn start(campaign: Campaign, text: &str, how: &How<'_>) -> anyhow::Result<Exit> {
    let stop = stop_flag()?;
    let Some(forecasts) = looked_at(&campaign, &stop)? else { return Ok(Exit::Interrupted) };
    let state = State::new(campaign.clone(), forecasts.clone());
    let forecast = table::forecast(&state, &forecasts);
    if how.dry_run {
        foretell(&forecast, how.json);
        return Ok(Exit::Done);
    }
    say(&table::announcement(&state, &forecast));
    let volumes: Vec<PathBuf> = forecast.space_bytes.keys().map(PathBuf::from).collect();
    let environment = Environment::collect(&volumes, Path::new("/"));
    let begun = Begun {
        id: Id::random().context("cannot read random bytes")?.to_string()[..8].to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_ns: SystemClock.unix_ns(),
        command: command(),
        workload: campaign.name.clone(),
        plan: serde_json::to_value(&campaign).context("cannot encode the campaign")?,
        environment: serde_json::to_value(environment).unwrap_or_default(),
    };
    let directory = CampaignDirectory::create(how.out, text, &begun)?;
    Sitting { state, begun, directory, stop, is_json: how.json }.sit()
}

fn resume(args: &ResumeArgs) -> anyhow::Result<Exit> {
    let path = &args.directory;
    let directory = CampaignDirectory::resume(path)?;
    let mut found = CampaignDirectory::read(path)?;
    let (campaign, _) = load(&CampaignDirectory::plan_of(path), &keepup_reproduce::names())?;
    found.check_resume(path, &campaign, env!("CARGO_PKG_VERSION"), args.anyway)?;
    if args.failed {
        found.discard_failed();
    }
    found.read_figures(path);
    let stop = stop_flag()?;
    let Some(forecasts) = looked_at(&campaign, &stop)? else { return Ok(Exit::Interrupted) };
    let state = known(campaign, forecasts, found.runs);
    say(&table::announcement(&state, &state.forecast_left()));
    Sitting { state, begun: found.begun, directory, stop, is_json: args.json }.sit()
}

fn status(args: &StatusArgs) -> anyhow::Result<Exit> {
    let mut found: StoredCampaign = CampaignDirectory::read(&args.directory)?;
    // Only then do figures decide what is left.
    if found.campaign.stop.half_width.is_some() {
        found.read_figures(&args.directory);
    }
    let (is_running, begun) = (found.is_running, found.begun);
    let state = known(found.campaign, Forecasts::default(), found.runs);
    match args.json {
        true => json(&table::status_json(&state, is_running)),
        false => result(&table::status(&state, &begun, is_running)),
    }
    Ok(Exit::Done)
}

/// All cells looked at: their commands, then what these would cost; none when the user wants an end.
fn looked_at(campaign: &Campaign, stop: &AtomicBool) -> anyhow::Result<Option<Forecasts>> {
    let cells = campaign.cells();
    cells::check(campaign, &cells)?;
    cells::forecasts(campaign, &cells, stop)
}

/// A campaign of which these runs ended.
fn known(campaign: Campaign, forecasts: Forecasts, runs: Vec<RunDone>) -> State {
    let mut state = State::new(campaign, forecasts);
    runs.into_iter().for_each(|run| state.take(run));
    state
}

/// A campaign that is run.
struct Sitting {
    state: State,
    begun: Begun,
    directory: CampaignDirectory,
    stop: Arc<AtomicBool>,
    is_json: bool,
}

impl Sitting {
    fn sit(mut self) -> anyhow::Result<Exit> {
        let mut child = Child::new(Arc::clone(&self.stop))?;
        let ended = drive(&mut self.state, &mut self.directory, &mut child, &SystemClock);
        drop(child);
        let (ending, failure) = match ended {
            Ok(ending) => (ending, None),
            Err(why) => (DriveOutcome::default(), Some(why)),
        };
        let why = failure.as_ref().map(ToString::to_string);
        let ended = Ended { failure: why, interrupted: ending.is_interrupted };
        let mut summary = summarise(&self.state, &self.begun, ending.stopped, ended);
        let paper = self.state.campaign().paper.clone();
        summary.paper = keepup_reproduce::page(paper.as_ref(), &summary, self.directory.path());
        self.directory.finish(&summary)?;
        match self.is_json {
            true => json(&serde_json::to_value(&summary).context("cannot encode the result")?),
            false => page(&Stored::Campaign(Box::new(summary.clone()))),
        }
        let path = self.directory.path().display();
        super::report::keep(self.directory.path());
        say(&format!("result: {path}"));
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        if summary.totals.left > 0 {
            let left = Cause::new(format!("{} runs are left", summary.totals.left));
            tell(&left.with_hint(format!("keepup campaign resume {path}")));
        }
        Ok(exit(&summary))
    }
}

/// How the campaign ends, by the worst of its runs.
fn exit(summary: &CampaignSummary) -> Exit {
    let codes = || summary.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.exit_code);
    match () {
        () if summary.interrupted => Exit::Interrupted,
        () if codes().any(|code| code == 1 || code >= 128) => Exit::Failed,
        () if codes().any(|code| code != 0 && code != 5) => Exit::Environment,
        () if codes().any(|code| code == 5) || summary.totals.left > 0 => Exit::Inconclusive,
        () => Exit::Done,
    }
}

/// Whether the user wants an end.
fn is_raised(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Acquire)
}
