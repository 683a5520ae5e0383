//! One run of `keepup record`: configured, armed and started at once, through run control like every other.
use std::sync::Arc;

use anyhow::{Context, anyhow};
use keepup_measure::clock::SystemClock;
use keepup_recorder::report::RecordReport;
use keepup_recorder::run::{RunControl, RunOffer, RunParts};
use keepup_recorder::{Recorder, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_results::live::{RunCommand, RunRefusal, RunSettings, RunState};
use keepup_workload::detector::recorder_config;

use super::name;

/// The run, with who controls it.
pub(super) struct Session(RunControl);

/// Run control over recorders like `base`, whose name is made for each run.
pub(super) fn control(base: RecorderConfig, takes_commands: bool) -> RunControl {
    let volumes = match &base.target {
        Target::Volumes(volumes) => volumes.clone(),
        Target::Null => Vec::new(),
    };
    RunControl::new(RunParts {
        offer: RunOffer { volumes, listen: base.listen, takes_commands },
        prepare: Box::new(move |settings, id, _| {
            let mut config = match &settings.profile {
                // By name only: a path would let others choose what is read here.
                Some(profile) => {
                    recorder_config(&keepup_plan::builtin(profile).map_err(|e| e.to_string())?, &base)
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
    /// Makes everything ready; nobody is let in yet.
    pub(super) fn begin(base: RecorderConfig, settings: &RunSettings) -> anyhow::Result<Self> {
        let mut session = Self(control(base, false));
        session.command(RunCommand::Configure, Some(settings))?;
        session.command(RunCommand::Arm, None)?;
        Ok(session)
    }

    /// Lets sources in.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        self.command(RunCommand::Start, None)
    }

    /// The recorder, which is there until the run ends.
    pub(super) fn recorder(&self) -> anyhow::Result<&Recorder> {
        self.0.recorder().context("the recorder has ended")
    }

    /// Looks whether the run is over; ends it when it is asked to `stop`.
    pub(super) fn is_over(&mut self, stop: bool) -> bool {
        self.0.look();
        if stop && self.0.state() == RunState::Recording {
            // Refused only in another state; then it has ended already.
            let _ = self.0.command(RunCommand::Stop, None);
        }
        !matches!(self.0.state(), RunState::Recording | RunState::Draining)
    }

    /// What the run came to.
    pub(super) fn report(&mut self) -> anyhow::Result<&RecordReport> {
        if self.0.report().is_none()
            && let Some(failure) = self.0.take_failure()
        {
            return Err(failure.into());
        }
        self.0.report().context("the run has no account")
    }

    fn command(&mut self, command: RunCommand, settings: Option<&RunSettings>) -> anyhow::Result<()> {
        let outcome = self.0.command(command, settings);
        outcome.map_err(|refusal: RunRefusal| match self.0.take_failure() {
            Some(failure) => failure.into(),
            None => anyhow!("{refusal}"),
        })
    }
}
