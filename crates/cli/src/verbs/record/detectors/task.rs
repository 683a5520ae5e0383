//! One detector in one run: arms it, sends its configuration to the recorder, triggers it.
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recorder::DocumentSender;
use keepup_recorder::counters::Counters;
use keepup_simplon::{ArmFailure, Detector, SimplonError};

/// Interval between looks at the recorder's progress, in nanoseconds.
const POLL_NS: u64 = 20_000_000;
/// Most parameters that are named in the report when they could not be read.
const NAMED_MAX: usize = 5;

/// What to do with a detector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    pub(super) arms: bool,
    pub(super) triggers: bool,
}

/// Whether the detector is armed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    NotArmed,
    Arming,
    /// It is armed, or may be.
    Armed,
}

/// What a task reports.
#[derive(Default)]
pub(super) struct News {
    /// For the log.
    pub(super) messages: Vec<String>,
    /// For the report.
    pub(super) incidents: Vec<String>,
    /// Whether the configuration is missing.
    pub(super) has_failed: bool,
    /// Why the run has to end.
    pub(super) failure: Option<SimplonError>,
}

/// A detector in a run; shared by its thread and the main loop.
pub(super) struct Task {
    pub(super) detector: Arc<Detector>,
    /// Its place among the sources.
    place: usize,
    /// The run is ending: arm and trigger no more.
    pub(super) no_more_commands: AtomicBool,
    /// The run has ended.
    pub(super) is_over: AtomicBool,
    /// The configuration is being read or recorded.
    pub(super) is_reading: AtomicBool,
    state: Mutex<(Stage, News)>,
}

impl Task {
    pub(super) fn new(detector: Arc<Detector>, place: usize) -> Self {
        Self {
            detector,
            place,
            no_more_commands: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.state().0
    }

    pub(super) fn take_news(&self) -> News {
        std::mem::take(&mut self.state().1)
    }

    /// Runs on a thread of its own.
    pub(super) fn run(&self, plan: Plan, counters: &Counters, sender: DocumentSender) {
        let Some(progress) = counters.sources.get(self.place) else { return };
        let event = if plan.arms { &progress.is_ready } else { &progress.has_series };
        if !self.wait_for(event, &progress.has_failed) {
            return;
        }
        let mut series = None;
        if plan.arms {
            match self.arm() {
                Some(found) => series = found,
                None => return,
            }
        }
        self.is_reading.store(true, Release);
        self.record_configuration(series, sender);
        self.is_reading.store(false, Release);
        if plan.triggers {
            self.trigger();
        } else if plan.arms && self.detector.awaits_trigger_command() {
            self.tell(format!("waiting for a trigger: {}", self.detector.curl("trigger")));
        }
    }

    /// Ends the task after a panic: its detector may be armed.
    pub(super) fn fail(&self, why: String) {
        self.tell(format!("error: {why}"));
        self.is_reading.store(false, Release);
        let mut state = self.state();
        state.0 = if state.0 == Stage::NotArmed { Stage::NotArmed } else { Stage::Armed };
        state.1.incidents.push(why);
        state.1.has_failed = true;
    }

    /// Waits until `event`; false if the run ends before, or the recorder takes no more from the detector.
    fn wait_for(&self, event: &AtomicBool, has_failed: &AtomicBool) -> bool {
        while !event.load(Relaxed) {
            if self.is_ending() || has_failed.load(Relaxed) {
                return false;
            }
            SystemClock.sleep_until_ns(SystemClock.now_ns() + POLL_NS);
        }
        true
    }

    /// Arms the detector; returns the number of its series, if it is known.
    pub(super) fn arm(&self) -> Option<Option<u64>> {
        {
            let mut state = self.state();
            // Checked under the lock: the main loop does not disarm a detector before it is armed.
            if self.is_ending() {
                return None;
            }
            state.0 = Stage::Arming;
        }
        self.tell(format!("arming {}", self.detector.url()));
        let armed = self.detector.arm();
        let mut state = self.state();
        match armed {
            Ok(series) => {
                state.0 = Stage::Armed;
                let number = series.map_or_else(String::new, |number| format!(", series {number}"));
                state.1.messages.push(format!("armed {}{number}", self.detector.url()));
                Some(series)
            }
            Err(ArmFailure { error, may_be_armed }) => {
                state.0 = if may_be_armed { Stage::Armed } else { Stage::NotArmed };
                state.1.failure = Some(error);
                None
            }
        }
    }

    fn record_configuration(&self, series: Option<u64>, sender: DocumentSender) {
        let url = self.detector.url();
        let found = match self.detector.configuration(series, &|| self.is_over.load(Acquire)) {
            Ok(found) => found,
            Err(error) => return self.lack_configuration(&Cause::of(&error)),
        };
        if let Err(error) = sender.send(SystemClock.unix_ns(), &found.document) {
            let what = format!("cannot record the configuration of {url}: {error}");
            return self.lack_configuration(&Cause::new(what));
        }
        self.tell(format!("configuration of {url} recorded: {} parameters", found.parameters));
        if !found.left_out.is_empty() {
            let named = found.left_out.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
            let count = found.left_out.len();
            let more = if count > NAMED_MAX { ", and others" } else { "" };
            let what = format!("{url}: {count} parameters could not be read: {named}{more}");
            self.tell(format!("warning: {what}"));
            self.state().1.incidents.push(what);
        }
    }

    fn lack_configuration(&self, why: &Cause) {
        self.tell(why.clone().map(|why| format!("error: {why}")).to_text());
        let mut state = self.state();
        state.1.incidents.push(why.to_text());
        state.1.has_failed = true;
    }

    fn trigger(&self) {
        for _ in 0..self.detector.triggers() {
            if self.is_ending() {
                return;
            }
            match self.detector.trigger() {
                Ok(()) => {}
                // Disarming ends the trigger, too.
                Err(_) if self.is_ending() => return,
                Err(error) => {
                    self.state().1.failure = Some(error);
                    return;
                }
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.no_more_commands.load(Acquire)
    }

    fn tell(&self, message: String) {
        self.state().1.messages.push(message);
    }

    fn state(&self) -> MutexGuard<'_, (Stage, News)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
