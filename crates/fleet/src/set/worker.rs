//! The worker of a host in commands on a recording set.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::host::{Setting, work};
use super::plan::SetPlan;
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::host::Done;
use crate::message::Counters;
use crate::part::{LatestPart, PartControl};
use crate::placement::View;

/// Worker of an agent.
pub struct SetWorker {
    setting: Setting,
    part: LatestPart,
}

impl SetWorker {
    /// A worker that uses recordings in `directories`.
    pub fn new(clock: Arc<dyn Clock>, directories: Directories) -> Self {
        let (read_bytes, answer) = (Arc::new(AtomicU64::new(0)), Arc::default());
        Self { setting: Setting { clock, directories, read_bytes, answer }, part: LatestPart::default() }
    }
}

impl Worker for SetWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        let setting = self.setting.clone();
        let work = move |plan: &SetPlan, control: &PartControl| work(plan, &setting, control);
        self.part.prepare((run, plan), reports, work);
    }

    fn start(&mut self, run: u64, until: Duration, _reports: &Reports) {
        self.part.start(run, until);
    }

    /// A thread that reads a recording does not end early. Its later report is ignored; it ends with the
    /// agent, which is as safe as a killed `keepup recover`.
    fn finish(&mut self, run: u64, at_once: bool, reports: &Reports) {
        self.part.finish(run, at_once, reports);
        reports.send(Done::Failed { run, why: "it was asked to end".to_owned() });
    }

    fn moved(&mut self, _view: &View) {}

    fn leased(&mut self, _until_ns: u64) {}

    /// The bytes read so far.
    fn counters(&self) -> Counters {
        Counters { bytes: self.setting.read_bytes.load(Ordering::Relaxed), ..Counters::default() }
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
