//! Runs each cell in a child process, which ends with this process.
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_campaign::{
    Campaign, CampaignError, CampaignEvent, Cell, Forecasts, RunReport, Runner, STDERR, run_command,
};

use super::cells::{forecasts, program};
use super::is_raised;
use super::place::{Place, RunLine};
use crate::exit::HELP;
use crate::output::LOG_VARIABLE;

/// Exit code of a command that the user interrupted.
const INTERRUPTED: i32 = 130;

/// Runner of cells on this machine.
pub(super) struct Child {
    program: PathBuf,
    stop: Arc<AtomicBool>,
    line: RunLine,
}

impl Child {
    pub(super) fn new(stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        Ok(Self { program: program()?, stop, line: RunLine::default() })
    }
}

impl Place for Child {
    fn forecasts(&mut self, campaign: &Campaign, cells: &[Cell]) -> anyhow::Result<Option<Forecasts>> {
        forecasts(campaign, cells, &self.stop)
    }

    fn clear_line(&mut self) {
        self.line.clear();
    }
}

impl Runner for Child {
    fn run(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, CampaignError> {
        let mut command = Command::new(&self.program);
        command.args(&cell.arguments).arg("--out").arg(run_directory).env_remove(LOG_VARIABLE);
        let status = run_command(command, run_directory, &|| is_raised(&self.stop))
            .map_err(|why| CampaignError::Run { cell: cell.number, name: cell.arguments.join(" "), why })?;
        Ok(report_of(run_directory, status.code(), status.signal(), is_raised(&self.stop)))
    }

    fn is_stopped(&self) -> bool {
        is_raised(&self.stop)
    }

    fn report(&mut self, event: &CampaignEvent<'_>) {
        self.line.show(event);
    }
}

/// Report on a command with this exit code or signal, whose output is in `run_directory`.
pub(crate) fn report_of(
    run_directory: &Path,
    code: Option<i32>,
    signal: Option<i32>,
    is_stopped: bool,
) -> RunReport {
    let exit_code = code.or(signal.map(|signal| signal.saturating_add(128))).unwrap_or(INTERRUPTED);
    let why = match signal {
        Some(signal) => Some(format!("killed by signal {signal}")),
        None => (exit_code != 0).then(|| reason(run_directory, exit_code)),
    };
    RunReport { exit_code, why, is_interrupted: is_stopped && exit_code != 0 }
}

/// Reason for a failure: the error on stderr, or the meaning of the exit code.
fn reason(run_directory: &Path, code: i32) -> String {
    let stderr = std::fs::read(run_directory.join(STDERR)).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    let Some(at) = lines.iter().rposition(|line| line.starts_with("error: ")) else {
        let all = HELP.replace('\n', " ");
        let meaning = all.split([';', ':']).find_map(|part| part.trim().strip_prefix(&format!("{code} ")));
        return meaning.unwrap_or("it gave no reason").to_owned();
    };
    let because = lines[at + 1..].iter().take_while(|line| line.starts_with("  because: "));
    let first = lines[at].trim_start_matches("error: ");
    std::iter::once(first).chain(because.map(|line| line.trim())).collect::<Vec<_>>().join("; ")
}
