//! A campaign's directory: its file, its events, the results of its cells, and who runs it.
//!
//! Invariants: one process at a time runs a campaign; what a run that was cut off left is kept aside; the
//! kernel gives the lock back when its owner dies, however that happens.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_results::{
    Begun, CampaignSummary, Event, EventLog, Figure, Figures, Kind, ResultDirectory, StoredResult,
    TestSummary,
};
use keepup_sys::regular;

use crate::error::CampaignError;
use crate::plan::{Campaign, RUNS_MAX, count_runs};
use crate::state::RunDone;

/// The campaign's file as it was when it began.
const PLAN: &str = "campaign.toml";
/// Whoever holds its lock runs the campaign; its text is the number of that process.
const LOCK: &str = ".lock";
const CELLS: &str = "cells";
/// Between two tries for the lock.
const LOCK_AGAIN: Duration = Duration::from_millis(50);

/// A campaign's directory, held by this process.
#[derive(Debug)]
pub struct CampaignDirectory {
    directory: ResultDirectory,
    log: EventLog,
    _lock: File,
}

/// What a directory tells of its campaign.
#[derive(Debug, Clone)]
pub struct Found {
    /// The campaign as it began.
    pub campaign: Campaign,
    /// What was known before the first run.
    pub begun: Begun,
    /// Runs that ended, without their figures.
    pub runs: Vec<RunDone>,
    /// Whether another process runs it now.
    pub is_running: bool,
}

impl CampaignDirectory {
    /// Makes a directory for `campaign` below `out`, with `text`, its file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(out: &Path, text: &str, begun: &Begun) -> Result<Self, CampaignError> {
        let (directory, log) =
            ResultDirectory::begin(out, Kind::Campaign, CampaignSummary::SCHEMA_VERSION, begun)?;
        let lock = locked(directory.path())?;
        let plan = directory.path().join(PLAN);
        fs::write(&plan, text).map_err(CampaignError::io("write", &plan))?;
        Ok(Self { directory, log, _lock: lock })
    }

    /// Goes on with the campaign in `path`.
    ///
    /// # Errors
    /// It holds none, or another process runs it.
    pub fn resume(path: &Path) -> Result<Self, CampaignError> {
        let directory = ResultDirectory::open(path)?;
        let lock = locked(path)?;
        let log = directory.reopen_log()?;
        Ok(Self { directory, log, _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The campaign's file in it, which may be changed between two sittings.
    #[must_use]
    pub fn plan_of(path: &Path) -> PathBuf {
        path.join(PLAN)
    }

    /// Reads what a directory tells, also while another process runs it.
    ///
    /// # Errors
    /// It holds no campaign, or is damaged.
    pub fn read(path: &Path) -> Result<Found, CampaignError> {
        let directory = ResultDirectory::open(path)?;
        let not = |why: String| CampaignError::NotACampaign { path: path.to_owned(), why };
        let mut events = directory.events()?;
        let Some(Event::Started {
            t_unix_ns,
            id,
            tool_version,
            kind,
            command,
            plan,
            environment,
            profile,
            ..
        }) = events.next().transpose()?
        else {
            return Err(not("its events do not begin with its start".to_owned()));
        };
        if kind != Kind::Campaign {
            return Err(not("it is the result of another kind of measurement".to_owned()));
        }
        let campaign: Campaign = serde_json::from_value(plan.clone())
            .map_err(|why| not(format!("its plan cannot be read: {why}")))?;
        if count_runs(&campaign.axes, campaign.repetitions).is_none_or(|runs| runs > RUNS_MAX) {
            return Err(not(format!("its plan has more than {RUNS_MAX} runs")));
        }
        let mut runs = Vec::new();
        for event in events {
            if let Event::CellRun { cell, repetition, exit_code, directory, seconds, why, .. } = event? {
                let figures = Vec::new();
                // One that failed may have been run again: the last counts.
                runs.retain(|run: &RunDone| (run.cell, run.repetition) != (cell, repetition));
                runs.push(RunDone { cell, repetition, exit_code, directory, seconds, why, figures });
            }
        }
        let created_unix_ns = t_unix_ns;
        let workload = profile;
        let begun = Begun { id, tool_version, created_unix_ns, command, workload, plan, environment };
        Ok(Found { campaign, begun, runs, is_running: is_locked(path) })
    }

    /// The directory of a run, free for it; what an earlier try left is kept aside.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn room_for(&self, cell: u32, repetition: u32) -> Result<PathBuf, CampaignError> {
        let cells = self.path().join(CELLS);
        let name = format!("{cell}-r{repetition}");
        let path = cells.join(&name);
        if path.exists() {
            let aside = (1u32..)
                .map(|n| cells.join(if n == 1 { format!("{name}-cut") } else { format!("{name}-cut{n}") }))
                .find(|aside| !aside.exists());
            if let Some(aside) = aside {
                fs::rename(&path, aside).map_err(CampaignError::io("set aside", &path))?;
            }
        }
        fs::create_dir_all(&path).map_err(CampaignError::io("make", &path))?;
        Ok(path)
    }

    /// The result that a run left in its directory, relative to the campaign's.
    #[must_use]
    pub(crate) fn result_in(&self, room: &Path) -> Option<String> {
        let entries = fs::read_dir(room).ok()?.filter_map(Result::ok);
        let result = entries.map(|entry| entry.path()).find(|path| ResultDirectory::open(path).is_ok())?;
        let relative = result.strip_prefix(self.path()).ok()?;
        Some(relative.to_string_lossy().into_owned())
    }

    /// Writes an event down.
    ///
    /// # Errors
    /// The system refuses.
    pub fn append(&mut self, event: &Event) -> Result<(), CampaignError> {
        Ok(self.log.append(event)?)
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(&self, summary: &CampaignSummary) -> Result<(), CampaignError> {
        Ok(self.directory.write_summary(summary)?)
    }
}

impl Found {
    /// Takes runs that failed for runs that were not made.
    pub fn forget_failed(&mut self) {
        self.runs.retain(|run| run.why.is_none());
    }

    /// Reads what the runs measured, of those that left a result.
    pub fn read_figures(&mut self, path: &Path) {
        for run in &mut self.runs {
            if let Some(directory) = run.directory.as_ref().filter(|_| has_figures(run.exit_code)) {
                run.figures = figures_of(&path.join(directory));
            }
        }
    }

    /// Whether the campaign may be gone on with as `now`, by the keepup of this version. More or fewer
    /// repetitions, another title and other rules to stop are no matter.
    ///
    /// # Errors
    /// It is another campaign by now; or, unless `anyway` is set, its runs could not be compared with those
    /// that were made.
    pub fn may_resume(
        &self,
        path: &Path,
        now: &Campaign,
        version: &str,
        anyway: bool,
    ) -> Result<(), CampaignError> {
        let changed = |why: String, hint| Err(CampaignError::Changed { path: path.to_owned(), why, hint });
        let (old_cells, cells) = (self.campaign.cells(), now.cells());
        for run in &self.runs {
            let n = usize::try_from(run.cell).unwrap_or(usize::MAX).saturating_sub(1);
            let is_same = match (old_cells.get(n), cells.get(n)) {
                (Some(old), Some(cell)) => old.arguments == cell.arguments,
                _ => false,
            };
            if !is_same {
                let why = format!("in {PLAN} cell {} is another command than the one that was run", run.cell);
                return changed(why, "start a new campaign, or undo the change");
            }
        }
        let may_differ = Campaign {
            title: self.campaign.title.clone(),
            repetitions: self.campaign.repetitions,
            stop: self.campaign.stop.clone(),
            ..now.clone()
        };
        if anyway {
            return Ok(());
        }
        let hint = "--anyway resumes all the same";
        if may_differ != self.campaign {
            return changed(format!("{PLAN} was changed since it began"), hint);
        }
        let began = &self.begun.tool_version;
        if began != version {
            return changed(format!("it began with keepup {began}, and this is {version}"), hint);
        }
        Ok(())
    }
}

/// Whether a run that ended so measured what it was to measure: a machine that is not fit, or a question
/// that stays open, has figures too.
pub(crate) fn has_figures(exit_code: i32) -> bool {
    matches!(exit_code, 0 | 1 | 5)
}

/// What a result measured; nothing where it cannot be read.
#[must_use]
pub(crate) fn figures_of(directory: &Path) -> Vec<Figure> {
    let found = ResultDirectory::open(directory).and_then(|found| StoredResult::open(found.path()));
    found.map_or_else(|_| Vec::new(), |stored| stored.summary.figures())
}

/// Takes the lock, and writes this process's number into it.
fn locked(path: &Path) -> Result<File, CampaignError> {
    let lock = path.join(LOCK);
    let fail = || CampaignError::io("lock", &lock);
    let mut file = match OpenOptions::new().read(true).write(true).create_new(true).open(&lock) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => regular::open_to_write(&lock),
        made => made,
    }
    .map_err(fail())?;
    for last in [false, true] {
        match file.try_lock() {
            Ok(()) => break,
            // Somebody may only be looking whether it is held.
            Err(TryLockError::WouldBlock) if !last => std::thread::sleep(LOCK_AGAIN),
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).map_err(fail())?;
                return Err(CampaignError::Running { path: path.to_owned(), pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(why)) => return Err(fail()(why)),
        }
    }
    file.set_len(0).map_err(fail())?;
    writeln!(file, "{}", std::process::id()).map_err(fail())?;
    Ok(file)
}

/// Whether another process holds the lock. One that can be had is given back at once.
fn is_locked(path: &Path) -> bool {
    let file = regular::open(&path.join(LOCK));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
