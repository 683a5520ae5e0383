//! Log lines for events of a fleet.
use keepup_fleet::controller::FleetEvent;
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::file::FleetFile;
use keepup_fleet::launch::LaunchEvent;
use keepup_fleet::link::Refusal;
use keepup_fleet::message::HostId;

use crate::output::log;

/// Limit on lines about dropped messages, which a hostile peer could otherwise use to fill a log.
const REFUSALS_MAX: u32 = 20;

/// Writes a line for each event.
pub(super) struct Reporter<'a> {
    file: &'a FleetFile,
    refusals: u32,
    /// Closed connections are expected.
    is_ending: bool,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(file: &'a FleetFile) -> Self {
        Self { file, refusals: 0, is_ending: false }
    }

    /// The fleet is shutting down: hosts that leave are no longer reported.
    pub(super) fn shut_down(&mut self) {
        self.is_ending = true;
    }

    pub(super) fn report(&mut self, event: &ControllerEvent) {
        match event {
            ControllerEvent::Refused { host, why } => self.refused(*host, why),
            ControllerEvent::Launch(LaunchEvent::Line { host, text }) => {
                log(&format!("{}: {text}", self.name(*host)))
            }
            ControllerEvent::Launch(LaunchEvent::Failed { host, why }) => {
                log(&format!("warning: {} is not in the fleet: {why}", self.name(*host)));
            }
            ControllerEvent::Launch(LaunchEvent::Ended { host, status }) => {
                log(&format!("{}: its agent has ended: {status}", self.name(*host)));
            }
            ControllerEvent::Fleet(event) => self.fleet(event),
        }
    }

    fn fleet(&self, event: &FleetEvent) {
        match event {
            FleetEvent::Joined(host) => log(&format!("{} has joined", self.name(*host))),
            FleetEvent::Refused { host, why } => {
                log(&format!("warning: {} was refused: {why}", self.name(*host)));
            }
            FleetEvent::Closed(_) | FleetEvent::Lost { .. } if self.is_ending => {}
            FleetEvent::Closed(host) => {
                log(&format!("warning: {}: the connection is closed", self.name(*host)));
            }
            FleetEvent::Lost { host, silent_ns } => {
                let seconds = *silent_ns as f64 / 1e9;
                log(&format!("warning: {} is lost: no heartbeat for {seconds:.1} s", self.name(*host)));
            }
            FleetEvent::Silent(_) if self.is_ending => {}
            FleetEvent::Silent(ns) => {
                let seconds = *ns as f64 / 1e9;
                log(&format!(
                    "warning: no heartbeat from any host for {seconds:.1} s: the controller may be cut off"
                ));
            }
            FleetEvent::Paused(ns) => {
                log(&format!("warning: the controller did not run for {:.1} s", *ns as f64 / 1e9));
            }
            // Events of runs.
            FleetEvent::Phase(..)
            | FleetEvent::PartOver(..)
            | FleetEvent::Moved { .. }
            | FleetEvent::Over { .. } => {}
        }
    }

    fn refused(&mut self, host: Option<HostId>, why: &Refusal) {
        self.refusals = self.refusals.saturating_add(1);
        if self.refusals > REFUSALS_MAX {
            return;
        }
        let from = host.map_or("an unknown host", |host| self.name(host));
        log(&format!("warning: dropped a message from {from}: {why}"));
        if self.refusals == REFUSALS_MAX {
            log("warning: further dropped messages are not logged");
        }
    }

    fn name(&self, host: HostId) -> &'a str {
        let host = usize::try_from(host).ok().and_then(|host| self.file.hosts.get(host));
        host.map_or("an unknown host", |host| &host.name)
    }
}
