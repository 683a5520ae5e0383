//! The loop of a campaign: ask what comes next, have it run, write it down.
use std::path::Path;

use keepup_measure::clock::Clock;
use keepup_results::Event;

use crate::cells::Cell;
use crate::directory::{CampaignDirectory, figures_of, has_figures};
use crate::error::CampaignError;
use crate::state::{Action, Progress, RunDone, State};

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// Its exit code; 128 and the signal's number where one ended it.
    pub exit_code: i32,
    /// What went wrong, where it said so.
    pub why: Option<String>,
    /// Whether the user wants an end: the run does not count then.
    pub is_interrupted: bool,
}

/// What runs commands.
pub trait Runner {
    /// Runs a cell's command, which is to keep its result below `room`.
    ///
    /// # Errors
    /// It cannot be started at all.
    fn run(&mut self, cell: &Cell, room: &Path) -> Result<RunReport, CampaignError>;

    /// Whether the user wants an end.
    fn is_stopped(&self) -> bool;

    /// Is told what goes on.
    fn tell(&mut self, news: &News<'_>);
}

/// What goes on.
#[derive(Debug)]
pub enum News<'a> {
    /// A run begins.
    Begins {
        /// Its cell.
        cell: &'a Cell,
        /// What that is called.
        name: &'a str,
        /// Which repetition.
        repetition: u32,
        /// How far the campaign is.
        progress: Progress,
    },
    /// A run ended.
    Ended {
        /// Its cell.
        cell: &'a Cell,
        /// What that is called.
        name: &'a str,
        /// How.
        run: &'a RunDone,
        /// How far the campaign is.
        progress: Progress,
    },
}

/// Why a sitting ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// A rule of the campaign.
    pub stopped: Option<String>,
    /// The user.
    pub is_interrupted: bool,
}

/// Runs what is left, until the end, a rule of the campaign, or the user.
///
/// # Errors
/// A run cannot be started, or what was found cannot be written down.
pub fn drive(
    state: &mut State,
    directory: &mut CampaignDirectory,
    runner: &mut dyn Runner,
    clock: &dyn Clock,
) -> Result<Ending, CampaignError> {
    loop {
        if runner.is_stopped() {
            return Ok(Ending { stopped: None, is_interrupted: true });
        }
        let (number, repetition) = match state.next() {
            Action::End => return Ok(Ending::default()),
            Action::Stop { why } => return Ok(Ending { stopped: Some(why), is_interrupted: false }),
            Action::Run { cell, repetition } => (cell, repetition),
        };
        let Some(cell) = state.cell(number).cloned() else { return Ok(Ending::default()) };
        let name = state.campaign().name_of(&cell);
        runner.tell(&News::Begins { cell: &cell, name: &name, repetition, progress: state.progress() });
        let room = directory.room_for(number, repetition)?;
        let begin_ns = clock.now_ns();
        let report = runner.run(&cell, &room)?;
        if report.is_interrupted {
            return Ok(Ending { stopped: None, is_interrupted: true });
        }
        let seconds = clock.now_ns().saturating_sub(begin_ns) as f64 / 1e9;
        let mut run = RunDone {
            cell: number,
            repetition,
            exit_code: report.exit_code,
            directory: directory.result_in(&room),
            seconds,
            why: report.why,
            figures: Vec::new(),
        };
        directory.append(&event_of(&run, clock.unix_ns()))?;
        if let Some(result) = run.directory.as_ref().filter(|_| has_figures(run.exit_code)) {
            run.figures = figures_of(&directory.path().join(result));
        }
        state.take(run.clone());
        runner.tell(&News::Ended { cell: &cell, name: &name, run: &run, progress: state.progress() });
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
