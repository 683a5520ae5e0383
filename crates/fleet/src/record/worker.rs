//! The worker of a host in recordings: one thread for its part, beside those of the recorder.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::assignment::FleetAssignment;
use super::plan::RecordPlan;
use super::progress::Progress;
use super::recorder::{Setting, record};
use crate::agent_loop::{Reports, Worker};
use crate::directories::Directories;
use crate::host::Done;
use crate::message::{Counters, Health, HostId};
use crate::placement::View;

/// A part that has not ended.
struct Part {
    run: u64,
    assignment: Arc<FleetAssignment>,
    start: SyncSender<Duration>,
    stop: Arc<AtomicBool>,
}

/// Worker of an agent.
pub struct RecordWorker {
    clock: Arc<dyn Clock>,
    host: HostId,
    directories: Directories,
    progress: Progress,
    part: Option<Part>,
    view: View,
}

impl RecordWorker {
    /// Worker of `host`, which may use `directories`.
    pub fn new(clock: Arc<dyn Clock>, host: HostId, directories: Directories) -> Self {
        Self { clock, host, directories, progress: Progress::default(), part: None, view: View::default() }
    }

    fn spawn(&mut self, run: u64, plan: &str, reports: &Reports) -> Result<Part, String> {
        let plan: RecordPlan =
            serde_json::from_str(plan).map_err(|error| format!("malformed plan: {error}"))?;
        let (start, started) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let assignment = Arc::new(FleetAssignment::new(run, self.host));
        assignment.move_streams(&self.view);
        self.progress.clear();
        let setting = Setting {
            run,
            clock: Arc::clone(&self.clock),
            directories: self.directories.clone(),
            assignment: Arc::clone(&assignment),
            progress: self.progress.clone(),
            stop: Arc::clone(&stop),
            reports: reports.clone(),
        };
        let work = move || {
            // A panic must not leave a host that seems to record.
            let recorded = catch_unwind(AssertUnwindSafe(|| record(&plan, &setting, &started)));
            let done = match recorded {
                Ok(Ok(outcome)) => Done::Finished { run, outcome },
                Ok(Err(why)) => Done::Failed { run, why },
                Err(_) => Done::Failed { run, why: "its thread panicked".to_owned() },
            };
            setting.reports.send(done);
        };
        let thread = std::thread::Builder::new().name("ku-fleet-part".into()).spawn(work);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Part { run, assignment, start, stop })
    }

    fn part(&self, run: u64) -> Option<&Part> {
        self.part.as_ref().filter(|part| part.run == run)
    }
}

impl Worker for RecordWorker {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        match self.spawn(run, plan, reports) {
            Ok(part) => self.part = Some(part),
            Err(why) => reports.send(Done::Failed { run, why }),
        }
    }

    fn start(&mut self, run: u64, until: Duration, _reports: &Reports) {
        if let Some(part) = self.part(run) {
            // A part that has ended already has reported it.
            let _ = part.start.try_send(until);
        }
    }

    fn finish(&mut self, run: u64, reports: &Reports) {
        match self.part(run) {
            // The thread ends and reports. It may be asked more than once.
            Some(part) => part.stop.store(true, Ordering::Release),
            None => reports.send(Done::Failed { run, why: "it has no part in this run".to_owned() }),
        }
    }

    fn moved(&mut self, view: &View) {
        self.view.clone_from(view);
        self.part.iter().for_each(|part| part.assignment.move_streams(view));
    }

    fn leased(&mut self, until_ns: u64) {
        self.part.iter().for_each(|part| part.assignment.lease(until_ns));
    }

    fn counters(&self) -> Counters {
        self.progress.counters()
    }

    fn health(&self) -> Option<Health> {
        self.progress.health()
    }
}
