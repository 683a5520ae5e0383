//! The worker of a host in checks: one thread for its part.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Token;

use super::host::{self, Setting};
use super::packet::PathKey;
use super::part::Part;
use super::plan::CheckPlan;
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::host::Done;
use crate::message::Counters;
use crate::placement::View;

/// Worker of an agent.
pub struct CheckWorker {
    clock: Arc<dyn Clock>,
    directories: Directories,
    key: PathKey,
    part: Option<Part>,
}

impl CheckWorker {
    /// A worker that judges `directories`. All hosts of a fleet have the token `shared`.
    pub fn new(clock: Arc<dyn Clock>, directories: Directories, shared: &Token) -> Self {
        Self { clock, directories, key: PathKey::new(shared), part: None }
    }

    fn spawn(&self, run: u64, plan: &str, reports: &Reports) -> Result<Part, String> {
        let plan: CheckPlan =
            serde_json::from_str(plan).map_err(|error| format!("malformed plan: {error}"))?;
        let (clock, directories) = (Arc::clone(&self.clock), self.directories.clone());
        let setting = Setting { run, clock, directories, key: self.key.clone(), reports: reports.clone() };
        Part::spawn(run, reports, move |control| host::check(&plan, &setting, control))
    }
}

impl Worker for CheckWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        match self.spawn(run, plan, reports) {
            Ok(part) => self.part = Some(part),
            Err(why) => reports.send(Done::Failed { run, why }),
        }
    }

    fn start(&mut self, run: u64, _until: Duration, _reports: &Reports) {
        self.part.iter().filter(|part| part.run() == run).for_each(Part::start);
    }

    fn finish(&mut self, run: u64, reports: &Reports) {
        match self.part.as_ref().filter(|part| part.run() == run) {
            Some(part) => part.stop(),
            None => reports.send(Done::Failed { run, why: "it has no part in this run".to_owned() }),
        }
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
