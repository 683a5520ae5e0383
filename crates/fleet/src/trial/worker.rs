//! The worker of a host in trials: one thread for its part.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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
use crate::host::Done;
use crate::message::Counters;
use crate::placement::View;

/// A part that has not ended.
struct Part {
    run: u64,
    start: SyncSender<Duration>,
    stop: Arc<AtomicBool>,
}

/// Worker of an agent.
pub struct TrialWorker {
    clock: Arc<dyn Clock>,
    directories: Directories,
    credentials: Credentials,
    watcher: WatcherSlot,
    part: Option<Part>,
}

impl TrialWorker {
    /// A worker that uses `directories`. All hosts of a fleet have the same `token` for their sources.
    pub fn new(clock: Arc<dyn Clock>, directories: Directories, token: Token, random: Random) -> Self {
        let credentials = Credentials { token, random };
        Self { clock, directories, credentials, watcher: WatcherSlot::default(), part: None }
    }

    fn spawn(&mut self, run: u64, plan: &str, reports: &Reports) -> Result<Part, String> {
        let plan: HostPlan =
            serde_json::from_str(plan).map_err(|error| format!("malformed plan: {error}"))?;
        let (start, started) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        self.watcher.clear();
        let setting = Setting {
            run,
            clock: Arc::clone(&self.clock),
            directories: self.directories.clone(),
            credentials: self.credentials.clone(),
            stop: Arc::clone(&stop),
            watcher: self.watcher.clone(),
            reports: reports.clone(),
        };
        let work = move || {
            let done = match work(&plan, &setting, &started) {
                Ok(outcome) => Done::Finished { run, outcome },
                Err(why) => Done::Failed { run, why },
            };
            setting.reports.send(done);
        };
        let thread = std::thread::Builder::new().name("ku-fleet-part".into()).spawn(work);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Part { run, start, stop })
    }
}

fn work(plan: &HostPlan, setting: &Setting, started: &Receiver<Duration>) -> Result<String, String> {
    match plan {
        HostPlan::Recorder(plan) => recorder::record(plan, setting, started),
        HostPlan::Source(plan) => source::serve(plan, setting),
    }
}

impl Worker for TrialWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        match self.spawn(run, plan, reports) {
            Ok(part) => self.part = Some(part),
            Err(why) => reports.send(Done::Failed { run, why }),
        }
    }

    fn start(&mut self, run: u64, until: Duration, _reports: &Reports) {
        if let Some(part) = self.part.as_ref().filter(|part| part.run == run) {
            // A part that has ended already has reported it.
            let _ = part.start.try_send(until);
        }
    }

    fn finish(&mut self, run: u64, reports: &Reports) {
        match self.part.as_ref().filter(|part| part.run == run) {
            // The thread ends and reports. It may be asked more than once, and must not be cut off.
            Some(part) => part.stop.store(true, Ordering::Release),
            None => reports.send(Done::Failed { run, why: "it has no part in this run".to_owned() }),
        }
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
