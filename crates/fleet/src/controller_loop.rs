//! Event loop of the controller: connects a link, a [`Controller`], the launcher and a clock.
mod probe;
mod status;

use std::time::Duration;

use keepup_measure::clock::Clock;

pub use self::probe::Probe;
pub use self::status::{FleetStatus, HostReport, HostStatus};
use crate::controller::{Action, Controller, FleetEvent, RunKind, StartError};
use crate::file::FleetFile;
use crate::launch::{LaunchEvent, Launcher};
use crate::link::{ControllerLink, FromHost, Refusal};
use crate::message::HostId;
use crate::wall::AnchoredClock;

/// Limit on messages handled in one turn.
const MESSAGES_PER_TURN: usize = 256;

/// Event of the controller's loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerEvent {
    /// Event of the fleet.
    Fleet(FleetEvent),
    /// A message was dropped.
    Refused {
        /// The host whose address it had, if there is such a host.
        host: Option<HostId>,
        /// Why.
        why: Refusal,
    },
    /// Event of an agent's process.
    Launch(LaunchEvent),
}

/// Event loop of a controller.
#[derive(Debug)]
pub struct ControllerLoop<L, C> {
    link: L,
    controller: Controller,
    launcher: Launcher,
    clock: AnchoredClock<C>,
}

impl<L: ControllerLink, C: Clock> ControllerLoop<L, C> {
    /// A controller of the hosts of `file`; `id` differs for each start.
    pub fn new(id: u64, file: &FleetFile, link: L, launcher: Launcher, clock: C) -> Self {
        let clock = AnchoredClock::new(clock);
        let controller = Controller::new(id, file.timing, &file.roles(), clock.now_ns());
        Self { link, controller, launcher, clock }
    }

    /// One iteration: waits for messages for at most `longest`, then handles timers. Returns events.
    pub fn turn(&mut self, longest: Duration) -> Vec<ControllerEvent> {
        let now_ns = self.clock.now_ns();
        let due = Duration::from_nanos(self.controller.next_ns().saturating_sub(now_ns));
        let mut message = self.link.receive(due.min(longest));
        let (mut actions, mut events) = (Vec::new(), Vec::new());
        let mut left = MESSAGES_PER_TURN;
        while let Some(received) = message {
            let now_ns = self.clock.now_ns();
            match received {
                FromHost::Heartbeat(heartbeat) => {
                    self.controller.on_heartbeat(now_ns, *heartbeat, &mut actions)
                }
                FromHost::Closed { host, .. } => self.controller.on_closed(now_ns, host, &mut actions),
                FromHost::Refused { host, why } => events.push(ControllerEvent::Refused { host, why }),
            }
            self.apply(&mut actions, &mut events);
            left -= 1;
            message = if left > 0 { self.link.receive(Duration::ZERO) } else { None };
        }
        let now_ns = self.clock.now_ns();
        if now_ns >= self.controller.next_ns() {
            self.controller.tick(now_ns, &mut actions);
            self.apply(&mut actions, &mut events);
        }
        let mut launched = Vec::new();
        self.launcher.turn(now_ns, &mut launched);
        events.extend(launched.into_iter().map(ControllerEvent::Launch));
        events
    }

    fn apply(&mut self, actions: &mut Vec<Action>, events: &mut Vec<ControllerEvent>) {
        for action in actions.drain(..) {
            match action {
                Action::Send(order) => self.link.send(&order),
                Action::Report(event) => {
                    if let FleetEvent::Joined(host) = event {
                        self.launcher.joined(host);
                    }
                    events.push(ControllerEvent::Fleet(event));
                }
            }
        }
    }

    /// Starts a run, see [`Controller::start_run`]. Returns the first events.
    ///
    /// # Errors
    /// Another run is not over, or the fleet is shutting down.
    pub fn start_run(
        &mut self,
        run: (u64, RunKind),
        plans: Vec<Option<String>>,
    ) -> Result<Vec<ControllerEvent>, StartError> {
        let (mut actions, mut events) = (Vec::new(), Vec::new());
        self.controller.start_run(self.clock.now_ns(), run, plans, &mut actions)?;
        self.apply(&mut actions, &mut events);
        Ok(events)
    }

    /// Ends the run, see [`Controller::finish`]. Returns the first events.
    pub fn finish(&mut self) -> Vec<ControllerEvent> {
        let (mut actions, mut events) = (Vec::new(), Vec::new());
        self.controller.finish(self.clock.now_ns(), &mut actions);
        self.apply(&mut actions, &mut events);
        events
    }

    /// Orders all hosts to end their parts and exit; starts no more agents.
    pub fn shut_down(&mut self, why: &str) -> Vec<ControllerEvent> {
        let (mut actions, mut events) = (Vec::new(), Vec::new());
        self.controller.shut_down(self.clock.now_ns(), why, &mut actions);
        self.apply(&mut actions, &mut events);
        self.launcher.start_no_more();
        events
    }

    /// Closes the standard input of all agents, which ends them even without a network.
    pub fn close_agents(&mut self) {
        self.launcher.close();
    }

    /// Number of agents that have not exited.
    pub fn agents(&self) -> usize {
        self.launcher.running()
    }

    /// Whether agents are still to be started or to join.
    pub fn is_starting(&self) -> bool {
        self.launcher.is_starting()
    }

    /// State of the controller.
    pub const fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The controller's clock: wall time at its start, monotonic since, ns.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// State of the fleet of `file`.
    pub fn status(&self, file: &FleetFile) -> FleetStatus {
        status::of(file, &self.controller, self.link.traffic())
    }
}

#[cfg(test)]
#[path = "controller_loop_tests.rs"]
mod tests;
