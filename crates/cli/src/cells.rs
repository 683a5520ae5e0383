//! Cells of a campaign, wherever they run: places, progress, reports of their commands.
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use keepup_campaign::{Campaign, CampaignEvent, Cell, Forecasts, Progress, RunReport, Runner, STDERR};
use keepup_error::Cause;
use keepup_report::time;
use keepup_results::CampaignRun;

use crate::exit::{HELP, usage};
use crate::progress::StatusLine;

/// Exit code of a command that the user interrupted.
const INTERRUPTED: i32 = 130;

/// A place that runs cells.
pub(crate) trait Place: Runner {
    /// Checks the command of every cell there and estimates its cost; `None` if the user interrupts.
    ///
    /// # Errors
    /// A cell that cannot run.
    fn forecasts(&mut self, campaign: &Campaign, cells: &[Cell]) -> anyhow::Result<Option<Forecasts>>;

    /// Removes the progress line.
    fn clear_line(&mut self);
}

/// First cell of every distinct command of a host, in cell order, without skipped cells.
pub(crate) fn commands(cells: &[Cell]) -> Vec<&Cell> {
    let mut seen = BTreeMap::new();
    cells
        .iter()
        .filter(|cell| cell.skipped.is_none() && seen.insert((&cell.host, &cell.arguments), ()).is_none())
        .collect()
}

/// Error of a cell, with its command.
pub(crate) fn cell_error(campaign: &Campaign, cell: &Cell, why: Cause) -> anyhow::Error {
    let (number, name, command) = (cell.number, campaign.name_of(cell), cell.command());
    usage(why.map(|why| {
        let why = why.trim().strip_prefix("error: ").unwrap_or(why.trim());
        format!("cannot run cell {number} ({name}) as `{command}`: {why}")
    }))
}

/// Progress line of the current run.
#[derive(Default)]
pub(crate) struct RunLine(Option<StatusLine>);

impl RunLine {
    pub(crate) fn show(&mut self, event: &CampaignEvent<'_>) {
        let status = self.0.get_or_insert_with(StatusLine::new);
        match event {
            CampaignEvent::RunStarted { .. } => status.show(&progress_line(event), Duration::ZERO),
            CampaignEvent::RunEnded { .. } => status.log(&progress_line(event)),
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}

/// Progress line of a run that started or ended.
fn progress_line(event: &CampaignEvent<'_>) -> String {
    let left = |progress: &Progress| {
        let seconds = progress.seconds_left.filter(|_| progress.left > 0);
        seconds.map_or_else(String::new, |seconds| format!(", {} left", time(seconds)))
    };
    let part = |progress: &Progress, done: u32| format!("{done}/{}", progress.planned - progress.spared);
    match event {
        CampaignEvent::RunStarted { cell, name, repetition, progress } => {
            let run = part(progress, progress.done + 1);
            format!("run {run}: cell {} ({name}), repetition {repetition}{}", cell.number, left(progress))
        }
        CampaignEvent::RunEnded { cell, name, run, progress } => {
            let how = match &run.why {
                None => String::new(),
                Some(why) => format!(", FAILED with {}: {why}", run.exit_code),
            };
            format!(
                "run {}: cell {} ({name}), repetition {}: {}{how}{}",
                part(progress, progress.done),
                cell.number,
                run.repetition,
                time(run.seconds),
                left(progress)
            )
        }
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
        None => (!CampaignRun::is_success(exit_code)).then(|| reason(run_directory, exit_code)),
    };
    RunReport { exit_code, why, is_interrupted: is_stopped && !CampaignRun::is_success(exit_code) }
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
