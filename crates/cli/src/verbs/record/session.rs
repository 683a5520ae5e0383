//! What goes on around run control while it works: signals, commands from outside, the line on the terminal,
//! and what is shown on the page.
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_live::{Live, Scene};
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recorder::report::RecordReport;
use keepup_recorder::run::{RunControl, RunOffer, RunParts};
use keepup_recorder::watch::{Qualified, Watcher};
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_results::live::{Moment, RunCommand, RunRefusal, RunSettings, RunState};
use keepup_workload::detector::recorder_config;

use super::service::Service;
use super::{name, status};
use crate::output::{say, tell};
use crate::progress::Status;

/// Pause between two looks at run control; a command does not wait for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Pause between two looks at the figures, in nanoseconds.
const FIGURES_EVERY_NS: u64 = 1_000_000_000;

/// Run control, and who looks at it.
pub(super) struct Session {
    control: RunControl,
    live: Option<Live>,
    qualified: Option<Qualified>,
    watcher: Option<Watcher>,
    moment: Option<Moment>,
    looked_ns: u64,
    /// The revision that the page has.
    shown: Option<u64>,
    /// The state that was told on the terminal.
    told: RunState,
    /// What the service manager is told.
    pub(super) service: Service,
}

/// Run control over recorders like `base`, whose name is made for each run.
pub(super) fn control(base: RecorderConfig, takes_commands: bool) -> RunControl {
    let volumes = match &base.target {
        Target::Volumes(volumes) => volumes.clone(),
        Target::Null => Vec::new(),
    };
    RunControl::new(RunParts {
        offer: RunOffer { volumes, listen: base.listen.clone(), takes_commands },
        prepare: Box::new(move |settings, id, _| {
            let mut config = match &settings.profile {
                // By name only: a path would let others choose what is read here.
                Some(profile) => {
                    recorder_config(&keepup_plan::builtin(profile).map_err(|e| Cause::of(&e))?, &base)
                }
                None => base.clone(),
            };
            config.name = name(settings.name.as_deref(), id);
            Ok(config)
        }),
        clock: Arc::new(SystemClock),
        new_id: Box::new(Id::random),
    })
}

impl Session {
    /// Nothing records yet.
    pub(super) fn new(control: RunControl, live: Option<Live>, qualified: Option<Qualified>) -> Self {
        let told = control.state();
        let mut session = Self {
            control,
            live,
            qualified,
            watcher: None,
            moment: None,
            looked_ns: SystemClock.now_ns(),
            shown: None,
            told,
            service: Service::new(),
        };
        session.show();
        session
    }

    /// Takes settings, arms and starts, one after the other.
    pub(super) fn start_now(&mut self, settings: &RunSettings) -> anyhow::Result<()> {
        self.command(RunCommand::Configure, Some(settings))?;
        self.command(RunCommand::Arm, None)?;
        self.tell_armed();
        self.command(RunCommand::Start, None)
    }

    /// One turn: the next command, or a pause; then a look at everything. Ends a run when it is to `stop`.
    /// Returns where run control then stands.
    pub(super) fn turn(&mut self, line: &mut Status, stop: bool) -> RunState {
        match &self.live {
            Some(live) => {
                if let Some(asked) = live.command_queue().next(LOOK_EVERY) {
                    let outcome = self.control.order(&asked.order);
                    self.follow();
                    // Whoever has the answer and looks finds what it says, or later.
                    self.show();
                    asked.answer(outcome.map(|()| self.control.status()));
                }
            }
            None => SystemClock.sleep_until_ns(SystemClock.now_ns() + LOOK_EVERY.as_nanos() as u64),
        }
        self.control.poll();
        let intake_ns =
            self.control.recorder().map(|recorder| recorder.counters().intake.idle_ns.load(Relaxed));
        self.service.turned(SystemClock.now_ns(), intake_ns);
        if stop {
            self.service.stopping();
        }
        if stop && matches!(self.control.state(), RunState::Recording | RunState::Armed) {
            // Refused only in another state; then it has ended already.
            let _ = self.control.command(RunCommand::Stop, None);
        }
        self.follow();
        self.look(line);
        self.show();
        self.control.state()
    }

    /// What the run came to.
    pub(super) fn report(&mut self) -> anyhow::Result<&RecordReport> {
        if self.control.report().is_none()
            && let Some(failure) = self.control.take_failure()
        {
            return Err(failure.into());
        }
        self.control.report().context("the run has no account")
    }

    /// A change of state since this was last asked.
    pub(super) fn change(&mut self) -> Option<RunState> {
        let state = self.control.state();
        (std::mem::replace(&mut self.told, state) != state).then_some(state)
    }

    /// Says where sources connect and where the recording goes.
    pub(super) fn tell_armed(&self) {
        let Some(recorder) = self.control.recorder() else { return };
        say(&format!("listening on {}", recorder.address()));
        for directory in recorder.directories() {
            say(&format!("recording to {}", directory.display()));
        }
        say(&format!("writing with {}", recorder.engine()));
        for note in recorder.notes() {
            tell(&note.map(|note| format!("note: {note}")));
        }
    }

    /// Why run control stands at an error.
    pub(super) fn error(&self) -> Option<String> {
        self.control.status().error
    }

    /// Looks at the recorder of this run, from the time on at which it is armed.
    fn follow(&mut self) {
        match (self.control.state(), self.control.recorder()) {
            (RunState::Armed | RunState::Recording, Some(recorder)) => {
                if self.watcher.as_ref().is_none_or(|watcher| watcher.recording() != recorder.recording()) {
                    let clock = Arc::new(SystemClock);
                    self.watcher = Some(Watcher::new(recorder, clock, self.qualified.clone()));
                    self.moment = None;
                }
            }
            (RunState::Draining, _) => {}
            (RunState::Sealed | RunState::Error, _) => {
                // The last figures of the run stay in sight.
                if let Some(mut watcher) = self.watcher.take() {
                    self.moment = Some(watcher.sample());
                    self.shown = None;
                }
            }
            _ => (self.watcher, self.moment) = (None, None),
        }
    }

    fn look(&mut self, line: &mut Status) {
        let now_ns = SystemClock.now_ns();
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        if passed_ns < FIGURES_EVERY_NS {
            return;
        }
        self.looked_ns = now_ns;
        let Some(watcher) = &mut self.watcher else { return };
        let moment = watcher.sample();
        watcher.take_warnings(&moment).iter().for_each(|warning| line.line(&format!("warning: {warning}")));
        line.show(&status(&moment), Duration::from_nanos(passed_ns));
        self.moment = Some(moment);
        self.shown = None;
    }

    /// Brings the page up to date.
    fn show(&mut self) {
        let Some(live) = &self.live else { return };
        let status = self.control.status();
        if self.shown == Some(status.revision) {
            return;
        }
        self.shown = Some(status.revision);
        live.publish(Scene { run: Some(&status), moment: self.moment.as_ref(), search: None });
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
