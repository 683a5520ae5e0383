//! The worker of a host in recordings: one thread for its part, beside those of the recorder.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::assignment::FleetAssignment;
use super::plan::RecordPlan;
use super::progress::Progress;
use super::recorder::{Setting, record};
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::message::{Counters, Health, HostId};
use crate::part::{LatestPart, PartControl};
use crate::placement::View;

/// Worker of an agent.
pub struct RecordWorker {
    clock: Arc<dyn Clock>,
    host: HostId,
    directories: Directories,
    progress: Progress,
    part: LatestPart,
    /// Of the latest part.
    assignment: Arc<FleetAssignment>,
    view: View,
}

impl RecordWorker {
    /// Worker of `host`, which may use `directories`.
    pub fn new(clock: Arc<dyn Clock>, host: HostId, directories: Directories) -> Self {
        Self {
            clock,
            host,
            directories,
            progress: Progress::default(),
            part: LatestPart::default(),
            assignment: Arc::new(FleetAssignment::new(0, host)),
            view: View::default(),
        }
    }
}

impl Worker for RecordWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        self.assignment = Arc::new(FleetAssignment::new(run, self.host));
        self.assignment.move_streams(&self.view);
        self.progress.clear();
        let setting = Setting {
            clock: Arc::clone(&self.clock),
            directories: self.directories.clone(),
            assignment: Arc::clone(&self.assignment),
            progress: self.progress.clone(),
        };
        let record = move |plan: &RecordPlan, control: &PartControl| record(plan, &setting, control);
        self.part.prepare((run, plan), reports, record);
    }

    fn start(&mut self, run: u64, until: Duration, _reports: &Reports) {
        self.part.start(run, until);
    }

    fn finish(&mut self, run: u64, at_once: bool, reports: &Reports) {
        self.part.finish(run, at_once, reports);
    }

    fn moved(&mut self, view: &View) {
        self.view.clone_from(view);
        self.assignment.move_streams(view);
    }

    fn leased(&mut self, until_ns: u64) {
        self.assignment.lease(until_ns);
    }

    fn counters(&self) -> Counters {
        self.progress.counters()
    }

    fn health(&self) -> Option<Health> {
        self.progress.health()
    }
}
