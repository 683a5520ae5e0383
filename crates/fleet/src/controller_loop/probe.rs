//! Measures the time from a command to all hosts until the last answer.
//!
//! A probe is a run with an invalid plan: every host refuses it, and the run ends with the last refusal.
use keepup_measure::clock::Clock;

use super::{ControllerEvent, ControllerLoop};
use crate::control::Request;
use crate::controller::{FleetEvent, PartEnd, RunKind};
use crate::file::FleetFile;
use crate::link::ControllerLink;

/// Number of commands of a probe.
const ROUNDS: usize = 50;

/// A running probe and the request that it will answer.
#[derive(Debug)]
pub struct Probe {
    request: Request,
    plans: Vec<Option<String>>,
    run: u64,
    sent_ns: u64,
    times_ns: Vec<u64>,
}

impl Probe {
    /// Sends the first command. If that is not possible, answers the request and returns none.
    pub fn begin<L: ControllerLink, C: Clock>(
        lead: &mut ControllerLoop<L, C>,
        file: &FleetFile,
        request: Request,
    ) -> Option<Self> {
        let status = lead.status(file);
        let plan = |is_member: bool| is_member.then(|| "probe".to_owned());
        let plans: Vec<_> = status.hosts.iter().map(|host| plan(host.report.is_some())).collect();
        if plans.iter().all(Option::is_none) {
            request.answer("{}".to_owned());
            return None;
        }
        // A host ignores the number of an earlier run.
        let run = lead.now_ns();
        Self { request, plans, run, sent_ns: 0, times_ns: Vec::new() }.send(lead)
    }

    fn send<L: ControllerLink, C: Clock>(mut self, lead: &mut ControllerLoop<L, C>) -> Option<Self> {
        self.run += 1;
        self.sent_ns = lead.now_ns();
        match lead.start_run((self.run, RunKind::Recording), self.plans.clone()) {
            // A host that was lost since the first command is absent, and does not answer.
            Ok(events) if !self.has_failed(&events) => Some(self),
            Ok(_) | Err(_) => {
                self.request.answer("{}".to_owned());
                None
            }
        }
    }

    /// Whether a host has not answered: the part of one that has answered ends with its refusal.
    fn has_failed(&self, events: &[ControllerEvent]) -> bool {
        let is_missing = |event: &ControllerEvent| match event {
            ControllerEvent::Fleet(FleetEvent::PartOver(_, end)) => !matches!(end, PartEnd::Failed(_)),
            _ => false,
        };
        events.iter().any(is_missing)
    }

    /// Handles events, and sends the next command or the answer. Returns none when the probe has ended.
    pub fn follow<L: ControllerLink, C: Clock>(
        mut self,
        lead: &mut ControllerLoop<L, C>,
        events: &[ControllerEvent],
    ) -> Option<Self> {
        let is_over = |event: &ControllerEvent| match event {
            ControllerEvent::Fleet(FleetEvent::Over { run, .. }) => *run == self.run,
            _ => false,
        };
        if self.has_failed(events) {
            self.request.answer("{}".to_owned());
            return None;
        }
        if !events.iter().any(is_over) {
            return Some(self);
        }
        self.times_ns.push(lead.now_ns().saturating_sub(self.sent_ns));
        if self.times_ns.len() < ROUNDS {
            return self.send(lead);
        }
        self.times_ns.sort_unstable();
        let hosts = self.plans.iter().flatten().count();
        let (median_ns, max_ns) = (self.times_ns[ROUNDS / 2], self.times_ns[ROUNDS - 1]);
        let answer = serde_json::json!({
            "rounds": ROUNDS, "hosts": hosts, "median_ns": median_ns, "max_ns": max_ns,
        });
        self.request.answer(answer.to_string());
        None
    }
}
