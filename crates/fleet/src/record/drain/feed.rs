//! A recorder's side: the thread that sends the recording to its sink while it grows.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_recorder::RecorderError;
use keepup_recorder::drain::{DrainCounters, DrainPlan, DrainReport, drain};
use serde::{Deserialize, Serialize};

use crate::error::error_text;

/// Timeout for the sink to make the last events durable.
const FINISH_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a drain may stand still after the end of its recording.
const STILL: Duration = Duration::from_secs(30);
/// Interval at which it is checked.
const POLL: Duration = Duration::from_millis(20);
/// Most incidents that are reported.
const INCIDENTS_MAX: usize = 20;

/// What a recorder reports of its drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainOutcome {
    /// Address of the sink.
    pub to: SocketAddr,
    /// How it ended.
    pub end: DrainEnd,
    /// Events on stable storage there, as far as they were acknowledged.
    pub durable_events: u64,
    /// Events that were not sent because they cannot be read.
    pub missing_events: u64,
    /// Failures and read errors.
    pub incidents: Vec<String>,
}

/// How a drain ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrainEnd {
    /// The copy has everything that is readable.
    Complete,
    /// It was stopped before.
    Stopped,
    /// It failed with this error.
    Failed(String),
}

impl DrainOutcome {
    /// Whether the copy has all events.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.end == DrainEnd::Complete && self.missing_events == 0 && self.incidents.is_empty()
    }
}

/// Figures of a running drain, and its failure.
#[derive(Clone, Debug)]
pub(crate) struct FeedFigures {
    live: Arc<DrainCounters>,
    failure: Arc<Mutex<Option<String>>>,
}

impl FeedFigures {
    /// Bytes of segments that were sent.
    pub(crate) fn drained_bytes(&self) -> u64 {
        self.live.passed_bytes.load(Ordering::Relaxed)
    }

    /// Events that are durable in the copy.
    pub(crate) fn copied_events(&self) -> u64 {
        self.live.durable_events.load(Ordering::Relaxed)
    }

    /// Bytes of durable segments that will be sent.
    pub(crate) fn behind_bytes(&self) -> u64 {
        if self.failure().is_some() { 0 } else { self.live.behind_bytes.load(Ordering::Relaxed) }
    }

    /// Why the drain has ended early, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A running drain.
pub(crate) struct Feed {
    to: SocketAddr,
    thread: JoinHandle<Option<DrainReport>>,
    stop: Arc<AtomicBool>,
    figures: FeedFigures,
}

impl Feed {
    /// Sends the recording in `directories` to `to` until it has ended.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        directories: Vec<PathBuf>,
        to: SocketAddr,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let plan = DrainPlan {
            recording: directories,
            to: to.into(),
            rate: None,
            follow: true,
            finish_timeout: FINISH_TIMEOUT,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let figures = FeedFigures { live: Arc::default(), failure: Arc::default() };
        let (shared, switch) = (figures.clone(), Arc::clone(&stop));
        let work = move || {
            let done = drain(&plan, clock.as_ref(), &switch, &shared.live);
            // An error after a request to stop is a consequence of it.
            let failed = |error| {
                if !switch.load(Ordering::Acquire) {
                    shared.fail(&error)
                }
            };
            done.map_err(failed).ok()
        };
        let thread = std::thread::Builder::new().name("ku-drain".into()).spawn(work);
        let thread = thread.map_err(|error| format!("cannot start the drain: {error}"))?;
        Ok(Self { to, thread, stop, figures })
    }

    /// Its figures.
    pub(crate) fn figures(&self) -> FeedFigures {
        self.figures.clone()
    }

    /// Ends it before everything is sent.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits until everything is sent, the drain stands still, or `is_hurried`.
    pub(crate) fn end(self, clock: &dyn Clock, is_hurried: impl Fn() -> bool) -> DrainOutcome {
        let progress = |figures: &FeedFigures| {
            let sent = figures.live.sent_bytes.load(Ordering::Relaxed);
            (figures.drained_bytes(), sent, figures.copied_events())
        };
        let (mut latest, mut since_ns) = (progress(&self.figures), clock.now_ns());
        while !self.thread.is_finished() {
            let (now, now_ns) = (progress(&self.figures), clock.now_ns());
            if now != latest {
                (latest, since_ns) = (now, now_ns);
            }
            let is_still = now_ns.saturating_sub(since_ns) >= STILL.as_nanos() as u64;
            if is_still && !self.stop.swap(true, Ordering::AcqRel) {
                let seconds = STILL.as_secs();
                self.figures.set_failure(format!("nothing was sent or acknowledged for {seconds} s"));
            }
            if is_hurried() {
                self.stop();
            }
            clock.sleep_until_ns(now_ns.saturating_add(POLL.as_nanos() as u64));
        }
        self.join()
    }

    fn join(self) -> DrainOutcome {
        let Self { to, thread, figures, .. } = self;
        let report = thread.join().unwrap_or_else(|_| {
            figures.set_failure("its thread panicked".to_owned());
            None
        });
        let end = match (figures.failure(), &report) {
            (_, Some(report)) if report.is_complete => DrainEnd::Complete,
            (Some(why), _) => DrainEnd::Failed(why),
            _ => DrainEnd::Stopped,
        };
        let faults = report.iter().flat_map(|report| report.faults.listed.iter().cloned());
        DrainOutcome {
            to,
            end,
            durable_events: report.as_ref().map_or(figures.copied_events(), |report| report.durable.events),
            missing_events: report.as_ref().map_or(0, |report| report.missing_events),
            incidents: faults.take(INCIDENTS_MAX).collect(),
        }
    }
}

impl FeedFigures {
    fn fail(&self, error: &RecorderError) {
        self.set_failure(error_text(error));
    }

    fn set_failure(&self, why: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }
}
