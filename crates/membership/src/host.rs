//! A host: orders in, actions out.
//!
//! The host moves towards the goal of the latest order, and reports each change of its state in a heartbeat.
//! A recorder accepts events of a stream only while it is running, has a lease, and owns the stream in its
//! view.
use std::net::SocketAddr;

use crate::clock::{ClockFilter, Exchange, to_host_ns};
use crate::message::{Counters, Goal, Health, Heartbeat, HostId, HostState, Order, VERSION};
use crate::placement::View;
use crate::timing::Timing;

/// Time between two reports of [`Health`], ns.
const HEALTH_NS: u64 = 1_000_000_000;

/// What the caller must do.
#[derive(Clone, Debug, PartialEq)]
pub enum HostAction {
    /// Send this heartbeat.
    Send(Heartbeat),
    /// Prepare, then report [`Done::Prepared`] or [`Done::Failed`].
    Prepare {
        /// Number of the run.
        run: u64,
        /// Part of this host.
        plan: String,
    },
    /// Start at this time of the host's clock, ns; report [`Done::Finished`] or [`Done::Failed`] at the end.
    Start {
        /// Number of the run.
        run: u64,
        /// When, ns.
        at_ns: u64,
    },
    /// The view has changed.
    Changed,
    /// End the part of the run, then report [`Done::Finished`] or [`Done::Failed`].
    Finish {
        /// Number of the run.
        run: u64,
        /// Without what is only copied. May follow an end that does not say so.
        at_once: bool,
    },
    /// Exit.
    Exit {
        /// Why.
        why: String,
    },
}

/// Progress of the caller in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Prepared.
    Prepared {
        /// Number of the run.
        run: u64,
        /// Where sources reach this host, if it is a recorder.
        address: Option<SocketAddr>,
    },
    /// The part of the run is over.
    Finished {
        /// Number of the run.
        run: u64,
        /// The result.
        outcome: String,
    },
    /// The part of the run failed.
    Failed {
        /// Number of the run.
        run: u64,
        /// Cause.
        why: String,
    },
    /// The part of the run ends by itself; its result follows.
    Ending {
        /// Number of the run.
        run: u64,
    },
}

/// State of a host.
#[derive(Clone, Debug)]
pub struct Host {
    id: HostId,
    incarnation: u64,
    timing: Timing,
    state: HostState,
    view: View,
    /// End of the lease, by the host's clock, ns.
    lease_until_ns: u64,
    /// The controller, from its first order on.
    controller: Option<u64>,
    /// Number of its latest order.
    order: u64,
    /// When the latest order arrived, or the host began.
    heard_ns: u64,
    heartbeats: u64,
    heartbeat_sent_ns: u64,
    clock: ClockFilter,
    counters: Counters,
    /// Health that the next heartbeat reports, and when the latest one was taken, ns.
    health: Option<Health>,
    health_ns: Option<u64>,
    /// Whether its part of the run was asked to end at once.
    is_hurried: bool,
    /// Why it exits once its part is over.
    leaving: Option<String>,
}

impl Host {
    /// A host that begins at `now_ns` of its clock.
    #[must_use]
    pub fn new(id: HostId, incarnation: u64, timing: Timing, now_ns: u64) -> Self {
        Self {
            id,
            incarnation,
            timing,
            state: HostState::Idle,
            view: View::default(),
            lease_until_ns: 0,
            controller: None,
            order: 0,
            heard_ns: now_ns,
            heartbeats: 0,
            heartbeat_sent_ns: 0,
            clock: ClockFilter::default(),
            counters: Counters::default(),
            health: None,
            health_ns: None,
            is_hurried: false,
            leaving: None,
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> &HostState {
        &self.state
    }

    /// Its view.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Its counters, which the next heartbeat reports.
    pub const fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Whether the next heartbeat is due and should report the health too.
    #[must_use]
    pub fn wants_health(&self, now_ns: u64) -> bool {
        let is_due = self.health_ns.is_none_or(|then_ns| now_ns.saturating_sub(then_ns) >= HEALTH_NS);
        is_due && now_ns >= self.next_ns()
    }

    /// Sets the health that the next heartbeat reports.
    pub fn set_health(&mut self, now_ns: u64, health: Option<Health>) {
        (self.health, self.health_ns) = (health, Some(now_ns));
    }

    /// Whether it has a lease.
    #[must_use]
    pub const fn has_lease(&self, now_ns: u64) -> bool {
        now_ns < self.lease_until_ns
    }

    /// Until when it may accept events, by its clock, ns; 0 if it takes part in no run or ends its part.
    #[must_use]
    pub const fn accepts_until_ns(&self) -> u64 {
        if matches!(self.state, HostState::Running { .. }) { self.lease_until_ns } else { 0 }
    }

    /// Whether it may accept events of `stream` now.
    #[must_use]
    pub fn may_take(&self, stream: u32, now_ns: u64) -> bool {
        let HostState::Running { run } = self.state else { return false };
        let is_owner = || self.view.owner(stream).is_some_and(|owner| owner.host == self.id);
        self.has_lease(now_ns) && self.view.run == run && is_owner()
    }

    /// Time of the next [`Host::tick`], ns.
    #[must_use]
    pub const fn next_ns(&self) -> u64 {
        self.heartbeat_sent_ns.saturating_add(self.timing.heartbeat_ns)
    }

    /// Sends a heartbeat if one is due, and detects that the controller is gone.
    pub fn tick(&mut self, now_ns: u64, out: &mut Vec<HostAction>) {
        if now_ns.saturating_sub(self.heard_ns) >= self.timing.orphan_ns && self.leaving.is_none() {
            let seconds = self.timing.orphan_ns as f64 / 1e9;
            self.leave(format!("no order from the controller for {seconds} s"), out);
        }
        if now_ns >= self.next_ns() || self.heartbeats == 0 {
            self.heartbeat(now_ns, out);
        }
    }

    /// Handles an order.
    pub fn on_order(&mut self, now_ns: u64, order: Order, out: &mut Vec<HostAction>) {
        // An echo from the future is no answer to this host.
        let is_own = (order.host, order.incarnation) == (self.id, self.incarnation);
        if !is_own || order.echo_ns > self.heartbeat_sent_ns {
            return;
        }
        if *self.controller.get_or_insert(order.controller) != order.controller {
            self.leave("another controller has taken over".to_owned(), out);
            return;
        }
        if order.number <= self.order {
            return;
        }
        (self.order, self.heard_ns) = (order.number, now_ns);
        self.clock.add(&Exchange {
            heartbeat_sent_ns: order.echo_ns,
            heartbeat_received_ns: order.received_ns,
            order_sent_ns: order.sent_ns,
            order_received_ns: now_ns,
        });
        let epoch = self.view.epoch;
        order.view.into_iter().for_each(|update| self.view.update(update));
        if self.view.epoch != epoch {
            out.push(HostAction::Changed);
        }
        if self.view.epoch >= order.epoch {
            let until_ns = order.echo_ns.saturating_add(self.timing.lease_of_host_ns());
            self.lease_until_ns = self.lease_until_ns.max(until_ns);
        }
        let before = self.state.clone();
        self.follow(now_ns, order.goal, out);
        if self.state != before {
            self.heartbeat(now_ns, out);
        }
    }

    /// Handles progress of the caller.
    pub fn report(&mut self, now_ns: u64, done: Done, out: &mut Vec<HostAction>) {
        let state = match (done, &self.state) {
            (Done::Prepared { run, address }, HostState::Preparing { run: own }) if run == *own => {
                HostState::Ready { run, address }
            }
            (Done::Ending { run }, HostState::Running { run: own }) if run == *own => {
                HostState::Finishing { run }
            }
            (Done::Finished { run, outcome }, state) if state.run() == Some(run) && !state.is_over() => {
                HostState::Finished { run, outcome }
            }
            (Done::Failed { run, why }, state) if state.run() == Some(run) && !state.is_over() => {
                HostState::Failed { run, why }
            }
            _ => return,
        };
        self.state = state;
        self.heartbeat(now_ns, out);
        if let Some(why) = self.leaving.clone().filter(|_| self.state.is_over()) {
            out.push(HostAction::Exit { why });
        }
    }

    /// One step towards `goal`.
    fn follow(&mut self, now_ns: u64, goal: Goal, out: &mut Vec<HostAction>) {
        if self.leaving.is_some() {
            return;
        }
        let is_free = self.state == HostState::Idle || self.state.is_over();
        match goal {
            Goal::Leave { why } => self.leave(why, out),
            Goal::Idle if is_free => self.state = HostState::Idle,
            Goal::Idle => self.finish(true, out),
            Goal::Prepare { run, .. } | Goal::Run { run, .. } | Goal::Finish { run, .. }
                if !is_free && self.state.run() != Some(run) =>
            {
                self.finish(true, out);
            }
            Goal::Prepare { run, plan } if self.state.run() != Some(run) => {
                (self.state, self.counters) = (HostState::Preparing { run }, Counters::default());
                (self.health, self.health_ns, self.is_hurried) = (None, None, false);
                out.push(HostAction::Prepare { run, plan });
            }
            Goal::Run { run, start_ns } if matches!(self.state, HostState::Ready { .. }) => {
                let Some(offset) = self.clock.best(now_ns) else { return };
                self.state = HostState::Running { run };
                out.push(HostAction::Start { run, at_ns: to_host_ns(start_ns, offset) });
            }
            Goal::Finish { at_once, .. } => self.finish(at_once, out),
            Goal::Prepare { .. } | Goal::Run { .. } => {}
        }
    }

    /// Ends the part of its run, if that is not over.
    fn finish(&mut self, at_once: bool, out: &mut Vec<HostAction>) {
        let run = match self.state {
            HostState::Preparing { run } | HostState::Ready { run, .. } | HostState::Running { run } => run,
            HostState::Finishing { run } if at_once && !self.is_hurried => run,
            _ => return,
        };
        self.state = HostState::Finishing { run };
        self.is_hurried |= at_once;
        out.push(HostAction::Finish { run, at_once });
    }

    /// Exits once its part is over.
    fn leave(&mut self, why: String, out: &mut Vec<HostAction>) {
        if self.leaving.is_some() {
            return;
        }
        self.finish(true, out);
        if self.state == HostState::Idle || self.state.is_over() {
            out.push(HostAction::Exit { why: why.clone() });
        }
        self.leaving = Some(why);
    }

    fn heartbeat(&mut self, now_ns: u64, out: &mut Vec<HostAction>) {
        self.heartbeats += 1;
        self.heartbeat_sent_ns = now_ns;
        out.push(HostAction::Send(Heartbeat {
            version: VERSION,
            host: self.id,
            incarnation: self.incarnation,
            number: self.heartbeats,
            sent_ns: now_ns,
            state: self.state.clone(),
            epoch: self.view.epoch,
            clock: self.clock.best(now_ns),
            counters: self.counters,
            health: self.health.take().map(Box::new),
        }));
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
