//! The part of a host in a run: a thread that waits for the start, may be asked to end, and reports.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::agent_loop::Reports;
use crate::host::Done;

/// Interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(20);

/// A part whose thread was started.
#[derive(Debug)]
struct Part {
    run: u64,
    start: SyncSender<Duration>,
    stop: Arc<AtomicBool>,
    hurry: Arc<AtomicBool>,
}

/// The latest part of a worker.
#[derive(Debug, Default)]
pub(crate) struct LatestPart(Option<Part>);

/// A part as its thread sees it.
#[derive(Debug)]
pub(crate) struct PartControl {
    /// Number of the run.
    pub(crate) run: u64,
    started: Receiver<Duration>,
    stop: Arc<AtomicBool>,
    hurry: Arc<AtomicBool>,
    reports: Reports,
}

impl LatestPart {
    /// Starts a thread that does `work` with the plan in `text` and reports the result, which is JSON. It
    /// reports [`Done::Failed`] if that is impossible.
    pub(crate) fn prepare<P: serde::de::DeserializeOwned + Send + 'static>(
        &mut self,
        (run, text): (u64, &str),
        reports: &Reports,
        work: impl FnOnce(&P, &PartControl) -> Result<String, String> + Send + 'static,
    ) {
        let plan = serde_json::from_str(text).map_err(|error| format!("malformed plan: {error}"));
        match plan.and_then(|plan| Part::spawn(run, reports, move |control| work(&plan, control))) {
            Ok(part) => self.0 = Some(part),
            Err(why) => reports.send(Done::Failed { run, why }),
        }
    }

    /// Lets the part of `run` continue after [`PartControl::wait`]; the run starts when `until` has passed.
    pub(crate) fn start(&self, run: u64, until: Duration) {
        if let Some(part) = self.of(run) {
            // A part that has ended already has reported it.
            let _ = part.start.try_send(until);
        }
    }

    /// Asks the part of `run` to end, `at_once` without what is only copied. The thread is not cut off: it
    /// reports first. It may be asked again.
    pub(crate) fn finish(&self, run: u64, at_once: bool, reports: &Reports) {
        match self.of(run) {
            Some(part) => {
                part.hurry.fetch_or(at_once, Ordering::Release);
                part.stop.store(true, Ordering::Release);
            }
            None => reports.send(Done::Failed { run, why: "it has no part in this run".to_owned() }),
        }
    }

    fn of(&self, run: u64) -> Option<&Part> {
        self.0.as_ref().filter(|part| part.run == run)
    }
}

impl Part {
    fn spawn(
        run: u64,
        reports: &Reports,
        work: impl FnOnce(&PartControl) -> Result<String, String> + Send + 'static,
    ) -> Result<Self, String> {
        let (start, started) = sync_channel(1);
        let (stop, hurry) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let control = PartControl {
            run,
            started,
            stop: Arc::clone(&stop),
            hurry: Arc::clone(&hurry),
            reports: reports.clone(),
        };
        let work = move || {
            // A panic must not leave a host that seems to work.
            let done = match catch_unwind(AssertUnwindSafe(|| work(&control))) {
                Ok(Ok(outcome)) => Done::Finished { run, outcome },
                Ok(Err(why)) => Done::Failed { run, why },
                Err(_) => Done::Failed { run, why: "its thread panicked".to_owned() },
            };
            control.report(done);
        };
        let thread = std::thread::Builder::new().name("ku-fleet-part".into()).spawn(work);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { run, start, stop, hurry })
    }
}

impl PartControl {
    /// Reports to the controller.
    pub(crate) fn report(&self, done: Done) {
        self.reports.send(done);
    }

    /// Whether the part is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Flag that is set when the part is to end.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether the part is to end without what is only copied.
    pub(crate) fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Acquire)
    }

    /// Waits for the order to start; returns the time until the start, or none if the part is to end before.
    pub(crate) fn wait(&self) -> Option<Duration> {
        loop {
            match self.started.recv_timeout(POLL) {
                Ok(until) => return Some(until),
                Err(RecvTimeoutError::Timeout) if !self.is_stopped() => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
