//! Main loop around run control: signals, HTTP commands, progress line and live page.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_live::{Live, Scene};
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recorder::counters::{Counters, IntakeCounters};
use keepup_recorder::report::{Ended, RecordReport};
use keepup_recorder::run::{RunControl, RunOffer, RunParts};
use keepup_recorder::watch::{Qualified, Watcher};
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_recording::manifest::NAME_BYTES_MAX;
use keepup_recording::runs::RUN_MAX;
use keepup_results::format;
use keepup_results::live::{Moment, RunCommand, RunRefusal, RunSettings, RunState};
use keepup_results::shell::quoted;
use keepup_workload::detector::recorder_config;

use super::service::ServiceNotifier;
use super::{recording_name, status};
use crate::output::{log, log_cause};
use crate::progress::StatusLine;
use crate::signals::{self, Stopping};

/// Polling interval of run control. Commands are handled at once.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// Sampling interval of the counters, in nanoseconds.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;

/// Run control with its observers.
pub(super) struct Session {
    control: RunControl,
    live: Option<Live>,
    qualified: Option<Qualified>,
    watcher: Option<Watcher>,
    moment: Option<Moment>,
    sampled_ns: u64,
    /// Revision last published to the page.
    published: Option<u64>,
    /// State last returned by [`Session::change`].
    reported: RunState,
    holds_commands: bool,
    /// Service manager.
    pub(super) service: ServiceNotifier,
}

/// Run control over recorders configured like `base`, with a new name per run.
pub(super) fn control(base: RecorderConfig, takes_commands: bool) -> RunControl {
    let volumes = match &base.target {
        Target::Volumes(volumes) => volumes.clone(),
        Target::Null => Vec::new(),
    };
    RunControl::new(RunParts {
        offer: RunOffer { volumes, listen: base.listen.clone(), takes_commands },
        prepare: Box::new(move |settings, id, run| {
            let mut config = match &settings.profile {
                // By name only: a path would let clients read files of this machine.
                Some(profile) => {
                    recorder_config(&keepup_plan::builtin(profile).map_err(|e| Cause::of(&e))?, &base)
                }
                None => base.clone(),
            };
            let several = config.series.as_ref().map(|_| run);
            let longest = recording_name(settings.name.as_deref(), id, several.map(|_| RUN_MAX));
            if several.is_some() && longest.len() > NAME_BYTES_MAX {
                let bytes_max =
                    settings.name.as_ref().map_or(0, String::len) + NAME_BYTES_MAX - longest.len();
                let what = format!(
                    "cannot name the runs of a series: --name may have {bytes_max} bytes, because the run \
                     number is appended"
                );
                return Err(Cause::new(what).with_hint("a shorter --name"));
            }
            config.name = recording_name(settings.name.as_deref(), id, several);
            Ok(config)
        }),
        clock: Arc::new(SystemClock),
        new_id: Box::new(Id::random),
    })
}

/// What a signal says during a run.
fn stopping(counters: &Counters, directories: &[PathBuf]) -> Stopping {
    let left_bytes = counters.received_bytes().saturating_sub(counters.durable_payload_bytes());
    let paths = directories.iter().map(|path| quoted(&path.display().to_string()));
    let paths = paths.collect::<Vec<_>>().join(" ");
    Stopping {
        left: format!("{} to write", format::bytes(left_bytes)),
        after_cut_off: (!paths.is_empty()).then(|| format!("keepup recover {paths}")),
    }
}

impl Session {
    /// Creates a session without a run.
    pub(super) fn new(control: RunControl, live: Option<Live>, qualified: Option<Qualified>) -> Self {
        let reported = control.state();
        let mut session = Self {
            control,
            live,
            qualified,
            watcher: None,
            moment: None,
            sampled_ns: SystemClock.now_ns(),
            published: None,
            reported,
            holds_commands: false,
            service: ServiceNotifier::new(),
        };
        session.publish();
        session
    }

    /// Configures, arms and starts a run.
    pub(super) fn start_now(&mut self, settings: &RunSettings) -> anyhow::Result<()> {
        self.command(RunCommand::Configure, Some(settings))?;
        self.command(RunCommand::Arm, None)?;
        self.command(RunCommand::Start, None)?;
        // Packets are recorded from the start on, so it is said after it.
        self.log_armed();
        Ok(())
    }

    /// Starts another run with the same settings.
    pub(super) fn start_again(&mut self) -> anyhow::Result<()> {
        self.command(RunCommand::Arm, None)?;
        self.command(RunCommand::Start, None)?;
        self.log_armed();
        Ok(())
    }

    /// A stop by a command lets detectors end their series first.
    pub(super) fn end_sources_first(&mut self) {
        self.control.end_sources_first();
    }

    /// Whether a command asked for the end of the run.
    pub(super) fn is_stop_asked(&self) -> bool {
        self.control.is_stop_asked()
    }

    /// Whether commands wait, because the detectors of the last run are still being disarmed.
    pub(super) fn hold_commands(&mut self, holds: bool) {
        self.holds_commands = holds;
    }

    /// Whether the run ended because its sources had ended, and not by a command or a limit.
    pub(super) fn has_ended_by_itself(&self) -> bool {
        let has_ended = |report: &RecordReport| matches!(report.ended, Ended::EndOfRun);
        self.control.state() == RunState::Sealed && self.control.report().is_some_and(has_ended)
    }

    /// Whether the run was empty, and its recording was removed.
    pub(super) fn has_removed(&self) -> bool {
        self.control.report().is_some_and(|report| report.removed)
    }

    /// Handles the next command or waits, then updates run control, progress line and page. `stop` ends the
    /// run. Returns the state of run control.
    pub(super) fn poll(&mut self, line: &mut StatusLine, stop: bool) -> RunState {
        match &self.live {
            Some(live) if !self.holds_commands => {
                if let Some(asked) = live.command_queue().next(POLL_EVERY) {
                    let outcome = self.control.order(&asked.order);
                    self.follow();
                    // Published before the answer, so that a client never reads an older status after it.
                    self.publish();
                    asked.answer(outcome.map(|()| self.control.status()));
                }
            }
            _ => SystemClock.sleep_until_ns(SystemClock.now_ns() + POLL_EVERY.as_nanos() as u64),
        }
        self.control.poll();
        self.log_notices(line);
        let idle_ns = |intake: &IntakeCounters| intake.idle_ns.load(Relaxed);
        let recorder = self.control.recorder();
        let intakes_ns = recorder.map(|r| r.counters().intakes.iter().map(idle_ns).collect());
        self.service.keep_alive(SystemClock.now_ns(), intakes_ns.unwrap_or_default());
        if stop && matches!(self.control.state(), RunState::Recording | RunState::Armed) {
            // Refused only if the run has already ended.
            let _ = self.control.command(RunCommand::Stop, None);
        }
        self.follow();
        self.sample(line);
        self.publish();
        self.control.state()
    }

    /// Ends the run in order because of an internal error of this thread.
    pub(super) fn fail(&mut self, what: &str) {
        self.control.end_with_error(what);
    }

    /// The recorder of the run.
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.control.recorder()
    }

    /// Report of the run.
    pub(super) fn report(&mut self) -> anyhow::Result<&RecordReport> {
        if self.control.report().is_none()
            && let Some(failure) = self.control.take_failure()
        {
            return Err(failure.into());
        }
        self.control.report().context("cannot report: the run has no report")
    }

    /// Change of state since the last call.
    pub(super) fn change(&mut self) -> Option<RunState> {
        let state = self.control.state();
        (std::mem::replace(&mut self.reported, state) != state).then_some(state)
    }

    /// Logs the listening address and the directories of the recording.
    pub(super) fn log_armed(&self) {
        let Some(recorder) = self.control.recorder() else { return };
        match recorder.sources() {
            [] => log(&format!("listening on {}", recorder.address())),
            sources => sources.iter().for_each(|source| log(&format!("receiving from {source}"))),
        }
        for directory in recorder.directories() {
            log(&format!("recording to {}", directory.display()));
        }
        log(&format!("writing with {}", recorder.engine()));
        for note in recorder.notes() {
            log_cause(&note.map(|note| format!("note: {note}")));
        }
    }

    /// Logs what the recorder warned of.
    fn log_notices(&self, line: &StatusLine) {
        let notices = self.watcher.iter().flat_map(Watcher::take_notices);
        notices.for_each(|notice| line.log(&format!("warning: {notice}")));
    }

    /// Error of run control.
    pub(super) fn error(&self) -> Option<String> {
        self.control.status().error
    }

    /// Creates a watcher when a recorder is armed and takes its last sample when the run has ended.
    fn follow(&mut self) {
        match (self.control.state(), self.control.recorder()) {
            (RunState::Armed | RunState::Recording, Some(recorder)) => {
                if self.watcher.as_ref().is_none_or(|watcher| watcher.recording() != recorder.recording()) {
                    let clock = Arc::new(SystemClock);
                    self.watcher = Some(Watcher::new(recorder, clock, self.qualified.clone()));
                    let (counters, directories) = (recorder.counters(), recorder.directories());
                    signals::describe(move || stopping(&counters, &directories));
                    self.moment = None;
                }
            }
            (RunState::Draining, _) => {}
            (RunState::Sealed | RunState::Error, _) => {
                signals::describe_nothing();
                // The page keeps the last counters of the run.
                if let Some(mut watcher) = self.watcher.take() {
                    watcher.take_notices().iter().for_each(|notice| log(&format!("warning: {notice}")));
                    self.moment = Some(watcher.sample());
                    self.published = None;
                }
            }
            _ => (self.watcher, self.moment) = (None, None),
        }
    }

    fn sample(&mut self, line: &mut StatusLine) {
        let now_ns = SystemClock.now_ns();
        let passed_ns = now_ns.saturating_sub(self.sampled_ns);
        if passed_ns < SAMPLE_EVERY_NS {
            return;
        }
        self.sampled_ns = now_ns;
        let Some(watcher) = &mut self.watcher else { return };
        let moment = watcher.sample();
        watcher.take_warnings(&moment).iter().for_each(|warning| line.log(&format!("warning: {warning}")));
        line.show(&status(&moment), Duration::from_nanos(passed_ns));
        self.moment = Some(moment);
        self.published = None;
    }

    /// Publishes a changed status to the page.
    fn publish(&mut self) {
        let Some(live) = &self.live else { return };
        let status = self.control.status();
        if self.published == Some(status.revision) {
            return;
        }
        self.published = Some(status.revision);
        live.publish(Scene { run: Some(&status), moment: self.moment.as_ref(), ..Scene::default() });
    }

    fn command(&mut self, command: RunCommand, settings: Option<&RunSettings>) -> anyhow::Result<()> {
        let outcome = self.control.command(command, settings);
        self.follow();
        outcome.map_err(|refusal: RunRefusal| match self.control.take_failure() {
            Some(failure) => failure.into(),
            None => refusal.into(),
        })
    }
}
