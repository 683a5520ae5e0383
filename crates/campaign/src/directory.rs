//! Campaign directory: campaign file, event log, results of the cells, and lock.
//!
//! Invariants: one process at a time runs a campaign; the directory of an interrupted run is renamed; the
//! kernel releases the lock when its owner dies.
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_results::{
    Begun, CampaignRun, CampaignSummary, Event, EventLog, Figure, Figures, Kind, ResultDirectory,
    StoredResult, TestSummary,
};
use keepup_sys::{output, regular};

use crate::error::CampaignError;
use crate::plan::{Campaign, RUNS_MAX, count_runs};
use crate::state::RunDone;

/// Campaign file.
const PLAN: &str = "campaign.toml";
/// Lock file of the running process, contains its process id.
const LOCK: &str = ".lock";
const CELLS: &str = "cells";
/// Time between two attempts to lock.
const LOCK_AGAIN: Duration = Duration::from_millis(50);

/// Campaign directory locked by this process.
#[derive(Debug)]
pub struct CampaignDirectory {
    directory: ResultDirectory,
    log: EventLog,
    _lock: File,
}

/// Campaign read from its directory.
#[derive(Debug, Clone)]
pub struct StoredCampaign {
    /// Campaign at its start.
    pub campaign: Campaign,
    /// Metadata of the result.
    pub begun: Begun,
    /// Finished runs, without figures.
    pub runs: Vec<RunDone>,
    /// Whether another process runs it now.
    pub is_running: bool,
}

impl CampaignDirectory {
    /// Creates a campaign directory below `out`. `text` is the campaign file.
    ///
    /// # Errors
    /// I/O error.
    pub fn create(out: &Path, text: &str, begun: &Begun) -> Result<Self, CampaignError> {
        let (directory, log) =
            ResultDirectory::begin(out, Kind::Campaign, CampaignSummary::SCHEMA_VERSION, begun)?;
        let lock = locked(directory.path())?;
        let plan = directory.path().join(PLAN);
        output::write(&plan, text.as_bytes()).map_err(CampaignError::io("write", &plan))?;
        Ok(Self { directory, log, _lock: lock })
    }

    /// Opens the campaign in `path` to resume it.
    ///
    /// # Errors
    /// No campaign, or another process is running it.
    pub fn resume(path: &Path) -> Result<Self, CampaignError> {
        let directory = ResultDirectory::open(path)?;
        let lock = locked(path)?;
        let log = directory.reopen_log()?;
        Ok(Self { directory, log, _lock: lock })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Path of the campaign file, which may be changed while the campaign is not running.
    #[must_use]
    pub fn plan_of(path: &Path) -> PathBuf {
        path.join(PLAN)
    }

    /// Reads a campaign directory, even while another process runs the campaign.
    ///
    /// # Errors
    /// No campaign, or damaged.
    pub fn read(path: &Path) -> Result<StoredCampaign, CampaignError> {
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
            return Err(not("the event log does not start with a start event".to_owned()));
        };
        if kind != Kind::Campaign {
            return Err(not("the result is of another kind of measurement".to_owned()));
        }
        let campaign: Campaign = serde_json::from_value(plan.clone())
            .map_err(|why| not(format!("cannot parse its plan: {why}")))?;
        if count_runs(&campaign.axes, campaign.repetitions).is_none_or(|runs| runs > RUNS_MAX) {
            return Err(not(format!("its plan has more than {RUNS_MAX} runs")));
        }
        let mut runs = Vec::new();
        for event in events {
            if let Event::CellRun { cell, repetition, exit_code, directory, seconds, why, .. } = event? {
                let figures = Vec::new();
                // A failed run may have been repeated; the last one counts.
                runs.retain(|run: &RunDone| (run.cell, run.repetition) != (cell, repetition));
                runs.push(RunDone { cell, repetition, exit_code, directory, seconds, why, figures });
            }
        }
        let created_unix_ns = t_unix_ns;
        let workload = profile;
        let begun = Begun { id, tool_version, created_unix_ns, command, workload, plan, environment };
        Ok(StoredCampaign { campaign, begun, runs, is_running: is_locked(path) })
    }

    /// Creates the directory of a run. Renames the directory of an earlier attempt.
    ///
    /// # Errors
    /// I/O error.
    pub(crate) fn create_run_directory(&self, cell: u32, repetition: u32) -> Result<PathBuf, CampaignError> {
        let cells = self.path().join(CELLS);
        let name = format!("{cell}-r{repetition}");
        let path = cells.join(&name);
        if path.exists() {
            let aside = (1u32..)
                .map(|n| cells.join(if n == 1 { format!("{name}-cut") } else { format!("{name}-cut{n}") }))
                .find(|aside| !aside.exists());
            if let Some(aside) = aside {
                fs::rename(&path, aside).map_err(CampaignError::io("rename", &path))?;
            }
        }
        fs::create_dir_all(&path).map_err(CampaignError::io("create", &path))?;
        Ok(path)
    }

    /// Result in the directory of a run, relative to the campaign directory.
    #[must_use]
    pub(crate) fn result_in(&self, run_directory: &Path) -> Option<String> {
        let entries = fs::read_dir(run_directory).ok()?.filter_map(Result::ok);
        let result = entries.map(|entry| entry.path()).find(|path| ResultDirectory::open(path).is_ok())?;
        let relative = result.strip_prefix(self.path()).ok()?;
        Some(relative.to_string_lossy().into_owned())
    }

    /// Logs an event.
    ///
    /// # Errors
    /// I/O error.
    pub fn append(&mut self, event: &Event) -> Result<(), CampaignError> {
        Ok(self.log.append(event)?)
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// I/O error.
    pub fn finish(&self, summary: &CampaignSummary) -> Result<(), CampaignError> {
        Ok(self.directory.write_summary(summary)?)
    }
}

impl StoredCampaign {
    /// Discards failed runs, so that they are repeated.
    pub fn discard_failed(&mut self) {
        self.runs.retain(|run| run.why.is_none());
    }

    /// Reads the figures of all runs with a result.
    pub fn read_figures(&mut self, path: &Path) {
        for run in &mut self.runs {
            if let Some(directory) = run.directory.as_ref().filter(|_| has_figures(run.exit_code)) {
                run.figures = figures_of(&path.join(directory));
            }
        }
    }

    /// Checks whether the campaign can be resumed as `now` by keepup `version`. Repetitions, title and stop
    /// conditions may differ.
    ///
    /// # Errors
    /// A finished cell has another command; or, unless `anyway` is set, new runs would not be comparable.
    pub fn check_resume(
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
                (Some(old), Some(cell)) => (&old.host, &old.arguments) == (&cell.host, &cell.arguments),
                _ => false,
            };
            if !is_same {
                let why = format!("the command of cell {} in {PLAN} was changed since its run", run.cell);
                return changed(why, "start a new campaign or revert the change");
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
        let hint = "use --anyway to resume nevertheless";
        if may_differ != self.campaign {
            return changed(format!("{PLAN} was changed since the start"), hint);
        }
        let began = &self.begun.tool_version;
        if began != version {
            return changed(format!("it was started with keepup {began}, this is {version}"), hint);
        }
        Ok(())
    }
}

/// Whether a run with this exit code has figures. Unfit machines and inconclusive tests have them too.
pub(crate) fn has_figures(exit_code: i32) -> bool {
    CampaignRun::is_success(exit_code) || matches!(exit_code, 1 | 5)
}

/// Figures of a result, empty if unreadable.
#[must_use]
pub(crate) fn figures_of(directory: &Path) -> Vec<Figure> {
    let found = ResultDirectory::open(directory).and_then(|found| StoredResult::open(found.path()));
    found.map_or_else(|_| Vec::new(), |stored| stored.summary.figures())
}

/// Takes the lock and writes the process id into its file.
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
            // `is_locked` of another process may hold it for a moment.
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

/// Whether another process holds the lock. Releases it at once if not.
fn is_locked(path: &Path) -> bool {
    let file = regular::open(&path.join(LOCK));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
