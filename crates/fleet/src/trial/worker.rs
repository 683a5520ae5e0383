//! The worker of a host in trials: one thread for its part.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Token;
use keepup_recorder::watch::WatcherSlot;
use keepup_workload::net::{Credentials, Random};

use super::plan::HostPlan;
use super::setting::Setting;
use super::{recorder, source};
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::message::Counters;
use crate::part::{LatestPart, PartControl};
use crate::placement::View;
use crate::record::drain::receive;

/// Worker of an agent.
pub struct TrialWorker {
    clock: Arc<dyn Clock>,
    directories: Directories,
    credentials: Credentials,
    watcher: WatcherSlot,
    part: LatestPart,
}

impl TrialWorker {
    /// A worker that uses `directories`. All hosts of a fleet have the same `token` for their sources.
    pub fn new(clock: Arc<dyn Clock>, directories: Directories, token: Token, random: Random) -> Self {
        let credentials = Credentials { token, random };
        Self { clock, directories, credentials, watcher: WatcherSlot::default(), part: LatestPart::default() }
    }
}

fn work(plan: &HostPlan, setting: &Setting, control: &PartControl) -> Result<String, String> {
    match plan {
        HostPlan::Recorder(plan) => recorder::record(plan, setting, control),
        HostPlan::Source(plan) => source::serve(plan, setting, control),
        HostPlan::Drain(plan) => receive(plan, (&setting.clock, &setting.directories), control),
    }
}

impl Worker for TrialWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        self.watcher.clear();
        let setting = Setting {
            clock: Arc::clone(&self.clock),
            directories: self.directories.clone(),
            credentials: self.credentials.clone(),
            watcher: self.watcher.clone(),
        };
        self.part.prepare((run, plan), reports, move |plan, control| work(plan, &setting, control));
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
        self.watcher.sample().map_or_else(Counters::default, |moment| Counters {
            events: moment.flow.received.events,
            bytes: moment.flow.received.bytes,
            durable_events: moment.flow.durable.events,
            ..Counters::default()
        })
    }
}
