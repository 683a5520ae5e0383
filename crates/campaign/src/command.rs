//! The process of one command of a campaign.
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use keepup_sys::process::Process;

/// File with the standard error of a command, next to its result.
pub const STDERR: &str = "stderr.txt";
/// File with its standard output.
pub const STDOUT: &str = "stdout.txt";
/// Interval at which `is_stopped` is checked; a signal to the caller also ends the wait.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs `command` with its output in files in `directory`. When `is_stopped`, it is interrupted as by Ctrl-C,
/// and the function waits until it has cleaned up. The kernel kills it if the calling thread ends first.
///
/// # Errors
/// The files cannot be created, or the program cannot be started.
pub fn run_command(
    mut command: Command,
    directory: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<ExitStatus, String> {
    let file = |name| File::create(directory.join(name)).map_err(|why| format!("{name}: {why}"));
    command.stdin(Stdio::null()).stdout(file(STDOUT)?).stderr(file(STDERR)?);
    // A separate group, so that Ctrl-C in a terminal does not reach the command a second time.
    command.process_group(0);
    let mut process = Process::start(command).map_err(|why| why.to_string())?;
    // Only once: a second interrupt would kill it.
    let mut is_interrupted = false;
    loop {
        if is_stopped() && !is_interrupted {
            process.interrupt().map_err(|why| why.to_string())?;
            is_interrupted = true;
        }
        if let Some(ended) = process.wait(POLL_INTERVAL).map_err(|why| why.to_string())? {
            return Ok(ended.status);
        }
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
