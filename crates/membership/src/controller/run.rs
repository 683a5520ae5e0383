//! A run: which hosts take part, and its phases.
//!
//! Hosts prepare; when all are ready, or the time for it is over, the streams are dealt over the recorders
//! and all start at one time. Sources end first, then recorders. A host whose part is over does not return to
//! the run.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;

use super::{Action, Controller, FleetEvent};
use crate::message::{Goal, HostId, HostState, Role};
use crate::placement::{Member, View};
use crate::timing::Timing;

/// What ends a run, and what the loss of a recorder means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// A recording: over when all sources have ended; sources end before recorders. If no host is a source,
    /// because the clients are other programs, it is over when all recorders have ended. The streams of a
    /// lost recorder move to others.
    Recording,
    /// A trial: over when all recorders have ended; recorders end before sources. No stream moves.
    Trial,
    /// Commands: over when all hosts have ended, whatever their roles. There are no streams.
    Commands,
}

impl RunKind {
    /// Phase after `phase`; none after the last.
    const fn next(self, phase: Phase) -> Option<Phase> {
        match (self, phase) {
            (_, Phase::Preparing) => Some(Phase::Running),
            (Self::Recording, Phase::Running) => Some(Phase::FinishingSources),
            (Self::Recording, Phase::FinishingSources) => Some(Phase::FinishingRecorders),
            (Self::Recording, Phase::FinishingRecorders) => Some(Phase::FinishingDrains),
            (Self::Trial | Self::Commands, Phase::Running) => Some(Phase::FinishingRecorders),
            (Self::Trial | Self::Commands, Phase::FinishingRecorders) => Some(Phase::FinishingSources),
            (Self::Trial | Self::Commands, Phase::FinishingSources) | (_, Phase::FinishingDrains) => None,
        }
    }

    /// Whether the end of the hosts of `role` ends the run.
    const fn ends_with(self, role: Role) -> bool {
        match self {
            Self::Recording => matches!(role, Role::Source),
            Self::Trial => role.records(),
            Self::Commands => true,
        }
    }

    /// Phase in which hosts of `role` end their parts: a copy after its original, and in a trial the source
    /// after what it sends to.
    const fn ending_of(self, role: Role) -> Phase {
        match (self, role) {
            (_, Role::Recorder | Role::Spare) => Phase::FinishingRecorders,
            (Self::Recording, Role::Drain) => Phase::FinishingDrains,
            (_, Role::Source | Role::Drain) => Phase::FinishingSources,
        }
    }
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Hosts prepare.
    Preparing,
    /// Streams are recorded.
    Running,
    /// Sources send what is left.
    FinishingSources,
    /// Recorders end their recordings, and drain the rest of them.
    FinishingRecorders,
    /// Drain hosts end their copies.
    FinishingDrains,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::FinishingSources => "ending the source",
            Self::FinishingRecorders => "ending the recording",
            Self::FinishingDrains => "ending the copy",
        })
    }
}

/// How a host's part of the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartEnd {
    /// It finished with this result.
    Finished(String),
    /// It failed with this error.
    Failed(String),
    /// The host was no member when the run began.
    Absent,
    /// The host was lost.
    Lost,
    /// The host did not end a phase in time.
    TimedOut(Phase),
}

impl PartEnd {
    /// Why the host has no result; none if it has finished.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        Some(match self {
            Self::Finished(_) => return None,
            Self::Failed(why) => why.clone(),
            Self::Absent => "it was not in the fleet when the run began".to_owned(),
            Self::Lost => "no heartbeat until its lease expired".to_owned(),
            Self::TimedOut(phase) => format!("it timed out while {phase}"),
        })
    }
}

/// Part of a host.
#[derive(Clone, Debug)]
enum Part {
    /// None.
    Out,
    /// It takes part, by this plan.
    In(String),
    /// It took part.
    Over,
}

/// Why a run cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Another run is not over.
    #[error("run {0} is not over")]
    Busy(u64),
    /// The fleet is shutting down.
    #[error("the fleet is shutting down")]
    ShuttingDown,
}

/// A run that is not over.
#[derive(Clone, Debug)]
pub(super) struct Run {
    number: u64,
    kind: RunKind,
    phase: Phase,
    /// Whether hosts are sources.
    has_sources: bool,
    parts: Vec<Part>,
    /// Where sources reach the recorders that are ready.
    addresses: BTreeMap<HostId, SocketAddr>,
    /// Hosts for which the phase waits.
    waiting: BTreeSet<HostId>,
    /// End of the phase, ns.
    until_ns: u64,
    /// Start, by the controller's clock, ns.
    start_ns: u64,
    /// Whether hosts end without what is only copied.
    is_hurried: bool,
    why: Option<String>,
}

impl Run {
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Extends the deadline.
    pub(super) const fn extend(&mut self, by_ns: u64) {
        self.until_ns = self.until_ns.saturating_add(by_ns);
    }

    /// A recorder has drained more: the end of its part may take as long as that goes on.
    pub(super) fn drained(&mut self, now_ns: u64, finish_ns: u64) {
        if self.phase == Phase::FinishingRecorders && !self.is_hurried {
            self.until_ns = self.until_ns.max(now_ns.saturating_add(finish_ns));
        }
    }

    /// What a host in `state` should do.
    pub(super) fn goal(&self, host: HostId, role: Role, state: &HostState) -> Goal {
        let run = self.number;
        match &self.parts[host as usize] {
            Part::In(plan) => match (self.phase, role) {
                // A host that has the plan needs it no more.
                (Phase::Preparing, _) if state.run() == Some(run) => {
                    Goal::Prepare { run, plan: String::new() }
                }
                (Phase::Preparing, _) => Goal::Prepare { run, plan: plan.clone() },
                (phase, role) if phase == self.kind.ending_of(role) => {
                    Goal::Finish { run, at_once: self.is_hurried }
                }
                // Hosts that were never started have nothing to wait for.
                _ if self.start_ns == 0 => Goal::Finish { run, at_once: true },
                _ => Goal::Run { run, start_ns: self.start_ns },
            },
            Part::Over if state.run() == Some(run) && !state.is_over() => Goal::Finish { run, at_once: true },
            Part::Over | Part::Out => Goal::Idle,
        }
    }

    /// Whether the end of the hosts of `role` ends the run.
    const fn ends_with(&self, role: Role) -> bool {
        match (self.kind, self.has_sources) {
            (RunKind::Recording, false) => role.records(),
            (kind, _) => kind.ends_with(role),
        }
    }

    /// Whether the streams of a lost recorder move.
    const fn streams_move(&self) -> bool {
        matches!((self.kind, self.phase), (RunKind::Recording, Phase::Running | Phase::FinishingSources))
    }

    fn is_in(&self, host: HostId) -> bool {
        matches!(self.parts[host as usize], Part::In(_))
    }

    /// Hosts that take part and have a role for which `is_wanted`.
    fn hosts(&self, roles: &[Role], is_wanted: impl Fn(Role) -> bool) -> BTreeSet<HostId> {
        let all = (0..).zip(roles).filter(|&(host, &role)| self.is_in(host) && is_wanted(role));
        all.map(|(host, _)| host).collect()
    }

    fn enter(&mut self, phase: Phase, waiting: BTreeSet<HostId>, until_ns: u64, out: &mut Vec<Action>) {
        (self.phase, self.waiting, self.until_ns) = (phase, waiting, until_ns);
        out.push(Action::Report(FleetEvent::Phase(self.number, phase)));
    }
}

impl Controller {
    /// Starts run `number`; `plans` has the part of each host, none for hosts without one.
    ///
    /// # Errors
    /// Another run is not over, or the fleet is shutting down.
    pub fn start_run(
        &mut self,
        now_ns: u64,
        (number, kind): (u64, RunKind),
        plans: Vec<Option<String>>,
        out: &mut Vec<Action>,
    ) -> Result<(), StartError> {
        if let Some(run) = &self.run {
            return Err(StartError::Busy(run.number));
        }
        if self.shutdown.is_some() {
            return Err(StartError::ShuttingDown);
        }
        self.step(now_ns, out);
        let mut plans = plans.into_iter();
        let mut absent = Vec::new();
        let mut has_sources = matches!(kind, RunKind::Trial);
        let mut parts = Vec::with_capacity(self.hosts.len());
        for (host, entry) in (0..).zip(&self.hosts) {
            let plan = plans.next().flatten();
            has_sources |= plan.is_some() && entry.role == Role::Source;
            parts.push(match plan {
                Some(plan) if entry.member.is_some() => Part::In(plan),
                Some(_) => {
                    absent.push(host);
                    Part::Over
                }
                None => Part::Out,
            });
        }
        let mut run = Run {
            number,
            kind,
            phase: Phase::Preparing,
            has_sources,
            parts,
            addresses: BTreeMap::new(),
            waiting: BTreeSet::new(),
            until_ns: 0,
            start_ns: 0,
            is_hurried: false,
            why: None,
        };
        let waiting = run.hosts(&self.roles(), |_| true);
        run.enter(Phase::Preparing, waiting, now_ns.saturating_add(self.timing.prepare_ns), out);
        self.run = Some(run);
        out.extend(
            absent.into_iter().map(|host| Action::Report(FleetEvent::PartOver(host, PartEnd::Absent))),
        );
        self.has_changed = true;
        self.advance(now_ns, out);
        self.order_changes(now_ns, out);
        Ok(())
    }

    /// Ends the run early. In the end of a recording: without waiting for drains.
    pub fn finish(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        self.step(now_ns, out);
        let Some(run) = &mut self.run else { return };
        match run.phase {
            Phase::Preparing => {
                run.why.get_or_insert_with(|| "it was ended before it started".to_owned());
                self.finish_parts(now_ns, out);
            }
            Phase::Running => self.finish_parts(now_ns, out),
            Phase::FinishingRecorders if !run.is_hurried => {
                run.is_hurried = true;
                run.until_ns = now_ns.saturating_add(self.timing.finish_ns);
                self.has_changed = true;
            }
            Phase::FinishingSources | Phase::FinishingRecorders | Phase::FinishingDrains => {}
        }
        self.advance(now_ns, out);
        self.order_changes(now_ns, out);
    }

    /// Takes the new state of a member.
    pub(super) fn progress(&mut self, now_ns: u64, host: HostId, out: &mut Vec<Action>) {
        let Some(member) = &self.hosts[host as usize].member else { return };
        let Some(run) = self.run.as_mut().filter(|run| run.is_in(host)) else { return };
        let state = &member.heartbeat.state;
        if state.run() != Some(run.number) {
            if run.phase != Phase::Preparing {
                let why = "it left the run".to_owned();
                self.end_part(now_ns, host, PartEnd::Failed(why), out);
            }
            return;
        }
        match state.clone() {
            HostState::Ready { address, .. } if run.phase == Phase::Preparing => {
                run.waiting.remove(&host);
                run.addresses.extend(address.map(|address| (host, address)));
                self.advance(now_ns, out);
            }
            // Its result follows, but it takes no more events.
            HostState::Finishing { .. } if run.streams_move() && self.view.has(host) => {
                self.move_streams(now_ns, host, out);
            }
            // Only a shutdown of its agent ends a trial here; its result would be that of a shorter trial.
            HostState::Finishing { .. } if (run.kind, run.phase) == (RunKind::Trial, Phase::Running) => {
                self.end_part(now_ns, host, PartEnd::Failed("its agent was asked to end".to_owned()), out);
            }
            HostState::Finished { outcome, .. } => {
                self.end_part(now_ns, host, PartEnd::Finished(outcome), out);
            }
            HostState::Failed { why, .. } => self.end_part(now_ns, host, PartEnd::Failed(why), out),
            _ => {}
        }
    }

    /// Ends the part of a host in the run, if it has one: its streams go to others.
    pub(super) fn end_part(&mut self, now_ns: u64, host: HostId, end: PartEnd, out: &mut Vec<Action>) {
        let Some(run) = self.run.as_mut().filter(|run| run.is_in(host)) else { return };
        run.parts[host as usize] = Part::Over;
        run.waiting.remove(&host);
        let streams_move = run.streams_move();
        out.push(Action::Report(FleetEvent::PartOver(host, end)));
        if streams_move && self.view.has(host) {
            self.move_streams(now_ns, host, out);
        }
        self.advance(now_ns, out);
    }

    /// Gives the slot of `host`, which takes no more events, to a spare, if there is one.
    fn move_streams(&mut self, now_ns: u64, host: HostId, out: &mut Vec<Action>) {
        let spare = (0..self.hosts.len()).map(|index| index as HostId).find_map(|candidate| {
            let is_free = self.hosts[candidate as usize].role == Role::Spare && !self.view.has(candidate);
            is_free.then(|| self.ready_member(candidate)).flatten()
        });
        let Some(change) = self.view.replace(host, spare) else { return };
        self.changes.push(change);
        let (to, epoch) = (spare.map(|member| member.host), self.view.epoch);
        out.push(Action::Report(FleetEvent::Moved { from: host, to, epoch }));
        self.has_changed = true;
        if self.view.recorders() > 0 {
            return;
        }
        if let Some(run) = &mut self.run {
            run.why.get_or_insert_with(|| "no recorder is left".to_owned());
            if run.phase == Phase::Running {
                self.finish_parts(now_ns, out);
            }
        }
    }

    /// A recorder or spare that takes part and has an address.
    fn ready_member(&self, host: HostId) -> Option<Member> {
        let run = self.run.as_ref().filter(|run| run.is_in(host))?;
        let state = &self.heartbeat_of(host)?.state;
        matches!(state, HostState::Ready { .. } | HostState::Running { .. }).then_some(())?;
        Some(Member { host, address: *run.addresses.get(&host)? })
    }

    /// Goes to the next phase when the phase waits for nobody, or its time is over.
    pub(super) fn advance(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        let Some(run) = &mut self.run else { return };
        if !run.waiting.is_empty() && now_ns >= run.until_ns {
            for host in std::mem::take(&mut run.waiting) {
                run.parts[host as usize] = Part::Over;
                out.push(Action::Report(FleetEvent::PartOver(host, PartEnd::TimedOut(run.phase))));
            }
        }
        if !run.waiting.is_empty() {
            return;
        }
        match run.phase {
            Phase::Preparing => self.start(now_ns, out),
            Phase::Running | Phase::FinishingSources | Phase::FinishingRecorders | Phase::FinishingDrains => {
                self.finish_parts(now_ns, out)
            }
        }
    }

    fn start(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        let recorders = (0..self.hosts.len()).map(|host| host as HostId);
        let recorders = recorders.filter(|&host| self.hosts[host as usize].role == Role::Recorder);
        let members: Vec<Member> = recorders.filter_map(|host| self.ready_member(host)).collect();
        let roles = self.roles();
        let Some(run) = &mut self.run else { return };
        let sources = run.hosts(&roles, |role| role == Role::Source);
        let missing = match (members.is_empty(), run.has_sources && sources.is_empty()) {
            _ if run.kind == RunKind::Commands => None,
            (true, _) => Some("no recorder is ready"),
            (false, true) => Some("no source is ready"),
            (false, false) => None,
        };
        let waiting = run.hosts(&roles, |role| run.ends_with(role));
        // A command may have ended while hosts prepared.
        let is_over = run.kind == RunKind::Commands && waiting.is_empty();
        if missing.is_some() || is_over {
            run.why = run.why.take().or_else(|| missing.map(str::to_owned));
            self.finish_parts(now_ns, out);
            return;
        }
        run.start_ns = now_ns.saturating_add(self.timing.start_delay_ns);
        run.enter(Phase::Running, waiting, u64::MAX, out);
        self.view = View::new(run.number, self.view.epoch + 1, &members);
        self.changes.clear();
        self.has_changed = true;
    }

    /// Goes to the next phase, in which hosts end their parts, or ends the run.
    fn finish_parts(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        let until_ns = now_ns.saturating_add(self.timing.finish_ns);
        let roles = self.roles();
        let Some(run) = &mut self.run else { return };
        let from = if run.phase == Phase::Preparing { Phase::Running } else { run.phase };
        let Some(phase) = run.kind.next(from) else { return self.end_run(out) };
        let waiting = run.hosts(&roles, |role| run.kind.ending_of(role) == phase);
        if phase == Phase::FinishingDrains && waiting.is_empty() {
            return self.end_run(out);
        }
        run.enter(phase, waiting, until_ns, out);
        self.has_changed = true;
        self.advance(now_ns, out);
    }

    fn end_run(&mut self, out: &mut Vec<Action>) {
        let Some(run) = self.run.take() else { return };
        out.push(Action::Report(FleetEvent::Over { run: run.number, why: run.why }));
        self.has_changed = true;
    }

    fn roles(&self) -> Vec<Role> {
        self.hosts.iter().map(|entry| entry.role).collect()
    }

    /// Timing of the fleet.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }
}
