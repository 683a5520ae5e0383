//! A thread for a part of a run, which waits for the start and may be asked to end.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::agent_loop::Reports;
use crate::host::Done;

/// Interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(50);

/// A part whose thread was started.
#[derive(Debug)]
pub(super) struct Part {
    run: u64,
    start: SyncSender<()>,
    stop: Arc<AtomicBool>,
}

/// The same part as its thread sees it.
#[derive(Debug)]
pub(super) struct PartControl {
    started: Receiver<()>,
    stop: Arc<AtomicBool>,
}

impl Part {
    /// Starts a thread that does `work` and reports its result.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn spawn(
        run: u64,
        reports: &Reports,
        work: impl FnOnce(&PartControl) -> Result<String, String> + Send + 'static,
    ) -> Result<Self, String> {
        let (start, started) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let (control, reports) = (PartControl { started, stop: Arc::clone(&stop) }, reports.clone());
        let work = move || {
            reports.send(match work(&control) {
                Ok(outcome) => Done::Finished { run, outcome },
                Err(why) => Done::Failed { run, why },
            });
        };
        let thread = std::thread::Builder::new().name("ku-fleet-part".into()).spawn(work);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { run, start, stop })
    }

    /// Number of its run.
    pub(super) const fn run(&self) -> u64 {
        self.run
    }

    /// Lets it continue after [`PartControl::wait`].
    pub(super) fn start(&self) {
        // A part that has ended already has reported it.
        let _ = self.start.try_send(());
    }

    /// Asks it to end. The thread is not cut off: it reports first.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }
}

impl PartControl {
    /// Whether the part is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits for the start; returns false if the part is to end before.
    pub(super) fn wait(&self) -> bool {
        loop {
            match self.started.recv_timeout(POLL) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Timeout) if !self.is_stopped() => {}
                Err(_) => return false,
            }
        }
    }
}
