//! The directory that a disk test's result is kept in, when the user names one.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_results::{
    DISK_SCHEMA_VERSION, DiskRun, DiskSummary, Event, EventLog, Kind, ResultDirectory, default_name, unix_ns,
};

use crate::output::say;

/// Every run as it ends, and the whole at the end.
pub(super) struct Kept {
    directory: ResultDirectory,
    log: EventLog,
}

impl Kept {
    /// Makes a directory of its own below `out`. `begun` is the result as far as it is known before the first
    /// run.
    pub(super) fn begin(out: &Path, id: &str, begun: &DiskSummary) -> anyhow::Result<Self> {
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let id = &id[..8];
        let created_unix_ns = unix_ns(&begun.created).unwrap_or_default();
        let directory =
            ResultDirectory::create(&out.join(default_name(&begun.workload, id, created_unix_ns)?), id)?;
        let mut log = directory.create_log()?;
        log.append(&Event::Started {
            t_unix_ns: created_unix_ns,
            schema_version: DISK_SCHEMA_VERSION,
            tool_version: begun.tool_version.clone(),
            id: id.to_owned(),
            kind: Kind::Disk,
            command: begun.command.clone(),
            profile: begun.workload.clone(),
            plan: begun.plan.clone(),
            environment: begun.environment.clone(),
        })?;
        Ok(Self { directory, log })
    }

    /// A run has ended. What cannot be written is told and ends nothing.
    pub(super) fn run(&mut self, run: &DiskRun) {
        let event = Event::DiskRun { t_unix_ns: SystemClock.unix_ns(), run: Box::new(run.clone()) };
        if let Err(why) = self.log.append(&event) {
            say(&format!("warning: {why}"));
        }
    }

    /// All have ended; says where the result lies.
    pub(super) fn finish(mut self, summary: &DiskSummary) -> anyhow::Result<PathBuf> {
        self.log.append(&Event::Finished { t_unix_ns: SystemClock.unix_ns(), verdict: None })?;
        self.directory.write_summary(summary)?;
        Ok(self.directory.path().to_owned())
    }
}
