//! Checks of a command at its host: which directories it writes to, by its flags and by its `--dry-run`.
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keepup_campaign::{Forecast, STDERR, STDOUT, run_command};
use keepup_error::Cause;
use tempfile::TempDir;

use super::plan::CheckedCommand;
use super::program::Program;
use crate::directories::Directories;
use crate::error::FleetError;

/// Limit on checks at the same time.
const AT_ONCE_MAX: usize = 8;
/// Longest plan of a dry run, bytes.
const PLAN_BYTES_MAX: u64 = 1 << 20;
/// Longest reason of a refusal, bytes. It is part of a heartbeat, which has at most 1 MiB.
const REASON_BYTES_MAX: usize = 16 << 10;
/// Longest check of a command. A file system that does not respond can block it forever.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Checks commands of `program`, which write only to `directories`.
pub(super) struct Checker {
    pub(super) program: Box<dyn Program>,
    pub(super) directories: Directories,
    /// Longest check of a command.
    time_max: Duration,
}

/// Why a command cannot run.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The host does not allow it, or cannot check it.
    Host(String),
    /// Its dry run failed. The directory contains the output.
    DryRun(ExitStatus, TempDir),
}

impl Refusal {
    /// Text of an error, with its hint in a second line.
    fn of(error: &FleetError) -> Self {
        Self::Host(Cause::of(error).to_text())
    }

    /// The reason, at most [`REASON_BYTES_MAX`] and a mark of the cut.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Host(why) => first_bytes(why),
            Self::DryRun(status, output) => match last_bytes(&output.path().join(STDERR)) {
                Ok(why) if !why.trim().is_empty() => why,
                _ => format!("its dry run failed: {status}"),
            },
        }
    }
}

impl Checker {
    pub(super) fn new(program: Box<dyn Program>, directories: Directories) -> Self {
        Self { program, directories, time_max: TIME_MAX }
    }

    /// Checks commands, several at a time, until `stop` is set.
    pub(super) fn check_all(
        self: &Arc<Self>,
        commands: &[Vec<String>],
        stop: &Arc<AtomicBool>,
    ) -> Vec<CheckedCommand> {
        let next = AtomicUsize::new(0);
        let unchecked = CheckedCommand::Refused("it was not checked".to_owned());
        let found = Mutex::new(vec![unchecked; commands.len()]);
        let work = || {
            while !stop.load(Ordering::Acquire) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(command) = commands.get(index) else { return };
                let answer = match self.check(command, stop) {
                    Ok(plan) => CheckedCommand::Plan(plan),
                    Err(refusal) => CheckedCommand::Refused(refusal.text()),
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

    /// Checks a command; returns the output of its `--dry-run --json`.
    ///
    /// # Errors
    /// A command that does not measure, or one that writes outside the directories, or cannot run, or a check
    /// that takes too long.
    pub(super) fn check(
        self: &Arc<Self>,
        arguments: &[String],
        stop: &Arc<AtomicBool>,
    ) -> Result<String, Refusal> {
        let (sender, result) = sync_channel(1);
        let is_late = Arc::new(AtomicBool::new(false));
        let work = {
            let (checker, arguments) = (Arc::clone(self), arguments.to_vec());
            let flags = [Arc::clone(stop), Arc::clone(&is_late)];
            move || {
                let is_stopped = || flags.iter().any(|flag| flag.load(Ordering::Acquire));
                // Fails if the caller waits no more.
                drop(sender.send(checker.check_in_thread(&arguments, &is_stopped)));
            }
        };
        // A thread that a file system blocks cannot be ended; it is left behind.
        let thread = std::thread::Builder::new().name("ku-fleet-check".into()).spawn(work);
        thread.map_err(|error| Refusal::Host(format!("cannot start a thread: {error}")))?;
        result.recv_timeout(self.time_max).unwrap_or_else(|error| {
            is_late.store(true, Ordering::Release);
            let seconds = self.time_max.as_secs_f64();
            Err(Refusal::Host(match error {
                RecvTimeoutError::Timeout => {
                    format!("the check took longer than {seconds} s: a file system may not respond")
                }
                RecvTimeoutError::Disconnected => "the thread of the check panicked".to_owned(),
            }))
        })
    }

    fn check_in_thread(
        &self,
        arguments: &[String],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<String, Refusal> {
        let check = |path: &Path| self.directories.check(path).map_err(|error| Refusal::of(&error));
        // First by the flags: even a dry run may create a directory.
        for path in self.program.paths_written(arguments).map_err(Refusal::Host)? {
            check(&path)?;
        }
        let output = tempfile::tempdir()
            .map_err(|error| Refusal::Host(format!("cannot create a temporary directory: {error}")))?;
        let mut command = self.program.command(arguments);
        command.args(["--dry-run", "--json"]);
        let status = run_command(command, output.path(), is_stopped).map_err(Refusal::Host)?;
        if !status.success() {
            return Err(Refusal::DryRun(status, output));
        }
        let plan = read_plan(&output.path().join(STDOUT))
            .map_err(|error| Refusal::Host(format!("cannot read the output of the dry run: {error}")))?;
        let forecast: Forecast = serde_json::from_str(&plan)
            .map_err(|error| Refusal::Host(format!("malformed output of the dry run: {error}")))?;
        // Then by what it says itself, in case a flag means more than expected.
        for volume in forecast.volume_bytes_written.keys().chain(forecast.space_bytes.keys()) {
            check(Path::new(volume))?;
        }
        Ok(plan)
    }
}

fn read_plan(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.len() > PLAN_BYTES_MAX {
        return Err(io::Error::other(format!("more than {PLAN_BYTES_MAX} bytes")));
    }
    let mut plan = String::new();
    file.take(PLAN_BYTES_MAX).read_to_string(&mut plan)?;
    Ok(plan)
}

/// The end of a file, where the error is.
fn last_bytes(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let cut = file.metadata()?.len().saturating_sub(REASON_BYTES_MAX as u64);
    file.seek(SeekFrom::Start(cut))?;
    let mut bytes = Vec::new();
    file.take(REASON_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(if cut == 0 { text.into_owned() } else { format!("[{cut} bytes cut] {text}") })
}

/// The start of a text that may quote long arguments.
fn first_bytes(text: &str) -> String {
    if text.len() <= REASON_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=REASON_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{} [{} bytes cut]", &text[..end], text.len() - end)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
