//! `keepup fleet`: several hosts.
mod agent;
pub(crate) mod campaign;
mod conduct;
pub(crate) mod doctor;
mod events;
mod host_command;
mod host_states;
pub(crate) mod qualify;
pub(crate) mod record;
pub(crate) mod reproduce;
pub(crate) mod set;
mod trial;
mod up;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use keepup_error::Cause;
use keepup_fleet::FleetError;
use keepup_fleet::control::{self, Command};
use keepup_fleet::controller_loop::FleetStatus;

use crate::exit::Exit;
use crate::output::{json, log, result};

/// Interval at which `down` checks whether the controller has exited.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Start agents on several hosts and show whether they answer
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup fleet up hall.toml            starts the agents and stays until Ctrl-C or `down`
  keepup fleet trial hall.toml romanis --rate '200 MB/s' --time 10s
  keepup fleet status hall.toml
  keepup fleet down hall.toml

See also: keepup doctor --fleet hall.toml")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start the agent of each host, print a table when all have joined, and stay
    Up(FileArg),
    /// Start agents, record on all recorders at once, and end the agents
    Trial(trial::Args),
    /// Print the state of the hosts
    Status {
        #[command(flatten)]
        file: FileArg,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure how long all hosts take to answer a command
    Probe {
        #[command(flatten)]
        file: FileArg,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// End all agents and the controller
    Down(FileArg),
    /// Run on a host, started by `up`
    #[command(hide = true)]
    Agent(agent::Args),
}

#[derive(clap::Args)]
struct FileArg {
    /// Fleet file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.action {
        Action::Up(args) => up::run(&args.file),
        Action::Trial(args) => trial::run(args),
        Action::Status { file, json } => status(&file.file, *json),
        Action::Probe { file, json } => probe(&file.file, *json),
        Action::Down(args) => down(&args.file),
        Action::Agent(args) => agent::run(args),
    }
}

fn ask(file: &Path, command: Command) -> anyhow::Result<serde_json::Value> {
    let answer = control::ask(&control::socket_of(file)?, command)?;
    serde_json::from_str(&answer).context("cannot read the answer of the controller")
}

/// Exit code 1 if a host is missing.
fn status(file: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let answer = ask(file, Command::Status)?;
    let status: FleetStatus =
        serde_json::from_value(answer.clone()).context("cannot read the answer of the controller")?;
    if as_json {
        json(&answer);
    } else {
        result(&status.table());
    }
    Ok(if status.is_complete() { Exit::Done } else { Exit::Failed })
}

fn probe(file: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let answer = ask(file, Command::Probe)?;
    if answer["rounds"].is_null() {
        let why = Cause::new("it cannot probe now: no host has joined, or another probe or a trial runs");
        return Err(FleetError::Control(why.with_hint("keepup fleet status FILE")).into());
    }
    if as_json {
        json(&answer);
        return Ok(Exit::Done);
    }
    let number = |key: &str| answer[key].as_f64().unwrap_or(f64::NAN);
    result(&format!(
        "{} commands to {} hosts: all had answered after {:.2} ms in the median, {:.2} ms at most",
        number("rounds"),
        number("hosts"),
        number("median_ns") / 1e6,
        number("max_ns") / 1e6
    ));
    Ok(Exit::Done)
}

fn down(file: &Path) -> anyhow::Result<Exit> {
    let socket = control::socket_of(file)?;
    control::ask(&socket, Command::Down)?;
    // The controller removes its socket when all agents have ended; it has its own deadlines.
    // A killed one leaves it, and nobody accepts connections there.
    while UnixStream::connect(&socket).is_ok() {
        std::thread::sleep(POLL_EVERY);
    }
    log("the fleet is down");
    Ok(Exit::Done)
}
