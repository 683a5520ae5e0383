//! Deadline of a trial: a recorder may hang while its agent still sends heartbeats.
use std::time::Duration;

use super::plan::{HostPlan, ReadBack, RecorderPlan};
use crate::controller::{FleetEvent, Phase};
use crate::timing::Timing;

/// Time that a recorder may take beyond its plan, seconds: a full pool of several GB may go to a slow volume,
/// and files are removed (our choice).
const MARGIN_S: f64 = 300.0;
/// Time to read back a whole recording, as a multiple of the time of the trial (our choice).
const READ_BACK_FACTOR: f64 = 2.0;

/// By when the recorders of a trial must have ended their parts. Preparation and the end on request have
/// their own deadlines, see [`Timing`].
#[derive(Clone, Debug)]
pub struct Deadline {
    run: u64,
    /// Time from the start order, ns.
    longest_ns: u64,
    /// Set while recorders run, ns.
    until_ns: Option<u64>,
}

impl Deadline {
    /// Deadline of trial `run` with these parts.
    #[must_use]
    pub fn new(run: u64, plans: &[Option<HostPlan>], timing: &Timing) -> Self {
        let recorders = plans.iter().flatten().filter_map(|plan| match plan {
            HostPlan::Recorder(plan) => Some(longest_s(plan)),
            HostPlan::Source(_) | HostPlan::Drain(_) => None,
        });
        let longest = Duration::try_from_secs_f64(recorders.fold(0.0, f64::max)).unwrap_or(Duration::MAX);
        let longest_ns = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Self { run, longest_ns: longest_ns.saturating_add(timing.start_delay_ns), until_ns: None }
    }

    /// Handles an event at `now_ns` of the controller's clock. A pause of the controller extends the
    /// deadline.
    pub fn on_event(&mut self, now_ns: u64, event: &FleetEvent) {
        match event {
            FleetEvent::Phase(run, phase) if *run == self.run => {
                let is_running = *phase == Phase::Running;
                self.until_ns = is_running.then(|| now_ns.saturating_add(self.longest_ns));
            }
            FleetEvent::Paused(ns) => {
                self.until_ns = self.until_ns.map(|until_ns| until_ns.saturating_add(*ns));
            }
            _ => {}
        }
    }

    /// Whether the deadline has passed at `now_ns`; true once.
    pub fn expires(&mut self, now_ns: u64) -> bool {
        self.until_ns.take_if(|until_ns| now_ns >= *until_ns).is_some()
    }
}

/// Longest time for a part, seconds.
fn longest_s(plan: &RecorderPlan) -> f64 {
    let read_back_s = match plan.check {
        ReadBack::None => 0.0,
        ReadBack::Sample(seconds) => seconds,
        ReadBack::Whole => READ_BACK_FACTOR * plan.seconds,
    };
    plan.seconds + read_back_s + MARGIN_S
}

#[cfg(test)]
#[path = "deadline_tests.rs"]
mod tests;
