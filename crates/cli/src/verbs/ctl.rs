//! `keepup ctl`: client of a recorder's HTTP interface.
mod client;
mod recordings;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Subcommand;
use keepup_report::listing;
use keepup_results::live::{RunCommand, RunSettings, RunState, RunStatus};

use self::client::Client;
use crate::args::nonzero_duration;
use crate::ctl_error::CtlError;
use crate::exit::{Exit, UsageError};
use crate::http::TOKEN_VARIABLE;
use crate::output::{json, log, print_listing};
use crate::run_flags::RunFlags;
use crate::token;

/// Polling interval of the status.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// Control a recorder over HTTP: configure, arm, start, stop, and read recordings
///
/// The recorder is `keepup record --http HOST:PORT`. Commands require its token.
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup ctl configure --meta sample=quartz --stop-after '1000000 events'
  keepup ctl arm
  keepup ctl start
  keepup ctl wait sealed
  keepup ctl info last")]
pub(crate) struct Args {
    /// Recorder: a URL or HOST[:PORT]
    #[arg(long, global = true, value_name = "URL", default_value = "http://127.0.0.1:8611")]
    to: String,
    /// File with the recorder's token [default: $KEEPUP_TOKEN]
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Run the command only if the status has this revision
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
    /// List the recordings
    Recordings,
    /// Describe a recording
    Info {
        /// Id or name of the recording, or "last"
        #[arg(default_value = "last")]
        recording: String,
    },
    /// Write raw events of a recording to stdout or a file
    Cat(recordings::CatArgs),
}

/// Commands of run control. Each prints the status.
#[derive(Subcommand)]
enum RunAction {
    /// Print the status
    Status,
    /// Set the settings of the next run; others keep their start-up values
    Configure(Box<Settings>),
    /// Allocate memory, create directories and accept connections
    Arm,
    /// Start recording
    Start,
    /// Stop the run, or disarm an armed recorder
    Stop {
        /// Wait until the recording is sealed
        #[arg(long)]
        wait: bool,
    },
    /// Clear settings and errors
    Reset,
    /// Wait for a state
    Wait {
        /// idle, configured, armed, recording, draining, sealed or error
        #[arg(value_parser = state)]
        state: RunState,
        /// Limit on the waiting time [default: none]
        #[arg(long, value_parser = nonzero_duration, value_name = "TIME")]
        timeout: Option<Duration>,
    },
}

/// Settings of a run.
#[derive(clap::Args)]
struct Settings {
    /// Directory name of the recording [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Built-in profile with block, segment, placement and largest event
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Volume of the recorder, as in its status; repeatable [default: all]
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
    state.ok_or_else(|| format!("{text:?} is not one of {}", RunState::ALL.map(RunState::name).join(", ")))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let client = Client::new(&args.to, token::read(args.token_file.as_deref(), TOKEN_VARIABLE)?)?;
    match &args.action {
        Action::Recordings => recordings::list(&client, args.json),
        Action::Info { recording } => recordings::show(&client, recording, args.json),
        Action::Cat(which) => recordings::cat(&client, which),
        Action::Run(action) => {
            let (status, exit) = execute(&client, args.revision, action)?;
            match args.json {
                true => json(&serde_json::to_value(&status).context("cannot encode the status")?),
                false => print_listing(|style| listing::run_status(&status, style)),
            }
            Ok(exit)
        }
    }
}

/// Executes a command; returns the status afterwards and the exit code.
fn execute(client: &Client, revision: Option<u64>, action: &RunAction) -> anyhow::Result<(RunStatus, Exit)> {
    let send = |command, settings| client.send_command(command, revision, settings);
    Ok(match action {
        RunAction::Status => with_exit_code(client.status()?),
        RunAction::Configure(settings) => {
            (send(RunCommand::Configure, Some(&settings.of_run()?))?, Exit::Done)
        }
        RunAction::Arm => (send(RunCommand::Arm, None)?, Exit::Done),
        RunAction::Start => (send(RunCommand::Start, None)?, Exit::Done),
        RunAction::Reset => (send(RunCommand::Reset, None)?, Exit::Done),
        RunAction::Stop { wait: false } => (send(RunCommand::Stop, None)?, Exit::Done),
        RunAction::Stop { wait: true } => stop_and_wait(client, send(RunCommand::Stop, None)?)?,
        RunAction::Wait { state, timeout } => wait_for_state(client, *state, *timeout)?,
    })
}

/// Waits for a state or an error.
fn wait_for_state(
    client: &Client,
    state: RunState,
    timeout: Option<Duration>,
) -> Result<(RunStatus, Exit), CtlError> {
    let found = wait(client, timeout, &|s| s.state == state || s.state == RunState::Error)?;
    let Some(status) = found else {
        let status = client.status()?;
        log(&format!("timeout: the state is {}, not {state}", status.state));
        return Ok((status, Exit::Inconclusive));
    };
    let exit = if status.state == state { Exit::Done } else { Exit::Failed };
    Ok((status, exit))
}

/// Status with its exit code.
fn with_exit_code(status: RunStatus) -> (RunStatus, Exit) {
    let exit = if status.state == RunState::Error { Exit::Failed } else { Exit::Done };
    (status, exit)
}

/// Waits until the stopped run is sealed; `given` is the status after the stop command.
fn stop_and_wait(client: &Client, given: RunStatus) -> Result<(RunStatus, Exit), CtlError> {
    if given.state != RunState::Draining {
        return Ok((given, Exit::Done));
    }
    // Another client may have armed the next run since the last poll.
    let is_over = |s: &RunStatus| s.state != RunState::Draining || s.revision > given.revision + 1;
    let (status, exit) = with_exit_code(wait(client, None, &is_over)?.unwrap_or(given.clone()));
    let is_whole = status.last.as_ref().is_some_and(|last| last.whole);
    Ok((status, if is_whole { exit } else { Exit::Failed }))
}

/// Polls the status until `is_wanted`; `None` on a timeout.
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
        std::thread::sleep(POLL_EVERY);
    }
}
