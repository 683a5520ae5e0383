//! What became of the hosts in a run.
use keepup_fleet::controller::{FleetEvent, PartEnd};
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::launch::LaunchEvent;
use keepup_fleet::message::HostId;

/// States of all hosts.
pub(super) struct HostStates(Vec<HostState>);

/// What became of a host.
#[derive(Clone, Default)]
struct HostState {
    end: Option<PartEnd>,
    has_joined: bool,
    /// Why it did not join.
    absence: Option<String>,
    /// Last line that its agent wrote.
    line: Option<String>,
}

impl HostStates {
    pub(super) fn new(hosts: usize) -> Self {
        Self(vec![HostState::default(); hosts])
    }

    /// Forgets the ends of parts, before another run.
    pub(super) fn start(&mut self) {
        self.0.iter_mut().for_each(|state| state.end = None);
    }

    /// Remembers what events say about hosts. Returns whether the run is over.
    pub(super) fn take(&mut self, events: &[ControllerEvent]) -> bool {
        let mut is_over = false;
        for event in events {
            match event {
                ControllerEvent::Launch(LaunchEvent::Line { host, text }) => {
                    self.change(*host, |state| state.line = Some(text.clone()));
                }
                ControllerEvent::Launch(LaunchEvent::Failed { host, why })
                | ControllerEvent::Fleet(FleetEvent::Refused { host, why }) => {
                    self.change(*host, |state| state.absence = Some(why.clone()));
                }
                ControllerEvent::Fleet(FleetEvent::Joined(host)) => {
                    self.change(*host, |state| state.has_joined = true);
                }
                ControllerEvent::Fleet(FleetEvent::PartOver(host, end)) => {
                    self.change(*host, |state| state.end = Some(end.clone()));
                }
                ControllerEvent::Fleet(FleetEvent::Over { .. }) => is_over = true,
                _ => {}
            }
        }
        is_over
    }

    /// The outcome of each host, or why it has none.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (HostId, Result<String, String>)> {
        (0..).zip(self.0.iter().map(HostState::outcome))
    }

    fn change(&mut self, host: HostId, change: impl FnOnce(&mut HostState)) {
        if let Some(state) = self.0.get_mut(host as usize) {
            change(state);
        }
    }
}

impl HostState {
    fn outcome(&self) -> Result<String, String> {
        let why = match &self.end {
            Some(PartEnd::Finished(outcome)) => return Ok(outcome.clone()),
            Some(PartEnd::Failed(why)) => return Err(why.clone()),
            Some(PartEnd::Absent) if self.has_joined => "the host was lost".to_owned(),
            Some(PartEnd::Absent) => {
                self.absence.as_deref().unwrap_or("it did not join the fleet").to_owned()
            }
            Some(end) => end.failure().unwrap_or_default(),
            None => "no result".to_owned(),
        };
        let line = self.line.as_ref().map(|line| format!("; its agent said: {line}"));
        Err(why + line.as_deref().unwrap_or_default())
    }
}
