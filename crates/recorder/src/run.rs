//! Run control: the one owner of a recorder's state, from settings to a sealed recording and to the next run.
//!
//! Invariants: a command that may not be asked for in a state changes nothing; every change raises the
//! revision; recordings go to the volumes on offer and nowhere else; nothing here takes longer than arming
//! does, for the end of a run is waited for by a thread of its own.
mod outcome;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_recording::id::Id;
use keepup_recording::manifest::place;
use keepup_results::live::{
    RefusalKind, RunCommand, RunOrder, RunOutcome, RunRefusal, RunSettings, RunState, RunStatus, RunVolume,
};

use self::outcome::outcome;
use crate::report::{Ended, RecordReport};
use crate::room::Rooms;
use crate::{Recorder, RecorderConfig, RecorderError, Target};

/// What runs may use, and who may ask for them.
#[derive(Clone, Debug)]
pub struct RunOffer {
    /// Volumes, as they are written in settings; none for the null target.
    pub volumes: Vec<PathBuf>,
    /// Where to listen.
    pub listen: Endpoint,
    /// Whether orders are taken; else [`RunControl::order`] takes only `stop`.
    pub takes_commands: bool,
}

/// Makes the configuration of a run: of its settings, its identity and its number. Address, volumes, number
/// and metadata are filled in by run control.
pub type Prepare = Box<dyn FnMut(&RunSettings, Id, u64) -> Result<RecorderConfig, String> + Send>;

/// What run control is made of.
pub struct RunParts {
    /// What runs may use.
    pub offer: RunOffer,
    /// Makes configurations; called when settings are checked too.
    pub prepare: Prepare,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Draws an identity, another one each time.
    pub new_id: Box<dyn FnMut() -> std::io::Result<Id> + Send>,
}

/// A run that ends.
struct Ending {
    thread: JoinHandle<Result<RecordReport, RecorderError>>,
    /// What ended it, when run control did for a limit.
    limit: Option<String>,
}

/// The owner of a recorder. Whoever holds it calls [`RunControl::look`] about twenty times a second.
pub struct RunControl {
    parts: RunParts,
    state: RunState,
    revision: u64,
    since_unix_ns: u64,
    settings: RunSettings,
    /// Whether a run was made with these settings: the next one takes the next number.
    is_repeat: bool,
    run: Option<u64>,
    name: Option<String>,
    directories: Vec<PathBuf>,
    recorder: Option<Recorder>,
    started_ns: u64,
    ending: Option<Ending>,
    rooms: Rooms,
    error: Option<String>,
    last: Option<RunOutcome>,
    report: Option<RecordReport>,
    failure: Option<RecorderError>,
}

impl RunControl {
    /// In the state `Idle`.
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
            ending: None,
            rooms: Rooms::start(parts.offer.volumes.clone(), None, Arc::clone(&parts.clock)),
            error: None,
            last: None,
            report: None,
            failure: None,
            parts,
        }
    }

    /// Carries out a command of somebody outside.
    ///
    /// # Errors
    /// The reason why it was not carried out. `Failed` of `arm` or `stop` leaves the state `Error`.
    pub fn order(&mut self, order: &RunOrder) -> Result<(), RunRefusal> {
        self.look();
        if !self.parts.offer.takes_commands && order.command != RunCommand::Stop {
            let why = format!(
                "cannot {}: this recorder was started for one run, and may only be stopped",
                order.command
            );
            return Err(RunRefusal::new(RefusalKind::Uncontrolled, why));
        }
        if let Some(expected) = order.revision.filter(|&revision| revision != self.revision) {
            let why = format!(
                "cannot {}: revision {expected} was expected, and it is {} by now\n\
                 hint: look at the status again; somebody else gave a command, or the run went on",
                order.command, self.revision
            );
            return Err(RunRefusal::new(RefusalKind::Revision, why));
        }
        self.command(order.command, order.settings.as_ref())
    }

    /// Carries out a command of the owner, who may give any.
    ///
    /// # Errors
    /// As [`RunControl::order`]; [`RunControl::take_failure`] has the error behind it.
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

    /// Looks whether the recorder ended by itself, reached a limit, or has sealed everything.
    pub fn look(&mut self) {
        match (self.state, &self.recorder) {
            (RunState::Armed, Some(recorder)) if recorder.is_ending() => self.lose_armed(),
            (RunState::Recording, Some(recorder)) => {
                if recorder.is_ending() {
                    return self.drain(None);
                }
                // What cannot be entered now is tried again, at the end at the latest.
                if let Ok(Some(sent)) = recorder.enter_origin() {
                    self.run = sent.run;
                    self.revision += 1;
                }
                let counters = recorder.counters();
                let (intake, now_ns) = (&counters.intake, self.parts.clock.now_ns());
                let (events, bytes) =
                    (intake.received_events.load(Relaxed), intake.received_bytes.load(Relaxed));
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

    /// All that can be said of it.
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

    /// Where it stands.
    pub fn state(&self) -> RunState {
        self.state
    }

    /// The recorder, while it is armed or records.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// What the run that ended last came to.
    pub fn report(&self) -> Option<&RecordReport> {
        self.report.as_ref()
    }

    /// The error behind the last refusal, or behind the state `Error`, where there is one.
    pub fn take_failure(&mut self) -> Option<RecorderError> {
        self.failure.take()
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
            free_bytes: self.rooms.of(at, now_ns).map(|room| room.free_bytes),
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

    /// What a run with `settings` would be recorded with. One that follows a run with the same settings
    /// (`again`) takes the next number.
    fn config(&mut self, settings: &RunSettings, again: bool) -> Result<(RecorderConfig, Id), RecorderError> {
        let RunParts { offer, prepare, new_id, .. } = &mut self.parts;
        let wrong = |what| RecorderError::Config { what };
        settings::check(settings).map_err(wrong)?;
        let volumes = settings::volumes(settings, offer).map_err(wrong)?;
        let run = settings::number(settings.run.filter(|_| !again), &volumes)?;
        let id = new_id().map_err(|e| wrong(format!("cannot draw an identity: {e}")))?;
        let mut config = prepare(settings, id, run).map_err(wrong)?;
        config.listen = offer.listen.clone();
        config.run = Some(run);
        config.metadata = settings.metadata.clone();
        for volume in &volumes {
            place(volume, &config.name)?;
        }
        config.target = if volumes.is_empty() { Target::Null } else { Target::Volumes(volumes) };
        config.validate()?;
        Ok((config, id))
    }

    fn refuse_settings(&mut self, error: RecorderError) -> RunRefusal {
        let why = error.to_string();
        self.failure = Some(error);
        RunRefusal::new(RefusalKind::Settings, why)
    }

    /// Enters the state `Error`.
    fn fail(&mut self, error: RecorderError) -> RunRefusal {
        let why = error.to_string();
        self.failure = Some(error);
        self.error = Some(why.clone());
        self.enter(RunState::Error);
        RunRefusal::new(RefusalKind::Failed, why)
    }

    /// Forgets what belongs to the run before.
    fn forget(&mut self) {
        (self.run, self.name, self.error) = (None, None, None);
        self.directories.clear();
    }

    fn arm(&mut self) -> Result<(), RunRefusal> {
        let settings = self.settings.clone();
        let config = self.config(&settings, self.is_repeat);
        let (config, id) = config.map_err(|e| self.refuse_settings(e))?;
        self.forget();
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

    /// Gives back what arming took.
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

    /// The recorder ended before anybody was let in.
    fn lose_armed(&mut self) {
        let ended = self.recorder.take().map(Recorder::disarm);
        self.directories.clear();
        self.fail(match ended {
            Some(Ok(Ended::VolumesFailed(why))) => RecorderError::Ended { why },
            Some(Err(e)) => e,
            _ => RecorderError::Ended { why: "it was stopped".into() },
        });
    }

    /// Reads no more, and has the end waited for.
    fn drain(&mut self, limit: Option<String>) {
        let Some(recorder) = self.recorder.take() else { return };
        recorder.stopper().stop();
        let name = "ku-ending";
        // A run that was started by command took place, even when nothing came.
        let keeps_empty = self.parts.offer.takes_commands;
        let end = move || if keeps_empty { recorder.join() } else { recorder.join_unless_empty() };
        let thread = std::thread::Builder::new().name(name.into()).spawn(end);
        match thread {
            Ok(thread) => {
                self.ending = Some(Ending { thread, limit });
                self.enter(RunState::Draining);
            }
            // The threads of the recording end all the same.
            Err(e) => {
                self.fail(RecorderError::Thread { name: name.into(), why: e.to_string() });
            }
        }
    }

    fn conclude(&mut self) {
        let Some(Ending { thread, limit }) = self.ending.take() else { return };
        let joined = thread.join().unwrap_or_else(|_| {
            Err(RecorderError::Thread { name: "ku-ending".into(), why: "it panicked".into() })
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
        match &report.ended {
            Ended::VolumesFailed(_) => {
                self.error = Some(report.ended.to_string());
                self.enter(RunState::Error);
            }
            Ended::EndOfRun | Ended::Stopped => self.enter(RunState::Sealed),
        }
        self.report = Some(report);
    }
}

/// Why a command is refused in a state.
fn impossible(state: RunState, command: RunCommand) -> String {
    let possible: Vec<&str> = state.commands().iter().map(|command| command.name()).collect();
    let hint = match possible.is_empty() {
        true => "wait: it goes on by itself".into(),
        false => format!("possible now: {}", possible.join(", ")),
    };
    format!("cannot {command}: the state is {state}\nhint: {hint}")
}
