//! `keepup ctl`: commands for a recorder that is controlled over HTTP.
mod client;
mod page;
mod stored;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Subcommand;
use keepup_results::live::{RunCommand, RunSettings, RunState, RunStatus};

use self::client::Client;
pub(crate) use self::client::CtlError;
use crate::args::some_time;
use crate::exit::{Exit, UsageError};
use crate::http::TOKEN_VARIABLE;
use crate::output::{json, result, say};
use crate::run_flags::RunFlags;
use crate::token;

/// Pause between two looks while something is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Control a recorder: configure, arm, start, stop, and open what was recorded
///
/// For `keepup record --http HOST:PORT`. Commands need the recorder's token.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup ctl configure --meta sample=quartz --stop-after '1000000 events'
  keepup ctl arm
  keepup ctl start
  keepup ctl wait sealed
  keepup ctl info last")]
pub(crate) struct Args {
    /// Where the recorder serves HTTP: a URL or HOST[:PORT]
    #[arg(long, global = true, value_name = "URL", default_value = "http://127.0.0.1:8611")]
    to: String,
    /// File with the recorder's token [default: the environment's KEEPUP_TOKEN]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Only when nothing has changed since this revision, as the status has it
    #[arg(long, global = true, value_name = "N")]
    revision: Option<u64>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    #[command(flatten)]
    Run(RunAction),
    /// Tell which recordings there are
    Recordings,
    /// Tell what a recording has
    Info {
        /// Its id or name, or "last"
        #[arg(default_value = "last")]
        recording: String,
    },
    /// Write single events of a recording, raw, to stdout or a file
    Cat(stored::CatArgs),
}

/// What concerns the run; each is answered by the status.
#[derive(Subcommand)]
enum RunAction {
    /// Say where it stands
    Status,
    /// Take settings for the next run; what is left out is as the recorder was started
    Configure(Box<Settings>),
    /// Take memory, make directories, let sources connect
    Arm,
    /// Record what they send
    Start,
    /// End the run; an armed recorder gives back what it took
    Stop {
        /// Wait until everything is sealed
        #[arg(long)]
        wait: bool,
    },
    /// Forget settings and errors
    Reset,
    /// Wait until it is in a state: idle, configured, armed, recording, draining, sealed or error
    Wait {
        /// The state
        #[arg(value_parser = state)]
        state: RunState,
        /// For no longer than this
        #[arg(long, value_parser = some_time, value_name = "TIME")]
        timeout: Option<Duration>,
    },
}

/// Settings of a run.
#[derive(clap::Args)]
struct Settings {
    /// Name of the recording's directory on every volume [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Built-in profile to take block, segment, placement and largest event from
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// One of the recorder's volumes, as its status has it; once for each [default: all]
    #[arg(long, value_name = "DIR")]
    volume: Vec<String>,
    #[command(flatten)]
    run: RunFlags,
}

impl Settings {
    fn of_run(&self) -> Result<RunSettings, UsageError> {
        let (name, profile, volumes) = (self.name.clone(), self.profile.clone(), self.volume.clone());
        Ok(RunSettings { name, profile, volumes, ..self.run.settings()? })
    }
}

fn state(text: &str) -> Result<RunState, String> {
    let state = RunState::ALL.into_iter().find(|state| state.name() == text);
    state.ok_or_else(|| format!("{text:?} is none of {}", RunState::ALL.map(RunState::name).join(", ")))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let client = Client::new(&args.to, token::given(args.token_file.as_deref(), TOKEN_VARIABLE)?)?;
    match &args.action {
        Action::Recordings => stored::list(&client, args.json),
        Action::Info { recording } => stored::show(&client, recording, args.json),
        Action::Cat(which) => stored::cat(&client, which),
        Action::Run(action) => {
            let (status, exit) = carried_out(&client, args.revision, action)?;
            match args.json {
                true => json(&serde_json::to_value(&status).context("cannot encode the status")?),
                false => result(&page::status(&status)),
            }
            Ok(exit)
        }
    }
}

/// The status afterwards, and what it comes to.
fn carried_out(
    client: &Client,
    revision: Option<u64>,
    action: &RunAction,
) -> anyhow::Result<(RunStatus, Exit)> {
    let give = |command, settings| client.give(command, revision, settings);
    Ok(match action {
        RunAction::Status => judged(client.status()?),
        RunAction::Configure(settings) => {
            (give(RunCommand::Configure, Some(&settings.of_run()?))?, Exit::Done)
        }
        RunAction::Arm => (give(RunCommand::Arm, None)?, Exit::Done),
        RunAction::Start => (give(RunCommand::Start, None)?, Exit::Done),
        RunAction::Reset => (give(RunCommand::Reset, None)?, Exit::Done),
        RunAction::Stop { wait: false } => (give(RunCommand::Stop, None)?, Exit::Done),
        RunAction::Stop { wait: true } => stop_and_wait(client, give(RunCommand::Stop, None)?)?,
        RunAction::Wait { state, timeout } => reached(client, *state, *timeout)?,
    })
}

/// Waits for a state; an error ends it too.
fn reached(
    client: &Client,
    state: RunState,
    timeout: Option<Duration>,
) -> Result<(RunStatus, Exit), CtlError> {
    let found = wait(client, timeout, &|s| s.state == state || s.state == RunState::Error)?;
    let Some(status) = found else {
        let status = client.status()?;
        say(&format!("{state} was not reached in time: it is {}", status.state));
        return Ok((status, Exit::Inconclusive));
    };
    let exit = if status.state == state { Exit::Done } else { Exit::Failed };
    Ok((status, exit))
}

/// A status, and what it comes to.
fn judged(status: RunStatus) -> (RunStatus, Exit) {
    let exit = if status.state == RunState::Error { Exit::Failed } else { Exit::Done };
    (status, exit)
}

/// Waits for the end of the run that was stopped: `given` is what stopping was answered with.
fn stop_and_wait(client: &Client, given: RunStatus) -> Result<(RunStatus, Exit), CtlError> {
    if given.state != RunState::Draining {
        return Ok((given, Exit::Done));
    }
    // Whoever is quick may have armed the next run by the time of the next look.
    let is_over = |s: &RunStatus| s.state != RunState::Draining || s.revision > given.revision + 1;
    let (status, exit) = judged(wait(client, None, &is_over)?.unwrap_or(given.clone()));
    let is_whole = status.last.as_ref().is_some_and(|last| last.whole);
    Ok((status, if is_whole { exit } else { Exit::Failed }))
}

/// Looks until it is as wanted, or the time is over.
fn wait(
    client: &Client,
    timeout: Option<Duration>,
    is_wanted: &dyn Fn(&RunStatus) -> bool,
) -> Result<Option<RunStatus>, CtlError> {
    let since = Instant::now();
    loop {
        let status = client.status()?;
        if is_wanted(&status) {
            return Ok(Some(status));
        }
        if timeout.is_some_and(|timeout| since.elapsed() >= timeout) {
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
