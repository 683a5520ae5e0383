//! Figures of all recorders of a recording, for the live page.
//!
//! Pure: the controller's reports and its time are arguments. Rates follow from the clocks of the hosts,
//! because heartbeats arrive late and irregularly. A host that was lost keeps its last figures.
mod host;

use keepup_results::Count;
use keepup_results::live::{FleetFlow, FleetHostState, FleetMove, FleetNow};
use keepup_results::printable::one_line;

use self::host::HostWatch;
use super::members::ViewMembers;
use super::plan::RecordPlan;
use crate::controller::{Controller, FleetEvent, Phase};
use crate::file::FleetFile;
use crate::message::HostId;

/// Observer of a recording on several hosts.
pub struct FleetWatch {
    fleet: String,
    run: u64,
    names: Vec<String>,
    /// Recorders and spares; none for sources.
    hosts: Vec<Option<HostWatch>>,
    moves: Vec<FleetMove>,
    started_ns: Option<u64>,
    members: ViewMembers,
}

impl FleetWatch {
    /// Observes run `run`, in which the hosts of `file` have the parts `plans`.
    #[must_use]
    pub fn new(file: &FleetFile, run: u64, plans: &[Option<RecordPlan>]) -> Self {
        let host = |(entry, plan): (&crate::file::HostEntry, &Option<RecordPlan>)| {
            plan.as_ref().map(|plan| HostWatch::new(&entry.name, entry.role, plan))
        };
        Self {
            fleet: file.name.clone(),
            run,
            names: file.hosts.iter().map(|host| host.name.clone()).collect(),
            hosts: file.hosts.iter().zip(plans).map(host).collect(),
            moves: Vec::new(),
            started_ns: None,
            members: ViewMembers::default(),
        }
    }

    /// Takes an event of the fleet.
    pub fn on_event(&mut self, now_ns: u64, event: &FleetEvent) {
        match event {
            FleetEvent::Phase(run, Phase::Running) if *run == self.run => self.started_ns = Some(now_ns),
            FleetEvent::PartOver(host, end) => {
                if let Some(Some(host)) = self.hosts.get_mut(*host as usize) {
                    host.end(end);
                }
            }
            FleetEvent::Moved { from, to, .. } => {
                let (from, to) = (self.name(*from), to.map(|to| self.name(to)));
                self.moves.push(FleetMove { from, to, at_unix_ns: now_ns });
            }
            _ => {}
        }
    }

    /// Takes the latest reports. Call it after each turn of the controller: the reports of a lost host are no
    /// longer available.
    pub fn observe(&mut self, controller: &Controller) {
        let view = controller.view();
        self.members.update(view);
        for (host, watch) in (0..).zip(&mut self.hosts) {
            let has_streams = view.run == self.run && self.members.has(host);
            if let Some(watch) = watch {
                watch.observe(self.run, controller.report_of(host), has_streams);
            }
        }
    }

    /// Figures at `now_ns`. Rates are averages since the last call.
    pub fn sample(&mut self, now_ns: u64) -> FleetNow {
        let has_started = self.started_ns.is_some();
        let seconds = self.started_ns.map_or(0.0, |start| now_ns.saturating_sub(start) as f64 / 1e9);
        let mut now =
            FleetNow { t_unix_ns: now_ns, seconds, fleet: self.fleet.clone(), ..FleetNow::default() };
        let mut reported = Vec::new();
        for watch in self.hosts.iter_mut().flatten() {
            let host = watch.sample(now_ns, has_started);
            add(&mut now.flow, &host.flow);
            now.failures.extend(watch.failures(&host));
            now.warnings.extend(watch.loss(&host));
            reported.extend(watch.warnings(&host));
            now.hosts.push(host);
        }
        let spares = now.hosts.iter().filter(|host| host.state == FleetHostState::Reserve).count();
        now.warnings.extend(reported);
        now.warnings.extend(self.moves.iter().map(ToString::to_string));
        if !self.moves.is_empty() && spares == 0 {
            now.warnings.push("no spare is left".to_owned());
        }
        now.moves.clone_from(&self.moves);
        now
    }

    fn name(&self, host: HostId) -> String {
        self.names.get(host as usize).cloned().unwrap_or_default()
    }
}

/// Adds the counts of a host to those of all.
fn add(sum: &mut FleetFlow, host: &FleetFlow) {
    let plus = |a: Count, b: Count| Count {
        events: a.events.saturating_add(b.events),
        bytes: a.bytes.saturating_add(b.bytes),
    };
    sum.received = plus(sum.received, host.received);
    sum.durable = plus(sum.durable, host.durable);
    sum.received_bytes_per_second += host.received_bytes_per_second;
    sum.durable_bytes_per_second += host.durable_bytes_per_second;
    sum.received_events_per_second += host.received_events_per_second;
    for (sum, host) in [
        (&mut sum.missing, &host.missing),
        (&mut sum.rejected, &host.rejected),
        (&mut sum.foreign, &host.foreign),
    ] {
        for (name, count) in host {
            let all = sum.entry(name.clone()).or_default();
            *all = all.saturating_add(*count);
        }
    }
    sum.missing_events = sum.missing_events.saturating_add(host.missing_events);
    sum.connected_streams = sum.connected_streams.saturating_add(host.connected_streams);
    sum.ended_streams = sum.ended_streams.saturating_add(host.ended_streams);
}

/// A text of a host with its name.
fn line(host: &str, text: &str) -> String {
    format!("{host}: {}", one_line(text))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
