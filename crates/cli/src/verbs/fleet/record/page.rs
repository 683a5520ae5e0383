//! Live page of a recording on several hosts, served by the controller.
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use keepup_error::Cause;
use keepup_fleet::controller::{Controller, FleetEvent, Phase};
use keepup_fleet::record::{FleetRecording, FleetWatch};
use keepup_live::{Live, Scene};
use keepup_results::live::{
    FleetNow, RefusalKind, RunCommand, RunOrder, RunOutcome, RunRefusal, RunSettings, RunState, RunStatus,
};
use keepup_results::printable::one_line;

use crate::http::{HttpArgs, PageContent};

/// Interval between samples, ns.
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;
/// Interval at which the thread that answers commands checks whether it is to end.
const ANSWER_POLL: Duration = Duration::from_millis(50);
/// Most lines about recorders in the outcome.
const INCIDENTS_MAX: usize = 20;

/// Starts the server if `--http` is given.
pub(super) fn serve(http: &HttpArgs, fleet: &str) -> anyhow::Result<Option<Live>> {
    let Some(mut page) = http.prepare(None, PageContent { commands: true, ..PageContent::default() })? else {
        return Ok(None);
    };
    page.parts.title = format!("fleet {fleet}");
    Ok(Some(page.start()?))
}

/// Live page of a run.
pub(super) struct FleetPage {
    live: Live,
    watch: FleetWatch,
    now: FleetNow,
    status: RunStatus,
    sampled_ns: Option<u64>,
}

impl FleetPage {
    /// Page of a run that has not started. `directory` is that of its set file.
    pub(super) fn new(live: Live, watch: FleetWatch, settings: RunSettings, directory: String) -> Self {
        let status = RunStatus {
            state: RunState::Configured,
            run: settings.run,
            name: settings.name.clone(),
            settings,
            directories: vec![directory],
            ..RunStatus::default()
        };
        Self { live, watch, now: FleetNow::default(), status, sampled_ns: None }
    }

    /// Takes an event of the fleet.
    pub(super) fn on_event(&mut self, now_ns: u64, event: &FleetEvent) {
        self.watch.on_event(now_ns, event);
        let state = match event {
            FleetEvent::Phase(_, Phase::Running) => RunState::Recording,
            FleetEvent::Phase(_, Phase::FinishingSources | Phase::FinishingRecorders) => RunState::Draining,
            _ => return,
        };
        self.enter(now_ns, state);
    }

    /// Clients can connect to these addresses.
    pub(super) fn set_addresses(&mut self, addresses: &str) {
        self.status.listen = Some(addresses.to_owned());
        self.status.revision += 1;
        self.publish();
    }

    /// Takes the reports of the hosts and the commands of clients, and updates the page. Returns whether the
    /// run is to end.
    pub(super) fn turn(&mut self, now_ns: u64, controller: &Controller) -> bool {
        self.watch.observe(controller);
        let passed_ns = self.sampled_ns.map(|then_ns| now_ns.saturating_sub(then_ns));
        if passed_ns.is_none_or(|passed_ns| passed_ns >= SAMPLE_EVERY_NS) {
            self.sampled_ns = Some(now_ns);
            self.now = self.watch.sample(now_ns);
            self.publish();
        }
        let mut stops = false;
        while let Some(asked) = self.live.command_queue().next(Duration::ZERO) {
            let allowed = allow(&self.status, &asked.order);
            if allowed.is_ok() {
                stops = true;
                self.enter(now_ns, RunState::Draining);
            }
            asked.answer(allowed.map(|()| self.status.clone()));
        }
        stops
    }

    /// The run is over.
    pub(super) fn end(&mut self, now_ns: u64, recording: &FleetRecording, ended: &str) {
        self.now = self.watch.sample(now_ns);
        self.status.error.clone_from(&recording.ended_early);
        self.status.last = Some(outcome(recording, &self.now, ended, &self.status.directories));
        let has_failed = self.status.error.is_some();
        self.enter(now_ns, if has_failed { RunState::Error } else { RunState::Sealed });
    }

    /// The run has failed.
    pub(super) fn fail(&mut self, now_ns: u64, why: &str) {
        self.now = self.watch.sample(now_ns);
        self.status.error = Some(one_line(why));
        self.enter(now_ns, RunState::Error);
    }

    /// Answers commands until the sender of `over` is dropped. After the end of the run, all are refused.
    pub(super) fn answer_commands(&self, over: &Receiver<()>) {
        while over.try_recv() == Err(TryRecvError::Empty) {
            if let Some(asked) = self.live.command_queue().next(ANSWER_POLL) {
                let allowed = allow(&self.status, &asked.order);
                asked.answer(allowed.map(|()| self.status.clone()));
            }
        }
    }

    fn enter(&mut self, now_ns: u64, state: RunState) {
        if self.status.state == state {
            return;
        }
        self.status.state = state;
        self.status.since_unix_ns = now_ns;
        self.status.revision += 1;
        self.status.commands = if state == RunState::Recording { vec![RunCommand::Stop] } else { Vec::new() };
        if state != RunState::Recording {
            self.status.listen = None;
        }
        self.publish();
    }

    fn publish(&self) {
        let fleet = self.sampled_ns.map(|_| &self.now);
        self.live.publish(Scene { run: Some(&self.status), fleet, ..Scene::default() });
    }
}

/// Whether a client may give this command: only `stop`, while the run is recorded.
fn allow(status: &RunStatus, order: &RunOrder) -> Result<(), RunRefusal> {
    let command = order.command;
    if command != RunCommand::Stop {
        let why = format!("cannot {command}: this fleet was started for one run, and may only be stopped");
        return Err(RunRefusal::new(RefusalKind::Uncontrolled, why));
    }
    if let Some(expected) = order.revision.filter(|&revision| revision != status.revision) {
        let why = format!("cannot stop: expected revision {expected}, but it is now {}", status.revision);
        let hint = "read the status again; another client gave a command, or the run advanced";
        return Err(RunRefusal::new(RefusalKind::Revision, Cause::new(why).with_hint(hint)));
    }
    if status.commands.contains(&command) {
        return Ok(());
    }
    let state = match status.state {
        RunState::Error => "has failed".to_owned(),
        state => format!("is {state}"),
    };
    Err(RunRefusal::new(RefusalKind::State, format!("cannot stop: the run {state}")))
}

fn outcome(recording: &FleetRecording, now: &FleetNow, ended: &str, directories: &[String]) -> RunOutcome {
    let recorders = &recording.recorders;
    let failures = recorders
        .iter()
        .filter_map(|recorder| recorder.failure.as_ref().map(|why| format!("{}: {why}", recorder.host)));
    let incidents = recorders.iter().flat_map(|recorder| {
        let incidents = recorder.outcome.iter().flat_map(|outcome| &outcome.incidents);
        incidents.map(|incident| format!("{}: {incident}", recorder.host))
    });
    RunOutcome {
        run: Some(recording.run),
        name: recording.name.clone(),
        ended: recording.ended_early.clone().unwrap_or_else(|| ended.to_owned()),
        received: now.flow.received,
        durable: now.flow.durable,
        missing: now.flow.missing.clone(),
        seconds: now.seconds,
        incidents: failures.chain(incidents).take(INCIDENTS_MAX).collect(),
        directories: directories.to_vec(),
        master: None,
        whole: recording.is_whole() && now.flow.missing_events == 0,
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
