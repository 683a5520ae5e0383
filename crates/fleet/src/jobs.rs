//! Which worker of an agent executes a plan: its first line names the job, the rest is the worker's.
use std::time::Duration;

use crate::agent_loop::{Reports, Worker};
use crate::host::Done;
use crate::message::{Counters, Health};
use crate::placement::View;

/// Name of the trial's job.
pub const TRIAL: &str = "trial";
/// Name of the recording's job.
pub const RECORD: &str = "record";
/// Name of the job of a drain host.
pub const DRAIN: &str = "drain";
/// Name of the check's job.
pub const CHECK: &str = "check";
/// Name of the job on recording sets.
pub const SET: &str = "set";
/// Name of the job of a campaign's commands.
pub const COMMAND: &str = "command";

/// Text of a plan for the worker of `job`.
///
/// # Errors
/// The plan cannot be encoded.
pub fn encode(job: &str, plan: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(plan).map(|plan| format!("{job}\n{plan}"))
}

/// The workers of an agent, one of which executes the current run.
pub struct Jobs {
    workers: Vec<(&'static str, Box<dyn Worker>)>,
    current: usize,
}

impl Jobs {
    /// Workers with the names of their jobs; at least one.
    pub fn new(workers: Vec<(&'static str, Box<dyn Worker>)>) -> Self {
        Self { workers, current: 0 }
    }

    fn current(&mut self) -> Option<&mut Box<dyn Worker>> {
        self.workers.get_mut(self.current).map(|(_, worker)| worker)
    }
}

impl Worker for Jobs {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        let (job, plan) = plan.split_once('\n').unwrap_or((plan, ""));
        match self.workers.iter().position(|(name, _)| *name == job) {
            Some(found) => {
                self.current = found;
                self.current().into_iter().for_each(|worker| worker.prepare(run, plan, reports));
            }
            None => {
                let job: String = job.chars().take(40).collect();
                reports.send(Done::Failed { run, why: format!("this agent has no job {job:?}") });
            }
        }
    }

    fn start(&mut self, run: u64, until: Duration, reports: &Reports) {
        self.current().into_iter().for_each(|worker| worker.start(run, until, reports));
    }

    fn finish(&mut self, run: u64, at_once: bool, reports: &Reports) {
        self.current().into_iter().for_each(|worker| worker.finish(run, at_once, reports));
    }

    fn moved(&mut self, view: &View) {
        self.workers.iter_mut().for_each(|(_, worker)| worker.moved(view));
    }

    fn leased(&mut self, until_ns: u64) {
        self.current().into_iter().for_each(|worker| worker.leased(until_ns));
    }

    fn counters(&self) -> Counters {
        self.workers.get(self.current).map_or_else(Counters::default, |(_, worker)| worker.counters())
    }

    fn health(&self) -> Option<Health> {
        self.workers.get(self.current)?.1.health()
    }
}

#[cfg(test)]
#[path = "jobs_tests.rs"]
mod tests;
