//! A fleet in simulated time: the real controller and hosts, a simulated network, disks and clocks.
//!
//! Events happen one after the other, in the order of their time. After each, the oracle checks: no stream
//! has two owners, and no event is acknowledged without a durable copy. At the end, the account of every
//! source must be exact, and nothing may be left behind while a recorder could have taken it. A seed
//! determines all.
mod data;
mod fault;
mod net;
mod oracle;
mod scenario;
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

use crate::controller::{Action, Controller, FleetEvent, RunKind};
use crate::host::{Done, Host, HostAction};
use crate::message::{Heartbeat, HostId, Order, Role};

use data::{Acknowledged, Batch, Recorder, Source};
use fault::Fault;
use net::{Net, Node};
use oracle::Oracle;
use scenario::Scenario;

const MS: u64 = 1_000_000;
/// Number of the run.
const RUN: u64 = 7;

/// What happens at a time.
#[derive(Clone, Debug)]
enum Event {
    /// A host's next tick, of this incarnation.
    HostTick(HostId, u64),
    ControllerTick,
    Heartbeat(Heartbeat),
    Order(Order),
    Closed(HostId),
    /// Events on their way to a recorder.
    Data(HostId, Batch),
    /// Acknowledgements on their way to a source.
    Acknowledged(HostId, Acknowledged),
    /// A source emits and sends; the number of the run's start guards against old timers.
    Emit(HostId, u64),
    /// A recorder flushes.
    Flush(HostId, u64),
    /// The drain of a recorder proceeds.
    Drain(HostId, u64),
    /// The program around a host has done something.
    Done(HostId, u64, Done),
    Fault(Fault),
    StartRun,
    Finish,
}

/// What a host runs.
#[derive(Debug)]
enum Part {
    Recorder(Recorder),
    Source(Source),
    /// Receives copies, which are not simulated.
    Drain,
}

/// A machine with a host.
#[derive(Debug)]
struct Machine {
    /// None while its program does not run.
    host: Option<Host>,
    incarnation: u64,
    role: Role,
    /// Its clock: offset in ns, and rate in parts per million.
    clock: (u64, i64),
    /// Stopped until then, ns.
    stopped_until: u64,
    part: Part,
}

impl Machine {
    /// Its clock at `now` of true time, ns.
    fn local(&self, now: u64) -> u64 {
        let (offset, ppm) = self.clock;
        offset + scaled(now, ppm)
    }

    /// True time at `local` of its clock, ns.
    fn global(&self, local: u64) -> u64 {
        let (offset, ppm) = self.clock;
        scaled(local.saturating_sub(offset), -ppm)
    }
}

/// A time by a clock that is `ppm` parts per million faster.
fn scaled(time: u64, ppm: i64) -> u64 {
    (i128::from(time) * i128::from(1_000_000 + ppm) / 1_000_000) as u64
}

/// The simulation.
#[derive(Debug)]
struct World {
    now: u64,
    serial: u64,
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    rng: Rng,
    scenario: Scenario,
    controller: Option<Controller>,
    controller_stopped_until: u64,
    machines: Vec<Machine>,
    net: Net,
    oracle: Oracle,
    is_run_over: bool,
    /// Events of the fleet, with their time.
    reported: Vec<(u64, FleetEvent)>,
    exited: Vec<(u64, HostId)>,
    controller_messages: u64,
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let mut rng = Rng::with_seed(scenario.seed);
        let roles = scenario.roles();
        let machines: Vec<Machine> =
            (0..).zip(&roles).map(|(id, &role)| scenario.machine(id, role, &mut rng)).collect();
        let controller = Controller::new(rng.u64(..), scenario.controller_timing(), &roles, 0);
        let mut world = Self {
            now: 0,
            serial: 0,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            net: Net::new(machines.len()),
            oracle: Oracle::new(scenario.streams()),
            controller: Some(controller),
            controller_stopped_until: 0,
            machines,
            rng,
            scenario,
            is_run_over: false,
            reported: Vec::new(),
            exited: Vec::new(),
            controller_messages: 0,
        };
        world.at(0, Event::ControllerTick);
        for host in 0..roles.len() as HostId {
            let delay = world.rng.u64(0..200 * MS);
            world.start_host(host, delay);
        }
        world.at(400 * MS, Event::StartRun);
        for end in [world.scenario.finish_ns, world.scenario.hurry_ns].into_iter().flatten() {
            world.at(end, Event::Finish);
        }
        for (time, fault) in world.scenario.faults.clone() {
            world.at(time, Event::Fault(fault));
        }
        world
    }

    /// Starts the program of a host, `delay` from now.
    fn start_host(&mut self, host: HostId, delay: u64) {
        let incarnation = self.rng.u64(1..);
        let timing = self.scenario.host_timing();
        let now = self.now + delay;
        let machine = &mut self.machines[host as usize];
        machine.incarnation = incarnation;
        machine.host = Some(Host::new(host, incarnation, timing, machine.local(now)));
        self.at(now, Event::HostTick(host, incarnation));
    }

    fn at(&mut self, time: u64, event: Event) {
        self.serial += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.queue.push(Reverse((time.max(self.now), self.serial, place)));
    }

    /// Runs until `end` of true time, or nothing is left to happen.
    fn run(&mut self, end: u64) {
        while let Some(Reverse((time, _, place))) = self.queue.pop() {
            if time > end {
                break;
            }
            let Some(event) = self.events[place].take() else { continue };
            self.free.push(place);
            self.now = time;
            let stopped_until = self.stopped_until(&event);
            if stopped_until > time {
                self.at(stopped_until, event);
            } else {
                self.happen(event);
            }
            if self.is_over() {
                break;
            }
        }
    }

    /// Whether the run is over and all programs idle, or all have exited.
    fn is_over(&self) -> bool {
        let all_exited =
            self.controller.is_none() && self.machines.iter().all(|machine| machine.host.is_none());
        self.is_run_over || all_exited
    }

    /// Until when the one to whom the event happens is stopped.
    fn stopped_until(&self, event: &Event) -> u64 {
        match event {
            Event::ControllerTick
            | Event::Heartbeat(_)
            | Event::Closed(_)
            | Event::StartRun
            | Event::Finish => self.controller_stopped_until,
            Event::Order(Order { host, .. })
            | Event::HostTick(host, _)
            | Event::Data(host, _)
            | Event::Acknowledged(host, _)
            | Event::Emit(host, _)
            | Event::Flush(host, _)
            | Event::Drain(host, _)
            | Event::Done(host, _, _) => self.machines[*host as usize].stopped_until,
            Event::Fault(_) => 0,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::HostTick(host, incarnation) => {
                if self.machines[host as usize].incarnation == incarnation {
                    self.with_host(host, |own, local, out| own.tick(local, out));
                }
                let machine = &self.machines[host as usize];
                if let Some(own) = machine.host.as_ref().filter(|_| machine.incarnation == incarnation) {
                    let next = machine.global(own.next_ns()).max(self.now + MS / 10);
                    self.at(next, Event::HostTick(host, incarnation));
                }
            }
            Event::Order(order) => {
                let host = order.host;
                self.with_host(host, |own, local, out| own.on_order(local, order, out));
            }
            Event::Done(host, incarnation, done) => {
                if self.machines[host as usize].incarnation == incarnation {
                    self.with_host(host, |own, local, out| own.report(local, done, out));
                }
            }
            Event::ControllerTick => {
                // As the loop of the controller does, heartbeats or not.
                self.with_controller(|controller, now, out| {
                    if now >= controller.next_ns() {
                        controller.tick(now, out);
                    }
                });
                if let Some(controller) = &self.controller {
                    let next = controller.next_ns().max(self.now + MS);
                    self.at(next, Event::ControllerTick);
                }
            }
            Event::Heartbeat(heartbeat) => {
                self.with_controller(|controller, now, out| controller.on_heartbeat(now, heartbeat, out));
            }
            Event::Closed(host) => {
                self.with_controller(|controller, now, out| controller.on_closed(now, host, out));
            }
            Event::StartRun => {
                let plans = vec![Some("plan".to_owned()); self.machines.len()];
                self.with_controller(|controller, now, out| {
                    let begun = controller.start_run(now, (RUN, RunKind::Recording), plans, out);
                    assert_eq!(begun, Ok(()));
                });
            }
            Event::Finish => self.with_controller(|controller, now, out| controller.finish(now, out)),
            Event::Data(host, batch) => self.on_data(host, &batch),
            Event::Acknowledged(host, acknowledged) => self.on_acknowledged(host, &acknowledged),
            Event::Emit(host, incarnation) => self.on_emit(host, incarnation),
            Event::Flush(host, incarnation) => self.on_flush(host, incarnation),
            Event::Drain(host, incarnation) => self.on_drain(host, incarnation),
            Event::Fault(fault) => self.on_fault(fault),
        }
    }

    fn with_host(&mut self, host: HostId, step: impl FnOnce(&mut Host, u64, &mut Vec<HostAction>)) {
        let (now, machine) = (self.now, &mut self.machines[host as usize]);
        let local = machine.local(now);
        let Some(own) = &mut machine.host else { return };
        let mut out = Vec::new();
        step(own, local, &mut out);
        self.act(host, out);
    }

    fn with_controller(&mut self, step: impl FnOnce(&mut Controller, u64, &mut Vec<Action>)) {
        let Some(controller) = &mut self.controller else { return };
        let mut out = Vec::new();
        step(controller, self.now, &mut out);
        for action in out {
            match action {
                Action::Send(order) => {
                    self.controller_messages += 1;
                    self.send(Node::Controller, Node::Host(order.host), Event::Order(order));
                }
                Action::Report(event) => {
                    self.is_run_over |= matches!(event, FleetEvent::Over { .. });
                    self.reported.push((self.now, event));
                }
            }
        }
    }

    /// Carries out the actions of a host.
    fn act(&mut self, host: HostId, actions: Vec<HostAction>) {
        for action in actions {
            let incarnation = self.machines[host as usize].incarnation;
            match action {
                HostAction::Send(heartbeat) => {
                    self.send(Node::Host(host), Node::Controller, Event::Heartbeat(heartbeat));
                }
                HostAction::Prepare { run, .. } => {
                    let address = std::net::SocketAddr::from(([10, 0, 0, 1], 7000));
                    let delay = self.rng.u64(MS..300 * MS);
                    let done = Done::Prepared { run, address: Some(address) };
                    self.at(self.now + delay, Event::Done(host, incarnation, done));
                }
                HostAction::Start { at_ns, .. } => self.start_part(host, at_ns),
                HostAction::Changed => self.deal(host),
                HostAction::Finish { at_once, .. } => self.finish_part(host, at_once),
                HostAction::Exit { .. } => {
                    self.exited.push((self.now, host));
                    self.machines[host as usize].host = None;
                }
            }
        }
    }

    /// Prints what has happened.
    fn trace(&self) {
        for (time, fault) in &self.scenario.faults {
            println!("{:9.3} ms {fault:?}", *time as f64 / MS as f64);
        }
        for (time, event) in &self.reported {
            println!("{:9.3} ms {event:?}", *time as f64 / MS as f64);
        }
        for (time, host) in &self.exited {
            println!("{:9.3} ms host {host} exits", *time as f64 / MS as f64);
        }
        for machine in &self.machines {
            println!("{:?} {:?}", machine.role, machine.host.as_ref().map(Host::state));
        }
    }

    /// Sends through the network, which may lose, delay or repeat it.
    fn send(&mut self, from: Node, to: Node, event: Event) {
        let copies = self.net.copies(from, to, self.now, &self.scenario, &mut self.rng);
        let mut event = Some(event);
        for (index, delay) in copies.iter().enumerate() {
            let copy = if index + 1 == copies.len() { event.take() } else { event.clone() };
            if let Some(copy) = copy {
                self.at(self.now + delay, copy);
            }
        }
    }
}
