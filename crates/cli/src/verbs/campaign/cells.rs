//! Checks and cost estimates of all cells, before the first one runs.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};
use keepup_campaign::{Campaign, Cell, Forecast, Forecasts};
use keepup_error::Cause;

use super::is_raised;
use crate::Cli;
use crate::cells::{cell_error, commands};
use crate::exit::usage;
use crate::output::{LOG_VARIABLE, hint_of_flags};

/// Limit on concurrent cost estimates.
const AT_ONCE_MAX: usize = 8;

/// Refuses a campaign with a command that cannot run.
pub(super) fn check(campaign: &Campaign, cells: &[Cell]) -> anyhow::Result<()> {
    let commands = commands(cells);
    if commands.is_empty() {
        return Err(usage("cannot run the campaign: [[skip]] excludes every cell"));
    }
    let mut parser = Cli::command();
    for cell in commands {
        let refuse = |why: Cause| cell_error(campaign, cell, why);
        let flags = |why: clap::Error| {
            refuse(Cause::new(why.to_string()).with_hint(hint_of_flags(&why).unwrap_or_default()))
        };
        let words = std::iter::once("keepup").chain(cell.arguments.iter().map(String::as_str));
        let mut matches = parser.try_get_matches_from_mut(words).map_err(flags)?;
        let cli = Cli::from_arg_matches_mut(&mut matches).map_err(flags)?;
        if !cli.verb.keeps_a_result() {
            let hint = "disk, net, register read or compare, replay, replay-set, soak, trial, qualify";
            return Err(refuse(Cause::new("the command stores no result").with_hint(hint)));
        }
    }
    Ok(())
}

/// Estimates the cost of every command with `--dry-run`, which checks its volumes too; `None` if the user
/// interrupts.
pub(super) fn forecasts(
    campaign: &Campaign,
    cells: &[Cell],
    stop: &AtomicBool,
) -> anyhow::Result<Option<Forecasts>> {
    let program = program()?;
    let commands = commands(cells);
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<usize, anyhow::Result<Forecast>>> = Mutex::default();
    let ask = || {
        while !is_raised(stop) {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = commands.get(n) else { return };
            let answer = forecast(&program, cell).map_err(|why| match why {
                ForecastError::CannotRun(why) => cell_error(campaign, cell, Cause::from_text(why.trim())),
                ForecastError::Other(why) => why,
            });
            // One failure is enough to refuse the campaign.
            if answer.is_err() {
                next.store(commands.len(), Ordering::Relaxed);
            }
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(n, answer);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE_MAX);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(ask)));
        ask();
    });
    if is_raised(stop) {
        return Ok(None);
    }
    let mut forecasts = Forecasts::default();
    for (n, answer) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        forecasts.insert(commands[n], answer?);
    }
    Ok(Some(forecasts))
}

/// Failure of a cost estimate.
enum ForecastError {
    /// The command refuses to run.
    CannotRun(String),
    /// The command could not be started or its output could not be parsed.
    Other(anyhow::Error),
}

fn forecast(program: &Path, cell: &Cell) -> Result<Forecast, ForecastError> {
    let mut command = Command::new(program);
    command.args(&cell.arguments).args(["--dry-run", "--json"]).env_remove(LOG_VARIABLE);
    let run = command.output();
    let output = run.context("cannot estimate the cost of a command").map_err(ForecastError::Other)?;
    if !output.status.success() {
        return Err(ForecastError::CannotRun(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cannot parse the output of `{} --dry-run`", cell.command()))
        .map_err(ForecastError::Other)
}

/// Path of this executable, which also runs the cells.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the keepup executable to run the cells")
}
