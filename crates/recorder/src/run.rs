//! Run control: the owner of a recorder's state, from settings through a sealed recording to the
//! next run.
//!
//! Invariants: a command that is not possible in a state changes nothing; every change raises the
//! revision; recordings go only to the volumes on offer; no call takes longer than arming does,
//! since a separate thread waits for the end of a run.
mod outcome;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_recording::id::Id;
use keepup_recording::manifest::new_recording_dir;
use keepup_recording::unborn;
use keepup_results::live::{
    RefusalKind, RunCommand, RunOrder, RunOutcome, RunRefusal, RunSettings, RunState, RunStatus, RunVolume,
};

use self::outcome::outcome;
use crate::free_space::SpaceMonitor;
use crate::report::{Ended, RecordReport};
use crate::threads::internal_error;
use crate::{Recorder, RecorderConfig, RecorderError, Target};

/// Resources that runs may use, and whether others may command them.
#[derive(Clone, Debug)]
pub struct RunOffer {
    /// Volumes, as spelled in settings; empty for the null target.
    pub volumes: Vec<PathBuf>,
    /// Address to listen on.
    pub listen: Endpoint,
    /// Whether commands from outside are accepted; otherwise [`RunControl::order`] accepts only
    /// `stop`.
    pub takes_commands: bool,
}

/// Builds a run's configuration from its settings, identity and number. Run control fills in
/// address, volumes, number and metadata.
pub type Prepare = Box<dyn FnMut(&RunSettings, Id, u64) -> Result<RecorderConfig, Cause> + Send>;

/// Dependencies of run control.
pub struct RunParts {
    /// Resources that runs may use.
    pub offer: RunOffer,
    /// Builds configurations; also called to check settings.
    pub prepare: Prepare,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Generates a new identity.
    pub new_id: Box<dyn FnMut() -> std::io::Result<Id> + Send>,
}

/// A run that is ending.
struct Ending {
    thread: JoinHandle<Result<RecordReport, RecorderError>>,
    /// The limit that ended it, if any.
    limit: Option<String>,
}

/// The owner of a recorder. Call [`RunControl::poll`] about twenty times a second.
pub struct RunControl {
    parts: RunParts,
    state: RunState,
    revision: u64,
    since_unix_ns: u64,
    settings: RunSettings,
    /// Whether a run with these settings already exists: the next one takes the next number.
    is_repeat: bool,
    run: Option<u64>,
    name: Option<String>,
    directories: Vec<PathBuf>,
    recorder: Option<Recorder>,
    started_ns: u64,
    ends_sources_first: bool,
    is_stop_asked: bool,
    ending: Option<Ending>,
    spaces: SpaceMonitor,
    error: Option<String>,
    last: Option<RunOutcome>,
    report: Option<RecordReport>,
    failure: Option<RecorderError>,
}

impl RunControl {
    /// Creates run control in the state `Idle`.
    pub fn new(parts: RunParts) -> Self {
        Self {
            state: RunState::Idle,
            revision: 0,
            since_unix_ns: parts.clock.unix_ns(),
            settings: RunSettings::default(),
            is_repeat: false,
            run: None,
            name: None,
            directories: Vec::new(),
            recorder: None,
            started_ns: 0,
            ends_sources_first: false,
            is_stop_asked: false,
            ending: None,
            spaces: SpaceMonitor::start(parts.offer.volumes.clone(), None, Arc::clone(&parts.clock)),
            error: None,
            last: None,
            report: None,
            failure: None,
            parts,
        }
    }

    /// From now on, a first `stop` during a run only asks for its end ([`RunControl::is_stop_asked`]), so
    /// that the owner can end the sources and all that they sent is recorded. The second one ends the run.
    pub fn end_sources_first(&mut self) {
        self.ends_sources_first = true;
    }

    /// Whether the end of this run was asked for, since [`RunControl::end_sources_first`].
    pub fn is_stop_asked(&self) -> bool {
        self.is_stop_asked
    }

    /// Carries out a command from outside.
    ///
    /// # Errors
    /// The reason for the refusal. `Failed` for `arm` or `stop` leaves the state `Error`.
    pub fn order(&mut self, order: &RunOrder) -> Result<(), RunRefusal> {
        self.poll();
        if !self.parts.offer.takes_commands && order.command != RunCommand::Stop {
            let why = format!(
                "cannot {}: this recorder was started for one run, and may only be stopped",
                order.command
            );
            return Err(RunRefusal::new(RefusalKind::Uncontrolled, why));
        }
        if let Some(expected) = order.revision.filter(|&revision| revision != self.revision) {
            let why = format!(
                "cannot {}: expected revision {expected}, but it is now {}",
                order.command, self.revision
            );
            let hint = "read the status again; another client gave a command, or the run advanced";
            return Err(RunRefusal::new(RefusalKind::Revision, Cause::new(why).with_hint(hint)));
        }
        self.command(order.command, order.settings.as_ref())
    }

    /// Carries out a command of the owner, who may give any.
    ///
    /// # Errors
    /// As [`RunControl::order`]; [`RunControl::take_failure`] has the underlying error.
    pub fn command(&mut self, command: RunCommand, settings: Option<&RunSettings>) -> Result<(), RunRefusal> {
        self.failure = None;
        if self.state.after(command).is_none() {
            return Err(RunRefusal::new(RefusalKind::State, impossible(self.state, command)));
        }
        match (command, settings) {
            (RunCommand::Configure, Some(settings)) => self.configure(settings),
            (RunCommand::Configure, None) => {
                Err(RunRefusal::new(RefusalKind::Settings, "cannot configure: no settings are given"))
            }
            (_, Some(_)) => Err(RunRefusal::new(
                RefusalKind::Settings,
                format!("cannot {command}: settings go with configure only"),
            )),
            (RunCommand::Arm, None) => self.arm(),
            (RunCommand::Start, None) => self.start(),
            (RunCommand::Stop, None) => self.stop(),
            (RunCommand::Reset, None) => self.reset(),
        }
    }

    /// Detects that the recorder ended by itself, reached a limit, or has sealed everything.
    pub fn poll(&mut self) {
        match (self.state, &self.recorder) {
            (RunState::Armed, Some(recorder)) if recorder.is_ending() => self.lose_armed(),
            (RunState::Recording, Some(recorder)) => {
                if recorder.is_ending() {
                    return self.drain(None);
                }
                if let Some(sent) = recorder.take_origin() {
                    self.run = sent.run;
                    self.revision += 1;
                }
                let (counters, now_ns) = (recorder.counters(), self.parts.clock.now_ns());
                let (events, bytes) = (counters.received_events(), counters.received_bytes());
                let seconds = now_ns.saturating_sub(self.started_ns) as f64 / 1e9;
                if let Some(limit) = settings::reached(&self.settings.stop, events, bytes, seconds) {
                    self.drain(Some(limit));
                }
            }
            (RunState::Draining, _) if self.ending.as_ref().is_some_and(|e| e.thread.is_finished()) => {
                self.conclude();
            }
            _ => {}
        }
    }

    /// Full status.
    pub fn status(&self) -> RunStatus {
        let is_controlled = self.parts.offer.takes_commands;
        let possible = self.state.commands().iter().copied();
        let is_listening = matches!(self.state, RunState::Armed | RunState::Recording);
        RunStatus {
            state: self.state,
            revision: self.revision,
            since_unix_ns: self.since_unix_ns,
            controlled: is_controlled,
            commands: possible.filter(|&c| is_controlled || c == RunCommand::Stop).collect(),
            run: self.run,
            name: self.name.clone(),
            settings: self.settings.clone(),
            listen: self.recorder.as_ref().filter(|_| is_listening).map(|r| r.address().to_string()),
            directories: self.directories.iter().map(|d| d.display().to_string()).collect(),
            volumes: self.volumes(),
            error: self.error.clone(),
            last: self.last.clone(),
        }
    }

    /// Current state.
    pub fn state(&self) -> RunState {
        self.state
    }

    /// The recorder, while it is armed or records.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Report of the last finished run.
    pub fn report(&self) -> Option<&RecordReport> {
        self.report.as_ref()
    }

    /// Error behind the last refusal or behind the state `Error`, if any.
    pub fn take_failure(&mut self) -> Option<RecorderError> {
        self.failure.take()
    }

    /// Ends a run because of an internal error of its owner, and waits until it has ended.
    pub fn end_with_error(&mut self, what: &str) {
        if let Some(recorder) = &self.recorder {
            recorder.fail(what);
        }
        if self.state == RunState::Armed {
            return self.lose_armed();
        }
        self.drain(None);
        self.conclude();
    }

    fn enter(&mut self, state: RunState) {
        self.state = state;
        self.revision += 1;
        self.since_unix_ns = self.parts.clock.unix_ns();
    }

    fn volumes(&self) -> Vec<RunVolume> {
        let now_ns = self.parts.clock.now_ns();
        let volume = |(at, path): (usize, &PathBuf)| RunVolume {
            path: path.display().to_string(),
            free_bytes: self.spaces.of(at, now_ns).map(|space| space.free_bytes),
        };
        self.parts.offer.volumes.iter().enumerate().map(volume).collect()
    }

    fn configure(&mut self, settings: &RunSettings) -> Result<(), RunRefusal> {
        let config = self.config(settings, false);
        let (config, _) = config.map_err(|e| self.refuse_settings(e))?;
        self.forget();
        self.run = config.run;
        self.name.clone_from(&settings.name);
        (self.settings, self.is_repeat) = (settings.clone(), false);
        self.enter(RunState::Configured);
        Ok(())
    }

    /// Configuration of a run with `settings`. A run that repeats the last settings (`again`)
    /// takes the next number.
    fn config(&mut self, settings: &RunSettings, again: bool) -> Result<(RecorderConfig, Id), RecorderError> {
        let RunParts { offer, prepare, new_id, .. } = &mut self.parts;
        let wrong = |what: Cause| RecorderError::Config { what };
        settings::check(settings).map_err(wrong)?;
        let volumes = settings::volumes(settings, offer).map_err(wrong)?;
        let run = settings::number(settings.run.filter(|_| !again), &volumes)?;
        let id = new_id().map_err(|e| wrong(format!("cannot generate an identity: {e}").into()))?;
        let mut config = prepare(settings, id, run).map_err(wrong)?;
        config.listen = offer.listen.clone();
        config.run = Some(run);
        config.metadata = settings.metadata.clone();
        for volume in &volumes {
            new_recording_dir(volume, &config.name).map_err(unborn::explain)?;
        }
        config.target = if volumes.is_empty() { Target::Null } else { Target::Volumes(volumes) };
        config.validate()?;
        Ok((config, id))
    }

    fn refuse_settings(&mut self, error: RecorderError) -> RunRefusal {
        let why = Cause::of(&error);
        self.failure = Some(error);
        RunRefusal::new(RefusalKind::Settings, why)
    }

    /// Enters the state `Error`.
    fn fail(&mut self, error: RecorderError) -> RunRefusal {
        let why = Cause::of(&error);
        self.failure = Some(error);
        self.error = Some(why.to_text());
        self.enter(RunState::Error);
        RunRefusal::new(RefusalKind::Failed, why)
    }

    /// Clears the results of the previous run.
    fn forget(&mut self) {
        (self.run, self.name, self.error) = (None, None, None);
        self.directories.clear();
    }

    fn arm(&mut self) -> Result<(), RunRefusal> {
        let settings = self.settings.clone();
        let config = self.config(&settings, self.is_repeat);
        let (config, id) = config.map_err(|e| self.refuse_settings(e))?;
        self.forget();
        (self.report, self.is_stop_asked) = (None, false);
        (self.run, self.name) = (config.run, Some(config.name.clone()));
        match Recorder::arm(config, id, Arc::clone(&self.parts.clock)) {
            Ok(recorder) => {
                self.directories = recorder.directories();
                self.recorder = Some(recorder);
                self.enter(RunState::Armed);
                Ok(())
            }
            Err(e) => Err(self.fail(e)),
        }
    }

    fn start(&mut self) -> Result<(), RunRefusal> {
        if let Some(recorder) = &self.recorder {
            (self.started_ns, self.is_repeat) = (self.parts.clock.now_ns(), true);
            recorder.open();
        }
        self.enter(RunState::Recording);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), RunRefusal> {
        match self.state {
            RunState::Armed => self.disarm(RunState::Configured),
            _ if self.ends_sources_first && !self.is_stop_asked => {
                self.is_stop_asked = true;
                self.revision += 1;
                Ok(())
            }
            _ => {
                self.drain(None);
                Ok(())
            }
        }
    }

    fn reset(&mut self) -> Result<(), RunRefusal> {
        if self.state == RunState::Armed {
            self.disarm(RunState::Idle)?;
        } else {
            self.enter(RunState::Idle);
        }
        self.forget();
        (self.settings, self.is_repeat) = (RunSettings::default(), false);
        Ok(())
    }

    /// Releases what arming took.
    fn disarm(&mut self, state: RunState) -> Result<(), RunRefusal> {
        let ended = self.recorder.take().map(Recorder::disarm);
        self.directories.clear();
        self.name.clone_from(&self.settings.name);
        match ended {
            Some(Err(e)) => Err(self.fail(e)),
            _ => {
                self.enter(state);
                Ok(())
            }
        }
    }

    /// Handles a recorder that ended before it accepted anybody.
    fn lose_armed(&mut self) {
        let ended = self.recorder.take().map(Recorder::disarm);
        self.directories.clear();
        self.fail(match ended {
            Some(Ok(Ended::InternalError(what))) => RecorderError::Panicked { what },
            Some(Ok(Ended::VolumesFailed(why))) => RecorderError::Ended { why: Cause::from_text(&why) },
            Some(Err(e)) => e,
            _ => RecorderError::Ended { why: "it was stopped".into() },
        });
    }

    /// Stops reading, and starts a thread that waits for the end.
    fn drain(&mut self, limit: Option<String>) {
        let Some(recorder) = self.recorder.take() else { return };
        recorder.stopper().stop();
        let name = "ku-ending";
        // A run that was started by command counts, even without events.
        let keeps_empty = self.parts.offer.takes_commands;
        let end = move || if keeps_empty { recorder.join() } else { recorder.join_unless_empty() };
        let thread = std::thread::Builder::new().name(name.into()).spawn(end);
        match thread {
            Ok(thread) => {
                self.ending = Some(Ending { thread, limit });
                self.enter(RunState::Draining);
            }
            // The recording's threads end nevertheless.
            Err(e) => {
                self.fail(RecorderError::Thread { name: name.into(), why: e.to_string().into() });
            }
        }
    }

    fn conclude(&mut self) {
        let Some(Ending { thread, limit }) = self.ending.take() else { return };
        let joined = thread.join().unwrap_or_else(|payload| {
            Err(RecorderError::Panicked { what: internal_error("ku-ending", payload.as_ref()) })
        });
        let mut report = match joined {
            Ok(report) => report,
            Err(e) => {
                self.fail(e);
                return;
            }
        };
        report.limit = limit;
        if report.removed {
            self.directories.clear();
        }
        self.last = Some(outcome(&report, self.run, self.name.as_deref().unwrap_or_default()));
        self.error = report.ended.failure().map(|_| report.ended.to_string());
        self.enter(if self.error.is_some() { RunState::Error } else { RunState::Sealed });
        self.report = Some(report);
    }
}

/// Refusal text for a command that is not possible in a state.
fn impossible(state: RunState, command: RunCommand) -> Cause {
    let possible: Vec<&str> = state.commands().iter().map(|command| command.name()).collect();
    let hint = match possible.is_empty() {
        true => "wait: the state changes by itself".into(),
        false => format!("possible now: {}", possible.join(", ")),
    };
    Cause::new(format!("cannot {command}: the state is {state}")).with_hint(hint)
}
