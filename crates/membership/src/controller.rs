//! The controller: heartbeats in, orders out.
//!
//! It owns the membership, the view, and the phases of one run at a time ([`run`]). It answers each heartbeat
//! with an order, and sends orders to all members when their goal or the view changes.
mod limits;
mod run;

use crate::message::{Counters, Goal, Health, Heartbeat, HostId, Order, Role, VERSION};
use crate::placement::{Change, Update, View};
use crate::timing::Timing;

pub use limits::limited_causes;
use run::Run;
pub use run::{PartEnd, Phase, RunKind, StartError};

/// Ended incarnations of a host that are remembered, so that a late heartbeat does not bring one back.
const ENDED_KEPT: usize = 8;

/// What the caller must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send this order.
    Send(Order),
    /// Report this.
    Report(FleetEvent),
}

/// An event of the fleet, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetEvent {
    /// A host is a member now.
    Joined(HostId),
    /// A host is refused.
    Refused {
        /// The host, by its own account.
        host: HostId,
        /// Cause.
        why: String,
    },
    /// The connection of a host was closed; it is lost unless it is back within its lease.
    Closed(HostId),
    /// A host is no member any more.
    Lost {
        /// The host.
        host: HostId,
        /// Time since its last heartbeat, ns.
        silent_ns: u64,
    },
    /// No member was heard for this long, ns: they keep their leases, because the controller may be cut off.
    Silent(u64),
    /// The controller itself did not run for this long, ns; leases and deadlines were extended.
    Paused(u64),
    /// A phase of a run begins.
    Phase(u64, Phase),
    /// The part of a host in the run is over.
    PartOver(HostId, PartEnd),
    /// Streams of a lost recorder go to a spare, or to all others.
    Moved {
        /// The recorder.
        from: HostId,
        /// The spare.
        to: Option<HostId>,
        /// Epoch from which this holds.
        epoch: u64,
    },
    /// The run is over.
    Over {
        /// Number of the run.
        run: u64,
        /// Why it did not end as asked.
        why: Option<String>,
    },
}

/// A host as the controller knows it.
#[derive(Clone, Debug)]
struct HostEntry {
    role: Role,
    /// The host, if it is a member.
    member: Option<Membership>,
    /// Incarnation and number of the latest heartbeat of all.
    latest: Option<(u64, u64)>,
    /// Earlier incarnations.
    ended: Vec<u64>,
}

/// A member.
#[derive(Clone, Debug)]
struct Membership {
    /// Its latest heartbeat.
    heartbeat: Heartbeat,
    /// When that arrived, ns.
    received_ns: u64,
    /// Beginning of its lease, ns.
    lease_ns: u64,
    /// Its connection was closed after that.
    is_closed: bool,
    /// Latest health of the run within limits, and when it was sent, by the host's clock, ns.
    health: Option<(u64, Health)>,
}

/// What a member has reported.
#[derive(Clone, Copy, Debug)]
pub struct MemberReport<'a> {
    /// Its latest heartbeat.
    pub heartbeat: &'a Heartbeat,
    /// When that arrived, ns.
    pub received_ns: u64,
    /// Latest health of the run, and when it was sent, by the host's clock, ns.
    pub health: Option<&'a (u64, Health)>,
}

impl Membership {
    /// A member by its first or next heartbeat, which has no health most of the time.
    fn new(mut heartbeat: Heartbeat, now_ns: u64, before: Option<Self>) -> Self {
        let sent_ns = heartbeat.sent_ns;
        let before = before.filter(|member| member.heartbeat.state.run() == heartbeat.state.run());
        let health = heartbeat.health.take().map(|health| (sent_ns, limits::limited(&health)));
        let health = health.or_else(|| before?.health);
        Self { heartbeat, received_ns: now_ns, lease_ns: now_ns, is_closed: false, health }
    }

    /// Whether the host is lost, if the latest heartbeat of all members arrived at `latest_ns`. While no
    /// host is heard the controller itself may be cut off, and no stream could go anywhere: a lease lasts
    /// until the hosts end for want of orders.
    fn is_over(&self, now_ns: u64, latest_ns: u64, timing: &Timing) -> bool {
        let silent_ns = now_ns.saturating_sub(self.lease_ns);
        let others_answer = latest_ns > self.received_ns.saturating_add(2 * timing.heartbeat_ns);
        let limit_ns = match others_answer || self.is_closed {
            true => timing.lease_of_controller_ns(),
            false => timing.lease_of_controller_ns().max(timing.orphan_ns),
        };
        silent_ns > limit_ns
    }
}

impl HostEntry {
    /// Whether a heartbeat is newer than all before it, and may be used: the lease of an earlier incarnation
    /// must have run out.
    fn is_next(&mut self, incarnation: u64, number: u64) -> bool {
        let is_newer = match self.latest {
            None => true,
            Some((latest, before)) if latest == incarnation => number > before,
            Some(_) if self.member.is_some() || self.ended.contains(&incarnation) => false,
            Some((latest, _)) => {
                self.ended.truncate(ENDED_KEPT - 1);
                self.ended.insert(0, latest);
                true
            }
        };
        if is_newer {
            self.latest = Some((incarnation, number));
        }
        is_newer
    }
}

/// State of the controller.
#[derive(Clone, Debug)]
pub struct Controller {
    id: u64,
    timing: Timing,
    hosts: Vec<HostEntry>,
    run: Option<Run>,
    view: View,
    /// Changes of the view since the run's first one.
    changes: Vec<Change>,
    orders: u64,
    shutdown: Option<String>,
    /// Latest input, ns: a long time without one means that the controller itself was stopped.
    stepped_ns: u64,
    /// Latest check of leases and deadlines, ns. Heartbeats do not delay the next one.
    ticked_ns: u64,
    /// Whether no member was heard for longer than a lease.
    is_silent: bool,
    /// Whether goals or the view have changed since the latest orders to all.
    has_changed: bool,
}

impl Controller {
    /// A controller at `now_ns` of its clock, of hosts with these roles; `id` differs for each start.
    #[must_use]
    pub fn new(id: u64, timing: Timing, roles: &[Role], now_ns: u64) -> Self {
        let entry = |&role: &Role| HostEntry { role, member: None, latest: None, ended: Vec::new() };
        Self {
            id,
            timing,
            hosts: roles.iter().map(entry).collect(),
            run: None,
            view: View::default(),
            changes: Vec::new(),
            orders: 0,
            shutdown: None,
            stepped_ns: now_ns,
            ticked_ns: now_ns,
            is_silent: false,
            has_changed: false,
        }
    }

    /// Whether no member was heard for longer than a lease: what is known of them is old.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Number of members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.hosts.iter().filter(|host| host.member.is_some()).count()
    }

    /// Latest heartbeat of a host that is a member.
    #[must_use]
    pub fn heartbeat_of(&self, host: HostId) -> Option<&Heartbeat> {
        Some(&self.hosts.get(host as usize)?.member.as_ref()?.heartbeat)
    }

    /// What a host that is a member has reported.
    #[must_use]
    pub fn report_of(&self, host: HostId) -> Option<MemberReport<'_>> {
        let Membership { heartbeat, received_ns, health, .. } =
            self.hosts.get(host as usize)?.member.as_ref()?;
        Some(MemberReport { heartbeat, received_ns: *received_ns, health: health.as_ref() })
    }

    /// The view of the latest run.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Phase of the run, if there is one.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.run.as_ref().map(Run::phase)
    }

    /// Time by which [`Controller::tick`] is due, ns.
    #[must_use]
    pub const fn next_ns(&self) -> u64 {
        self.ticked_ns.saturating_add(self.timing.heartbeat_ns / 2)
    }

    /// Handles a heartbeat.
    pub fn on_heartbeat(&mut self, now_ns: u64, heartbeat: Heartbeat, out: &mut Vec<Action>) {
        self.step(now_ns, out);
        let (host, incarnation) = (heartbeat.host, heartbeat.incarnation);
        let Some(entry) = self.hosts.get_mut(host as usize) else {
            out.push(Action::Report(FleetEvent::Refused { host, why: "the fleet has no such host".into() }));
            return;
        };
        if heartbeat.version != VERSION {
            let why = format!("it uses message version {}, the controller {VERSION}", heartbeat.version);
            out.push(Action::Report(FleetEvent::Refused { host, why: why.clone() }));
            let order = self.compose(now_ns, &heartbeat, now_ns, Goal::Leave { why });
            out.push(Action::Send(order));
            return;
        }
        if !entry.is_next(incarnation, heartbeat.number) {
            return;
        }
        self.end_silence(now_ns);
        let entry = &mut self.hosts[host as usize];
        let before = entry.member.take();
        let is_new = before.is_none();
        let has_changed = before.as_ref().map(|member| &member.heartbeat.state) != Some(&heartbeat.state);
        let drained = |counters: &Counters| (counters.drained_bytes, counters.copied_events);
        let latest = drained(&heartbeat.counters);
        let has_drained = before.as_ref().is_some_and(|member| drained(&member.heartbeat.counters) != latest);
        if let Some(run) = self.run.as_mut().filter(|_| has_drained) {
            run.drained(now_ns, self.timing.finish_ns);
        }
        entry.member = Some(Membership::new(heartbeat, now_ns, before));
        if is_new {
            out.push(Action::Report(FleetEvent::Joined(host)));
        }
        if has_changed {
            self.progress(now_ns, host, out);
        }
        if self.has_changed {
            self.order_changes(now_ns, out);
        } else {
            self.order(now_ns, host, out);
        }
    }

    /// Handles the end of a host's connection. The lease still runs, because the host may be alive.
    pub fn on_closed(&mut self, now_ns: u64, host: HostId, out: &mut Vec<Action>) {
        self.step(now_ns, out);
        let member = self.hosts.get_mut(host as usize).and_then(|entry| entry.member.as_mut());
        if let Some(member) = member {
            member.is_closed = true;
            out.push(Action::Report(FleetEvent::Closed(host)));
        }
    }

    /// Orders all hosts to end their parts and exit.
    pub fn shut_down(&mut self, now_ns: u64, why: &str, out: &mut Vec<Action>) {
        self.step(now_ns, out);
        self.shutdown = Some(why.to_owned());
        self.has_changed = true;
        self.order_changes(now_ns, out);
    }

    /// Expires leases and deadlines. Due at [`Controller::next_ns`].
    pub fn tick(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        self.step(now_ns, out);
        let mut lost = Vec::new();
        let before_ns = self.ticked_ns;
        self.ticked_ns = before_ns.max(now_ns);
        let (timing, latest_ns) = (self.timing, self.latest_ns().unwrap_or_default());
        for (host, entry) in (0..).zip(&mut self.hosts) {
            let over = entry.member.take_if(|member| member.is_over(now_ns, latest_ns, &timing));
            if let Some(member) = over {
                lost.push((host, now_ns.saturating_sub(member.received_ns)));
            }
        }
        for (host, silent_ns) in lost {
            out.push(Action::Report(FleetEvent::Lost { host, silent_ns }));
            self.end_part(now_ns, host, PartEnd::Lost, out);
        }
        self.report_silence(now_ns, out);
        if self.is_silent {
            self.run.iter_mut().for_each(|run| run.extend(now_ns.saturating_sub(before_ns)));
        }
        self.advance(now_ns, out);
        self.order_changes(now_ns, out);
    }

    /// When the latest heartbeat of all members arrived, ns; none without members.
    fn latest_ns(&self) -> Option<u64> {
        self.hosts.iter().filter_map(|entry| entry.member.as_ref()).map(|member| member.received_ns).max()
    }

    /// Reports once that no member is heard. Meanwhile the deadlines of a run stand still.
    fn report_silence(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        let members = self.hosts.iter().filter_map(|entry| entry.member.as_ref());
        let latest_ns = members.map(|member| member.lease_ns).max();
        let silent_ns = latest_ns.map_or(0, |latest_ns| now_ns.saturating_sub(latest_ns));
        let is_silent = silent_ns > self.timing.lease_of_controller_ns();
        if is_silent && !self.is_silent {
            out.push(Action::Report(FleetEvent::Silent(silent_ns)));
        }
        self.is_silent = is_silent;
    }

    /// Extends the leases of all members when one is heard again after a silence of all: others may need up
    /// to the same time again, because TCP doubles its intervals. No longer than they wait for orders.
    fn end_silence(&mut self, now_ns: u64) {
        let Some(latest_ns) = self.latest_ns() else { return };
        let silent_ns = now_ns.saturating_sub(latest_ns);
        if silent_ns <= 2 * self.timing.heartbeat_ns {
            return;
        }
        for member in self.hosts.iter_mut().filter_map(|entry| entry.member.as_mut()) {
            let last_ns = member.received_ns.saturating_add(self.timing.orphan_ns);
            let lease_ns = now_ns.saturating_add(silent_ns).min(last_ns);
            member.lease_ns = member.lease_ns.max(lease_ns);
        }
    }

    /// Extends leases and deadlines after a pause of the controller: heartbeats that have arrived meanwhile
    /// wait to be read.
    fn step(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        let gap_ns = now_ns.saturating_sub(self.stepped_ns);
        self.stepped_ns = self.stepped_ns.max(now_ns);
        if gap_ns <= 2 * self.timing.heartbeat_ns {
            return;
        }
        for member in self.hosts.iter_mut().filter_map(|entry| entry.member.as_mut()) {
            member.lease_ns = member.lease_ns.saturating_add(gap_ns).min(now_ns);
        }
        self.run.iter_mut().for_each(|run| run.extend(gap_ns));
        out.push(Action::Report(FleetEvent::Paused(gap_ns)));
    }

    /// Orders all members, if goals or the view have changed: once, however many hosts were lost.
    fn order_changes(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        for host in 0..self.hosts.len() {
            self.order(now_ns, host as HostId, out);
        }
    }

    /// Orders a member to do what it should.
    fn order(&mut self, now_ns: u64, host: HostId, out: &mut Vec<Action>) {
        let Some(member) = &self.hosts[host as usize].member else { return };
        let (heartbeat, received_ns) = (member.heartbeat.clone(), member.received_ns);
        let goal = match (&self.shutdown, &self.run) {
            (Some(why), _) => Goal::Leave { why: why.clone() },
            (None, Some(run)) => run.goal(host, self.hosts[host as usize].role, &heartbeat.state),
            (None, None) => Goal::Idle,
        };
        let order = self.compose(now_ns, &heartbeat, received_ns, goal);
        out.push(Action::Send(order));
    }

    fn compose(&mut self, now_ns: u64, heartbeat: &Heartbeat, received_ns: u64, goal: Goal) -> Order {
        self.orders += 1;
        Order {
            controller: self.id,
            host: heartbeat.host,
            incarnation: heartbeat.incarnation,
            number: self.orders,
            echo_ns: heartbeat.sent_ns,
            received_ns,
            sent_ns: now_ns,
            goal,
            epoch: self.view.epoch,
            view: self.update_since(heartbeat.epoch),
        }
    }

    /// What a host with a view of `epoch` lacks.
    fn update_since(&self, epoch: u64) -> Option<Update> {
        if epoch == self.view.epoch {
            return None;
        }
        let first = self.view.epoch - self.changes.len() as u64;
        let known = epoch.checked_sub(first).and_then(|known| usize::try_from(known).ok());
        let changes = known.and_then(|known| self.changes.get(known..));
        Some(match changes {
            Some(changes) => Update::Changes { run: self.view.run, from: epoch, changes: changes.to_vec() },
            None => Update::Whole(self.view.clone()),
        })
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
