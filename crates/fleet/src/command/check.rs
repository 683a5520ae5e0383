//! Checks of a command at its host: which directories it writes to, by its flags and by its `--dry-run`.
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use keepup_campaign::{Forecast, STDERR, STDOUT, run_command};
use keepup_error::Cause;

use super::plan::CheckedCommand;
use super::program::Program;
use crate::directories::Directories;
use crate::error::FleetError;

/// Limit on checks at the same time.
const AT_ONCE_MAX: usize = 8;
/// Longest output of a check, bytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Checks commands, several at a time.
pub(super) fn check_all(
    program: &dyn Program,
    directories: &Directories,
    commands: &[Vec<String>],
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Vec<CheckedCommand> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![CheckedCommand::Refused("it was not checked".to_owned()); commands.len()]);
    let work = || {
        while let Some((index, command)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            commands.get(index).map(|command| (index, command))
        } {
            let answer = match check(program, directories, command, is_stopped) {
                Ok(plan) => CheckedCommand::Plan(plan),
                Err(why) => CheckedCommand::Refused(why),
            };
            found.lock().unwrap_or_else(PoisonError::into_inner)[index] = answer;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE_MAX);
    std::thread::scope(|scope| {
        (1..threads.min(commands.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Text of a refusal, with its hint in a second line.
fn refusal(error: FleetError) -> String {
    Cause::of(&error).to_text()
}

/// Checks a command; returns the output of its `--dry-run --json`.
///
/// # Errors
/// A command that does not measure, or one that writes outside `directories`, or cannot run.
pub(super) fn check(
    program: &dyn Program,
    directories: &Directories,
    arguments: &[String],
    is_stopped: &dyn Fn() -> bool,
) -> Result<String, String> {
    // First by the flags: even a dry run may create a directory.
    for path in program.paths_written(arguments)? {
        directories.check(&path).map_err(refusal)?;
    }
    let place = tempfile::tempdir().map_err(|error| format!("cannot create a directory: {error}"))?;
    let mut command = program.command(arguments);
    command.args(["--dry-run", "--json"]);
    let status = run_command(command, place.path(), is_stopped)?;
    let output = |name: &str| {
        let mut text = String::new();
        let read = File::open(place.path().join(name))
            .and_then(|file| file.take(OUTPUT_BYTES_MAX).read_to_string(&mut text));
        read.map(|_| text).map_err(|error| format!("cannot read the output of the dry run: {error}"))
    };
    if !status.success() {
        let why = output(STDERR)?;
        return Err(if why.trim().is_empty() { format!("its dry run failed: {status}") } else { why });
    }
    let plan = output(STDOUT)?;
    let forecast: Forecast =
        serde_json::from_str(&plan).map_err(|error| format!("malformed output of the dry run: {error}"))?;
    // Then by what it says itself, in case a flag means more than expected.
    for volume in forecast.volume_bytes_written.keys().chain(forecast.space_bytes.keys()) {
        directories.check(Path::new(volume)).map_err(refusal)?;
    }
    Ok(plan)
}
