//! The directory that a test's result is kept in, when the user names one.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_results::{
    DiskRun, DiskSummary, Event, EventLog, Kind, NetRun, NetSummary, ResultDirectory, default_name, unix_ns,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output::say;

/// Every run as it ends, and the whole at the end.
pub(super) struct Kept {
    directory: ResultDirectory,
    log: EventLog,
}

/// What is known of a test before its first run.
pub(super) struct Begun<'a> {
    kind: Kind,
    schema_version: u32,
    tool_version: &'a str,
    created: &'a str,
    command: &'a str,
    workload: &'a str,
    plan: &'a serde_json::Value,
    environment: &'a serde_json::Value,
}

/// The fields of a summary that every kind of test has.
macro_rules! begun_of {
    ($summary:ty, $kind:expr) => {
        impl<'a> From<&'a $summary> for Begun<'a> {
            fn from(summary: &'a $summary) -> Self {
                Self {
                    kind: $kind,
                    schema_version: summary.schema_version,
                    tool_version: &summary.tool_version,
                    created: &summary.created,
                    command: &summary.command,
                    workload: &summary.workload,
                    plan: &summary.plan,
                    environment: &summary.environment,
                }
            }
        }
    };
}

begun_of!(DiskSummary, Kind::Disk);
begun_of!(NetSummary, Kind::Net);

impl Kept {
    /// Makes a directory of its own below `out`.
    pub(super) fn begin(out: &Path, id: &str, begun: Begun<'_>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let id = &id[..8];
        let created_unix_ns = unix_ns(begun.created).unwrap_or_default();
        let directory =
            ResultDirectory::create(&out.join(default_name(begun.workload, id, created_unix_ns)?), id)?;
        let mut log = directory.create_log()?;
        log.append(&Event::Started {
            t_unix_ns: created_unix_ns,
            schema_version: begun.schema_version,
            tool_version: begun.tool_version.to_owned(),
            id: id.to_owned(),
            kind: begun.kind,
            command: begun.command.to_owned(),
            profile: begun.workload.to_owned(),
            plan: begun.plan.clone(),
            environment: begun.environment.clone(),
        })?;
        Ok(Self { directory, log })
    }

    /// A run of a disk test has ended.
    pub(super) fn disk_run(&mut self, run: &DiskRun) {
        self.append(&Event::DiskRun { t_unix_ns: SystemClock.unix_ns(), run: Box::new(run.clone()) });
    }

    /// A run of a network test has ended.
    pub(super) fn net_run(&mut self, run: &NetRun) {
        self.append(&Event::NetRun { t_unix_ns: SystemClock.unix_ns(), run: Box::new(run.clone()) });
    }

    /// What cannot be written is told and ends nothing.
    fn append(&mut self, event: &Event) {
        if let Err(why) = self.log.append(event) {
            say(&format!("warning: {why}"));
        }
    }

    /// All have ended; says where the result lies.
    pub(super) fn finish<S: Serialize + DeserializeOwned>(mut self, summary: &S) -> anyhow::Result<PathBuf> {
        self.log.append(&Event::Finished { t_unix_ns: SystemClock.unix_ns(), verdict: None })?;
        self.directory.write_summary(summary)?;
        Ok(self.directory.path().to_owned())
    }
}
