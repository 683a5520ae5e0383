//! The worker of a host in checks: one thread for its part.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Token;

use super::host::{self, Setting};
use super::packet::PathKey;
use super::plan::CheckPlan;
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::message::Counters;
use crate::part::{LatestPart, PartControl};
use crate::placement::View;

/// Worker of an agent.
pub struct CheckWorker {
    clock: Arc<dyn Clock>,
    directories: Directories,
    key: PathKey,
    part: LatestPart,
}

impl CheckWorker {
    /// A worker that judges `directories`. All hosts of a fleet have the token `shared`.
    pub fn new(clock: Arc<dyn Clock>, directories: Directories, shared: &Token) -> Self {
        Self { clock, directories, key: PathKey::new(shared), part: LatestPart::default() }
    }
}

impl Worker for CheckWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        let (clock, directories) = (Arc::clone(&self.clock), self.directories.clone());
        let setting = Setting { clock, directories, key: self.key.clone() };
        let check = move |plan: &CheckPlan, control: &PartControl| host::check(plan, &setting, control);
        self.part.prepare((run, plan), reports, check);
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

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
