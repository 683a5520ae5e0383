//! The worker of a drain host: one thread for its part, beside those of the sinks.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::plan::DrainPlan;
use super::sinks::receive;
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::message::Counters;
use crate::part::{LatestPart, PartControl};
use crate::placement::View;

/// Worker of an agent.
pub struct DrainWorker {
    clock: Arc<dyn Clock>,
    directories: Directories,
    part: LatestPart,
}

impl DrainWorker {
    /// A worker that may use `directories`.
    pub fn new(clock: Arc<dyn Clock>, directories: Directories) -> Self {
        Self { clock, directories, part: LatestPart::default() }
    }
}

impl Worker for DrainWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        let (clock, directories) = (Arc::clone(&self.clock), self.directories.clone());
        let receive =
            move |plan: &DrainPlan, control: &PartControl| receive(plan, (&clock, &directories), control);
        self.part.prepare((run, plan), reports, receive);
    }

    fn start(&mut self, run: u64, until: Duration, _reports: &Reports) {
        self.part.start(run, until);
    }

    fn finish(&mut self, run: u64, at_once: bool, reports: &Reports) {
        self.part.finish(run, at_once, reports);
    }

    fn moved(&mut self, _view: &View) {}

    fn leased(&mut self, _until_ns: u64) {}

    fn counters(&self) -> Counters {
        Counters::default()
    }
}
