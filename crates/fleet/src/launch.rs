//! Starts the agent of each host by its command and watches it.
//!
//! An agent's standard input gets its first line and stays open; when it closes, the agent ends. Its standard
//! error is forwarded line by line, within limits. A host that cannot be started is reported, and the others
//! continue.
mod child;

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Receiver, Sender};

use self::child::{Agent, Note};
use crate::link::Waker;
use crate::message::HostId;

/// Interval at which all agents are checked for their exit, ns.
const SWEEP_NS: u64 = 500_000_000;
/// Limit on notes handled in one turn.
const NOTES_PER_TURN: usize = 1_000;

/// An agent to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The host.
    pub host: HostId,
    /// Program and arguments.
    pub command: Vec<String>,
    /// First line for its standard input.
    pub line: String,
}

/// Event of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchEvent {
    /// A line of an agent's standard error.
    Line {
        /// The host.
        host: HostId,
        /// Text without control characters.
        text: String,
    },
    /// An agent could not be started or did not join.
    Failed {
        /// The host.
        host: HostId,
        /// Cause.
        why: String,
    },
    /// An agent that had joined has ended.
    Ended {
        /// The host.
        host: HostId,
        /// Exit status as text: "exit status: 0".
        status: String,
    },
}

/// Limits of a launcher.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Agents that are started at a time.
    pub parallel: usize,
    /// Time in which an agent must join, ns.
    pub join_ns: u64,
}

/// Starts and watches agents.
#[derive(Debug)]
pub struct Launcher {
    waiting: VecDeque<Start>,
    agents: BTreeMap<HostId, Agent>,
    limits: Limits,
    waker: Waker,
    notes: Receiver<(HostId, Note)>,
    sender: Sender<(HostId, Note)>,
    sweep_ns: u64,
}

impl Launcher {
    /// Creates a launcher for these agents; calls `waker` when a turn is due.
    #[must_use]
    pub fn new(starts: Vec<Start>, limits: Limits, waker: Waker) -> Self {
        let (sender, notes) = mpsc::channel();
        let (waiting, agents) = (starts.into(), BTreeMap::new());
        Self { waiting, agents, limits, waker, notes, sender, sweep_ns: 0 }
    }

    /// Starts agents within the limits, and appends events to `out`. To be called regularly.
    pub fn turn(&mut self, now_ns: u64, out: &mut Vec<LaunchEvent>) {
        let mut ending = Vec::new();
        for (host, note) in self.notes.try_iter().take(NOTES_PER_TURN) {
            let agent = self.agents.get_mut(&host);
            match (note, agent) {
                (Note::Line(text), _) => out.push(LaunchEvent::Line { host, text }),
                (Note::Input(input), Some(agent)) => agent.input = Some(input),
                (Note::Silent, Some(agent)) => {
                    agent.looks_left = 0;
                    ending.push(host);
                }
                (Note::Input(_) | Note::Silent, None) => {}
            }
        }
        if now_ns >= self.sweep_ns {
            self.sweep_ns = now_ns.saturating_add(SWEEP_NS);
            ending = self.agents.keys().copied().collect();
        }
        ending.into_iter().for_each(|host| self.reap(host, out));
        self.expire(now_ns, out);
        self.start(now_ns, out);
    }

    /// Reports an agent that has ended.
    fn reap(&mut self, host: HostId, out: &mut Vec<LaunchEvent>) {
        let Some(agent) = self.agents.get_mut(&host) else { return };
        let status = match agent.child.try_wait() {
            Ok(None) => return,
            // Wait for its last lines, but not forever: another process may hold its standard error open.
            Ok(Some(_)) if agent.looks_left > 0 => {
                agent.looks_left -= 1;
                return;
            }
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let agent = self.agents.remove(&host);
        match agent {
            Some(Agent { join_by_ns: Some(_), .. }) => {
                let why = format!("its program ended before it joined: {status}");
                out.push(LaunchEvent::Failed { host, why });
            }
            // An agent that was given up is already reported.
            Some(agent) if !agent.is_given_up => out.push(LaunchEvent::Ended { host, status }),
            Some(_) | None => {}
        }
    }

    /// Gives up agents that have not joined in time.
    fn expire(&mut self, now_ns: u64, out: &mut Vec<LaunchEvent>) {
        for (&host, agent) in &mut self.agents {
            if agent.join_by_ns.is_some_and(|by_ns| now_ns >= by_ns) {
                agent.give_up();
                let why = format!("it did not join within {} s", self.limits.join_ns / 1_000_000_000);
                out.push(LaunchEvent::Failed { host, why });
            }
        }
    }

    fn start(&mut self, now_ns: u64, out: &mut Vec<LaunchEvent>) {
        while self.agents.values().filter(|agent| agent.join_by_ns.is_some()).count() < self.limits.parallel {
            let Some(Start { host, command, line }) = self.waiting.pop_front() else { return };
            let join_by_ns = now_ns.saturating_add(self.limits.join_ns);
            let (sender, waker) = (self.sender.clone(), self.waker.clone());
            let report = move |note| {
                // The launcher may have been dropped.
                drop(sender.send((host, note)));
                waker.wake();
            };
            match child::start(&command, line, join_by_ns, report) {
                Ok(agent) => drop(self.agents.insert(host, agent)),
                Err(why) => out.push(LaunchEvent::Failed { host, why }),
            }
        }
    }

    /// The agent of a host has joined.
    pub fn joined(&mut self, host: HostId) {
        if let Some(agent) = self.agents.get_mut(&host) {
            agent.join_by_ns = None;
        }
    }

    /// Whether agents are still to be started or to join.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        !self.waiting.is_empty() || self.agents.values().any(|agent| agent.join_by_ns.is_some())
    }

    /// Number of agents that have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.agents.len()
    }

    /// Starts no more agents.
    pub fn start_no_more(&mut self) {
        self.waiting.clear();
    }

    /// Closes the standard input of all agents, which ends them; starts no more.
    pub fn close(&mut self) {
        self.start_no_more();
        for agent in self.agents.values_mut() {
            (agent.input, agent.join_by_ns) = (None, None);
        }
    }
}

impl Drop for Launcher {
    /// Kills the remaining agents.
    fn drop(&mut self) {
        self.agents.values_mut().for_each(Agent::give_up);
        self.agents.values_mut().for_each(|agent| drop(agent.child.wait()));
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
