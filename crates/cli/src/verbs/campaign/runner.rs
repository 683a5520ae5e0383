//! Runs cells: each a process of this program, which ends with it.
use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keepup_campaign::{CampaignError, CampaignEvent, Cell, RunReport, Runner};
use keepup_sys::process::Process;

use super::cells::program;
use super::{is_raised, table};
use crate::exit::HELP;
use crate::output::LOG_VARIABLE;
use crate::progress::Status;

/// What a cell tells people, beside its result.
const STDERR: &str = "stderr.txt";
const STDOUT: &str = "stdout.txt";
/// Between two looks whether the user wants an end, at most: a signal ends the waiting.
const LOOK: Duration = Duration::from_millis(500);
/// Exit code of a command that the user interrupted.
const INTERRUPTED: i32 = 130;

/// What runs cells.
pub(super) struct Child {
    program: PathBuf,
    stop: Arc<AtomicBool>,
    status: Status,
}

impl Child {
    pub(super) fn new(stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        Ok(Self { program: program()?, stop, status: Status::new() })
    }

    /// Waits for its end, and hands the user's wish on to it, once: a second would cut it short.
    fn wait(&self, process: &mut Process) -> Result<ExitStatus, keepup_sys::SysError> {
        let mut is_asked = false;
        loop {
            if is_raised(&self.stop) && !is_asked {
                process.interrupt()?;
                is_asked = true;
            }
            if let Some(ended) = process.wait(LOOK)? {
                return Ok(ended.status);
            }
        }
    }
}

impl Runner for Child {
    fn run(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, CampaignError> {
        let fail =
            |why: String| CampaignError::Run { cell: cell.number, name: cell.arguments.join(" "), why };
        let file =
            |name| File::create(run_directory.join(name)).map_err(|why| fail(format!("{name}: {why}")));
        let mut command = Command::new(&self.program);
        command.args(&cell.arguments).arg("--out").arg(run_directory).env_remove(LOG_VARIABLE);
        command.stdin(Stdio::null()).stdout(file(STDOUT)?).stderr(file(STDERR)?);
        // Ctrl-C in a terminal goes to a whole group: it comes from here, and once.
        command.process_group(0);
        let mut process = Process::start(command).map_err(|why| fail(why.to_string()))?;
        let status = self.wait(&mut process).map_err(|why| fail(why.to_string()))?;
        let signal = status.signal().map(|signal| 128 + signal);
        let exit_code = status.code().or(signal).unwrap_or(INTERRUPTED);
        Ok(RunReport {
            exit_code,
            why: (exit_code != 0).then(|| reason(run_directory, &status)),
            is_interrupted: is_raised(&self.stop) && !status.success(),
        })
    }

    fn is_stopped(&self) -> bool {
        is_raised(&self.stop)
    }

    fn report(&mut self, event: &CampaignEvent<'_>) {
        match event {
            CampaignEvent::RunStarted { .. } => {
                self.status.show(&table::progress_line(event), Duration::ZERO)
            }
            CampaignEvent::RunEnded { .. } => self.status.line(&table::progress_line(event)),
        }
    }
}

/// Why a command failed: the error that it told, or what its exit code stands for.
fn reason(run_directory: &Path, status: &ExitStatus) -> String {
    if let Some(signal) = status.signal() {
        return format!("signal {signal} ended it");
    }
    let told = std::fs::read(run_directory.join(STDERR)).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let lines: Vec<&str> = told.lines().collect();
    let Some(at) = lines.iter().rposition(|line| line.starts_with("error: ")) else {
        let code = status.code().unwrap_or(INTERRUPTED);
        let all = HELP.replace('\n', " ");
        let stands_for = all.split([';', ':']).find_map(|part| part.trim().strip_prefix(&format!("{code} ")));
        return stands_for.unwrap_or("it ended without a reason").to_owned();
    };
    let because = lines[at + 1..].iter().take_while(|line| line.starts_with("  because: "));
    let first = lines[at].trim_start_matches("error: ");
    std::iter::once(first).chain(because.map(|line| line.trim())).collect::<Vec<_>>().join("; ")
}
