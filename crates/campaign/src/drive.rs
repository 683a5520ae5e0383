//! Main loop of a campaign: select the next run, run it, log it.
use std::path::Path;

use keepup_measure::clock::Clock;
use keepup_results::Event;

use crate::cells::Cell;
use crate::directory::{CampaignDirectory, figures_of, has_figures};
use crate::error::CampaignError;
use crate::state::{Action, Progress, RunDone, State};

/// Outcome of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// Exit code, or 128 plus the signal number.
    pub exit_code: i32,
    /// Error message, if any.
    pub why: Option<String>,
    /// Whether the user interrupted it. Such a run does not count.
    pub is_interrupted: bool,
}

/// Runner of commands.
pub trait Runner {
    /// Runs the command of a cell. Its result goes below `run_directory`.
    ///
    /// # Errors
    /// The command cannot be started, or its result cannot be stored. The run does not count.
    fn run(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, CampaignError>;

    /// Whether the user requested a stop.
    fn is_stopped(&self) -> bool;

    /// Receives progress.
    fn report(&mut self, event: &CampaignEvent<'_>);
}

/// Progress of a campaign.
#[derive(Debug)]
pub enum CampaignEvent<'a> {
    /// A run starts.
    RunStarted {
        /// Cell.
        cell: &'a Cell,
        /// Name of the cell.
        name: &'a str,
        /// Repetition.
        repetition: u32,
        /// Progress of the campaign.
        progress: Progress,
    },
    /// A run ended.
    RunEnded {
        /// Cell.
        cell: &'a Cell,
        /// Name of the cell.
        name: &'a str,
        /// The run.
        run: &'a RunDone,
        /// Progress of the campaign.
        progress: Progress,
    },
}

/// Reason why [`drive`] returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriveOutcome {
    /// Stop condition that was reached.
    pub stopped: Option<String>,
    /// Whether the user interrupted it.
    pub is_interrupted: bool,
}

/// Runs the remaining cells until all are done, a stop condition is reached, or the user interrupts.
///
/// # Errors
/// A run cannot be started or logged.
pub fn drive(
    state: &mut State,
    directory: &mut CampaignDirectory,
    runner: &mut dyn Runner,
    clock: &dyn Clock,
) -> Result<DriveOutcome, CampaignError> {
    loop {
        if runner.is_stopped() {
            return Ok(DriveOutcome { stopped: None, is_interrupted: true });
        }
        let (number, repetition) = match state.next() {
            Action::End => return Ok(DriveOutcome::default()),
            Action::Stop { why } => return Ok(DriveOutcome { stopped: Some(why), is_interrupted: false }),
            Action::Run { cell, repetition } => (cell, repetition),
        };
        let Some(cell) = state.cell(number).cloned() else { return Ok(DriveOutcome::default()) };
        let name = state.campaign().name_of(&cell);
        runner.report(&CampaignEvent::RunStarted {
            cell: &cell,
            name: &name,
            repetition,
            progress: state.progress(),
        });
        let run_directory = directory.create_run_directory(number, repetition)?;
        let start_ns = clock.now_ns();
        let report = runner.run(&cell, &run_directory)?;
        if report.is_interrupted {
            return Ok(DriveOutcome { stopped: None, is_interrupted: true });
        }
        let seconds = clock.now_ns().saturating_sub(start_ns) as f64 / 1e9;
        let mut run = RunDone {
            cell: number,
            repetition,
            exit_code: report.exit_code,
            directory: directory.result_in(&run_directory),
            seconds,
            why: report.why,
            figures: Vec::new(),
        };
        directory.append(&event_of(&run, clock.unix_ns()))?;
        if let Some(result) = run.directory.as_ref().filter(|_| has_figures(run.exit_code)) {
            run.figures = figures_of(&directory.path().join(result));
        }
        state.take(run.clone());
        runner.report(&CampaignEvent::RunEnded {
            cell: &cell,
            name: &name,
            run: &run,
            progress: state.progress(),
        });
    }
}

fn event_of(run: &RunDone, t_unix_ns: u64) -> Event {
    Event::CellRun {
        t_unix_ns,
        cell: run.cell,
        repetition: run.repetition,
        exit_code: run.exit_code,
        directory: run.directory.clone(),
        seconds: run.seconds,
        why: run.why.clone(),
    }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
