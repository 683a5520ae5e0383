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
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);
/// Most incidents that are reported.
const INCIDENTS_MAX: usize = 20;

/// What a recorder reports of its drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainOutcome {
    /// Address of the sink.
    pub to: SocketAddr,
    /// How it ended.
    pub end: DrainEnd,
    /// Events on stable storage there.
    pub durable_events: u64,
    /// Bytes of durable segments that were not sent.
    pub behind_bytes: u64,
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

    /// Bytes of durable segments that were not sent.
    pub(crate) fn behind_bytes(&self) -> u64 {
        self.live.behind_bytes.load(Ordering::Relaxed)
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
            done.map_err(|error| shared.fail(&error)).ok()
        };
        let thread = std::thread::Builder::new().name("ku-drain".into()).spawn(work);
        let thread = thread.map_err(|error| format!("cannot start the drain: {error}"))?;
        Ok(Self { to, thread, stop, figures })
    }

    /// Its figures.
    pub(crate) fn figures(&self) -> FeedFigures {
        self.figures.clone()
    }

    /// Whether it has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it before everything is sent.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for its end.
    pub(crate) fn join(self) -> DrainOutcome {
        let Self { to, thread, figures, stop } = self;
        let report = thread.join().unwrap_or_else(|_| {
            figures.set_failure("its thread panicked".to_owned());
            None
        });
        let end = match (figures.failure(), &report) {
            (None, Some(report)) if report.is_complete => DrainEnd::Complete,
            (Some(why), _) if !stop.load(Ordering::Acquire) => DrainEnd::Failed(why),
            _ => DrainEnd::Stopped,
        };
        let faults = report.iter().flat_map(|report| report.faults.listed.iter().cloned());
        DrainOutcome {
            to,
            end,
            durable_events: report.as_ref().map_or(0, |report| report.durable.events),
            behind_bytes: figures.behind_bytes(),
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
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}
