//! Trials on the hosts of a fleet, one after the other.
use std::collections::BTreeSet;

use keepup_error::Cause;
use keepup_fleet::FleetError;
use keepup_fleet::controller::{FleetEvent, PartEnd, RunKind};
use keepup_fleet::controller_loop::ControllerEvent;
use keepup_fleet::jobs;
use keepup_fleet::message::HostId;
use keepup_fleet::qualify::Trials;
use keepup_fleet::trial::{Deadline, EndedPart, HostPlan, TrialEnd};
use keepup_plan::Profile;
use keepup_plan::units::Bytes;

use super::events::Reporter;
use super::up::{Session, TURN};
use crate::exit::usage;
use crate::output::log;

/// The detector of a trial.
pub(super) struct Detector<'a> {
    /// Name or path of its profile.
    pub(super) profile: &'a str,
    /// Number of streams, if not the profile's.
    pub(super) streams: Option<u32>,
    /// Payload of an event, if not the profile's.
    pub(super) event_bytes: Option<u64>,
}

impl Detector<'_> {
    /// Its profile, for one volume: volumes are those of the hosts.
    pub(super) fn load(&self) -> anyhow::Result<Profile> {
        let mut profile = keepup_plan::load(self.profile)?;
        if let Some(bytes) = self.event_bytes {
            profile = profile.with_events_of(Bytes(bytes));
        }
        if let Some(streams) = self.streams {
            profile = profile.with_streams(streams);
        }
        let profile = profile.on_volumes(1);
        profile.validate().map_err(|invalid| usage(Cause::of(&invalid)))?;
        Ok(profile)
    }
}

/// Runs trials on a fleet.
pub(super) struct FleetTrials<'a, 'b> {
    session: &'a mut Session,
    reporter: &'a mut Reporter<'b>,
    /// Number of the latest run.
    run: u64,
    /// Whether Ctrl-C or `down` ends it.
    is_ending: bool,
}

impl<'a, 'b> FleetTrials<'a, 'b> {
    pub(super) fn new(session: &'a mut Session, reporter: &'a mut Reporter<'b>) -> Self {
        Self { session, reporter, run: 0, is_ending: false }
    }

    /// Whether Ctrl-C or `down` has ended a trial.
    pub(super) const fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Waits until all hosts have joined or were given up.
    pub(super) fn gather(&mut self) -> anyhow::Result<()> {
        while let Some(events) = self.session.joining("run trials")? {
            events.iter().for_each(|event| self.reporter.report(event));
        }
        Ok(())
    }

    fn turn(&mut self) -> Vec<ControllerEvent> {
        let events = self.session.lead.turn(TURN);
        events.iter().for_each(|event| self.reporter.report(event));
        events
    }

    /// Runs a trial with these parts of the hosts at the rate `asked`, bytes per second.
    pub(super) fn trial(
        &mut self,
        plans: &[Option<HostPlan>],
        asked: Option<f64>,
    ) -> anyhow::Result<TrialEnd> {
        let texts =
            plans.iter().map(|plan| plan.as_ref().map(|plan| jobs::encode(jobs::TRIAL, plan)).transpose());
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let before = self.session.lead.status(&self.session.file).traffic_bytes();
        let begin_ns = self.session.lead.now_ns();
        let mut ends: Vec<Option<PartEnd>> = vec![None; plans.len()];
        self.run += 1;
        let started = self.session.lead.start_run((self.run, RunKind::Trial), texts);
        let mut events = started.map_err(|error| anyhow::anyhow!("cannot start the trial: {error}"))?;
        events.iter().for_each(|event| self.reporter.report(event));
        let mut deadline = Deadline::new(self.run, plans, &self.session.file.timing);
        let mut late = BTreeSet::new();
        while !self.take(&events, plans, &mut ends) {
            let now_ns = self.session.lead.now_ns();
            fleet_events(&events).for_each(|event| deadline.on_event(now_ns, event));
            let was_ending = self.is_ending;
            self.watch_for_end()?;
            if self.is_ending && !was_ending {
                log("ending the trial");
                events = self.session.lead.finish();
            } else if !self.is_ending && deadline.expires(now_ns) {
                late = running_recorders(plans, &ends);
                let names: Vec<&str> = late.iter().map(|host| self.name(*host)).collect();
                log(&format!("warning: ending the trial: not ended in time: {}", names.join(", ")));
                events = self.session.lead.finish();
            } else {
                events.clear();
            }
            events.extend(self.turn());
        }
        let elapsed_s = self.session.lead.now_ns().saturating_sub(begin_ns) as f64 / 1e9;
        let control = self.session.lead.status(&self.session.file).traffic_bytes().saturating_sub(before);
        let controller = self.session.lead.controller();
        let parts = (0..).zip(plans).zip(&ends).filter_map(|((host, plan), end)| {
            let clock = controller.heartbeat_of(host).and_then(|heartbeat| heartbeat.clock);
            let is_late = late.contains(&host);
            Some(EndedPart { host, plan: plan.as_ref()?, end: end.as_ref(), is_late, clock })
        });
        let parts: Vec<EndedPart<'_>> = parts.collect();
        Ok(TrialEnd::new(&self.session.file, asked, &parts, control, elapsed_s))
    }

    /// Takes the ends of parts from `events`; returns whether the run is over.
    fn take(
        &self,
        events: &[ControllerEvent],
        plans: &[Option<HostPlan>],
        ends: &mut [Option<PartEnd>],
    ) -> bool {
        for event in events {
            match event {
                ControllerEvent::Fleet(FleetEvent::PartOver(host, end)) => {
                    let index = *host as usize;
                    let other = match plans.get(index) {
                        Some(Some(HostPlan::Source(_))) => Some("source"),
                        Some(Some(HostPlan::Drain(_))) => Some("drain host"),
                        _ => None,
                    };
                    if let (Some(role), PartEnd::Failed(why)) = (other, end) {
                        log(&format!("warning: {role} {}: {why}", self.name(*host)));
                    }
                    if let Some(place) = ends.get_mut(index) {
                        *place = Some(end.clone());
                    }
                }
                ControllerEvent::Fleet(FleetEvent::Over { run, why }) if *run == self.run => {
                    why.iter().for_each(|why| log(&format!("warning: the trial ended early: {why}")));
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    fn name(&self, host: HostId) -> &str {
        self.session.file.hosts.get(host as usize).map_or("", |entry| &entry.name)
    }

    /// Notices Ctrl-C and `down`.
    fn watch_for_end(&mut self) -> anyhow::Result<()> {
        // Requests for the status are answered meanwhile, in any case.
        self.is_ending |= self.session.is_down_requested()? || self.session.is_stopped();
        Ok(())
    }
}

fn fleet_events(events: &[ControllerEvent]) -> impl Iterator<Item = &FleetEvent> {
    events.iter().filter_map(|event| match event {
        ControllerEvent::Fleet(event) => Some(event),
        _ => None,
    })
}

/// Recorders whose parts have not ended.
fn running_recorders(plans: &[Option<HostPlan>], ends: &[Option<PartEnd>]) -> BTreeSet<HostId> {
    let all = (0..).zip(plans.iter().zip(ends));
    let open = all.filter(|(_, (plan, end))| matches!(plan, Some(HostPlan::Recorder(_))) && end.is_none());
    open.map(|(host, _)| host).collect()
}

impl Trials for FleetTrials<'_, '_> {
    fn run(&mut self, plans: &[Option<HostPlan>], asked: Option<f64>) -> Result<TrialEnd, FleetError> {
        self.trial(plans, asked).map_err(|error| FleetError::Trial(Cause::new(error.to_string())))
    }

    fn is_stopped(&self) -> bool {
        self.is_ending || self.session.is_stopped()
    }
}
