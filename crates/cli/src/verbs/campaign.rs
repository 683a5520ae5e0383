//! `keepup campaign`: matrices of measurements.
mod cells;
mod messages;
mod runner;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use keepup_campaign::{
    Campaign, CampaignDirectory, Cell, DriveOutcome, Forecasts, RunDone, State, StoredCampaign, drive, load,
    summarise,
};
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::environment::Environment;
use keepup_recording::id::Id;
use keepup_report::listing;
use keepup_results::shell::quoted;
use keepup_results::{Begun, CampaignRun as StoredRun, CampaignSummary, Document, Ended, Stored};
use keepup_workload::preflight::common_disks;

use self::runner::Child;
use crate::cells::{Place, cell_error, commands};
use crate::exit::Exit;
use crate::forecast::print_plan;
use crate::output::{command, json, log, log_cause, page, print_listing};
use crate::signals::{self, Stopping, stop_flag};

/// Run a matrix of configurations and tests in interleaved order against a baseline
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

/// Run the campaign described by a file
///
/// Every cell is a keepup command with its own result. Exit code: 1 if any run was not fit, lost data or
/// crashed; else 4 if any run was not possible in this environment; else 5 if any run is inconclusive or a
/// [stop] rule skipped runs; else 0.
#[derive(clap::Args)]
struct RunArgs {
    /// Campaign file (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Store the campaign in a new subdirectory of DIR
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Fleet file: run each cell on the host that it names, see `keepup fleet`
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// List the cells with data written, space and time, then exit
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Resume a campaign that was interrupted, killed or stopped by a rule
///
/// An interrupted run is repeated; its files are kept. Title, repetitions and [stop] may be changed in the
/// directory's campaign.toml before.
#[derive(clap::Args)]
struct ResumeArgs {
    /// Campaign directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Resume even if cell order, baseline or keepup version has changed
    #[arg(long)]
    anyway: bool,
    /// Repeat failed runs; their files are kept
    #[arg(long)]
    failed: bool,
    /// Fleet file of a campaign whose cells name hosts
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Print the progress of a campaign, also while it runs
#[derive(clap::Args)]
struct StatusArgs {
    /// Campaign directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Run(args) => run_file(args),
        Verb::Resume(args) => resume(args),
        Verb::Status(args) => status(args),
    }
}

/// Options of a campaign run.
pub(super) struct RunOptions<'a> {
    /// Parent of the campaign directory.
    pub(super) out: &'a Path,
    /// Print the plan only.
    pub(super) dry_run: bool,
    /// Print the result as one JSON object.
    pub(super) json: bool,
    /// Fleet file of the hosts that run the cells.
    pub(super) fleet: Option<&'a Path>,
}

impl RunArgs {
    fn fleet(&self) -> Option<&Path> {
        #[cfg(feature = "fleet")]
        return self.fleet.as_deref();
        #[cfg(not(feature = "fleet"))]
        None
    }
}

impl ResumeArgs {
    fn fleet(&self) -> Option<&Path> {
        #[cfg(feature = "fleet")]
        return self.fleet.as_deref();
        #[cfg(not(feature = "fleet"))]
        None
    }
}

fn run_file(args: &RunArgs) -> anyhow::Result<Exit> {
    let (campaign, text) = load(&args.file, &keepup_reproduce::names())?;
    let fleet = args.fleet();
    start(&campaign, &text, &RunOptions { out: &args.out, dry_run: args.dry_run, json: args.json, fleet })
}

/// Starts a new campaign; `text` is the content of its file.
pub(super) fn start(campaign: &Campaign, text: &str, options: &RunOptions<'_>) -> anyhow::Result<Exit> {
    let cells = campaign.cells();
    cells::check(campaign, &cells)?;
    at_place(options.fleet, campaign, &cells, |place| start_at(place, campaign, text, options))
}

fn start_at(
    place: &mut dyn Place,
    campaign: &Campaign,
    text: &str,
    options: &RunOptions<'_>,
) -> anyhow::Result<Exit> {
    let cells = campaign.cells();
    let Some(forecasts) = place.forecasts(campaign, &cells)? else { return Ok(Exit::Interrupted) };
    let state = State::new(campaign.clone(), forecasts.clone());
    let forecast = messages::forecast(&state, &forecasts);
    // Volumes of other hosts are in the results of the cells.
    let is_here = cells.iter().all(|cell| cell.host.is_none());
    let volumes = forecast.space_bytes.keys().filter(|_| is_here).map(PathBuf::from).collect::<Vec<_>>();
    common_disks(&volumes).iter().for_each(|warning| log(&format!("warning: {warning}")));
    if options.dry_run {
        print_plan(&forecast, options.json);
        return Ok(Exit::Done);
    }
    log(&messages::announcement(&state, &forecast));
    let mut environment = Environment::collect(&volumes, Path::new("/"));
    if !is_here {
        environment.host = None;
    }
    let begun = Begun {
        id: Id::random().context("cannot read random bytes")?.to_string()[..8].to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_ns: SystemClock.unix_ns(),
        command: command(),
        workload: campaign.name.clone(),
        plan: serde_json::to_value(campaign).context("cannot encode the campaign")?,
        environment: serde_json::to_value(environment).unwrap_or_default(),
    };
    let directory = CampaignDirectory::create(options.out, text, &begun)?;
    CampaignRun { state, begun, directory, fleet: options.fleet, is_json: options.json }.run(place)
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
    let cells = campaign.cells();
    cells::check(&campaign, &cells)?;
    at_place(args.fleet(), &campaign, &cells, |place| {
        let Some(forecasts) = place.forecasts(&campaign, &cells)? else { return Ok(Exit::Interrupted) };
        let state = state_after(campaign.clone(), forecasts, found.runs);
        log(&messages::announcement(&state, &state.forecast_left()));
        let (begun, fleet, is_json) = (found.begun, args.fleet(), args.json);
        CampaignRun { state, begun, directory, fleet, is_json }.run(place)
    })
}

fn status(args: &StatusArgs) -> anyhow::Result<Exit> {
    let mut found: StoredCampaign = CampaignDirectory::read(&args.directory)?;
    // Only this stop rule needs the figures.
    if found.campaign.stop.half_width.is_some() {
        found.read_figures(&args.directory);
    }
    let (is_running, begun) = (found.is_running, found.begun);
    let state = state_after(found.campaign, Forecasts::default(), found.runs);
    match args.json {
        true => json(&state.to_json(is_running)),
        false => print_listing(|style| listing::campaign_status(&state, &begun, is_running, style)),
    }
    Ok(Exit::Done)
}

/// Does `work` at the place of `cells`: on the hosts of the fleet file, if one is given.
fn at_place(
    fleet: Option<&Path>,
    campaign: &Campaign,
    cells: &[Cell],
    work: impl FnOnce(&mut dyn Place) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    #[cfg(feature = "fleet")]
    if let Some(file) = fleet {
        return super::fleet::campaign::on_hosts(file, campaign, cells, work);
    }
    debug_assert!(fleet.is_none(), "only builds with fleets have the flag");
    let has_host = commands(cells).into_iter().find_map(|cell| Some((cell, cell.host.as_ref()?)));
    if let Some((cell, host)) = has_host {
        let why = Cause::new(format!("host {host} is a host of a fleet, and no fleet file is given"));
        let hint = if cfg!(feature = "fleet") {
            "--fleet FILE, or remove `host` from the campaign file"
        } else {
            "a build with the cargo feature `fleet` has --fleet FILE"
        };
        return Err(cell_error(campaign, cell, why.with_hint(hint)));
    }
    work(&mut Child::new(stop_flag()?)?)
}

/// State of a campaign after these runs.
fn state_after(campaign: Campaign, forecasts: Forecasts, runs: Vec<RunDone>) -> State {
    let mut state = State::new(campaign, forecasts);
    runs.into_iter().for_each(|run| state.take(run));
    state
}

/// Campaign in progress.
struct CampaignRun<'a> {
    state: State,
    begun: Begun,
    directory: CampaignDirectory,
    fleet: Option<&'a Path>,
    is_json: bool,
}

impl CampaignRun<'_> {
    fn run(mut self, place: &mut dyn Place) -> anyhow::Result<Exit> {
        let resume = self.resume_command();
        signals::describe(move || Stopping {
            left: "end the current run".to_owned(),
            after_cut_off: Some(resume.clone()),
        });
        let ended = drive(&mut self.state, &mut self.directory, place, &SystemClock);
        place.clear_line();
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
            true => json(&Document::value(&summary).context("cannot encode the result")?),
            false => page(&Stored::Campaign(Box::new(summary.clone()))),
        }
        let path = self.directory.path().display();
        super::report::write_beside(self.directory.path());
        log(&format!("result: {path}"));
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        if summary.totals.left > 0 {
            let left = Cause::new(format!("{} runs remain", summary.totals.left));
            log_cause(&left.with_hint(self.resume_command()));
        }
        Ok(exit(&summary))
    }

    /// Command that continues this campaign.
    fn resume_command(&self) -> String {
        let path = quoted(&self.directory.path().display().to_string());
        let fleet = self.fleet.map(|file| format!(" --fleet {}", quoted(&file.display().to_string())));
        format!("keepup campaign resume {path}{}", fleet.unwrap_or_default())
    }
}

/// Exit code of the campaign, from its worst run.
fn exit(summary: &CampaignSummary) -> Exit {
    let codes = || summary.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.exit_code);
    match () {
        () if summary.interrupted => Exit::Interrupted,
        () if codes().any(|code| code == 1 || code >= 128) => Exit::Failed,
        () if codes().any(|code| !StoredRun::is_success(code) && code != 5) => Exit::Environment,
        () if codes().any(|code| code == 5) || summary.totals.left > 0 => Exit::Inconclusive,
        () => Exit::Done,
    }
}

/// Whether the user interrupted.
fn is_raised(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Acquire)
}
