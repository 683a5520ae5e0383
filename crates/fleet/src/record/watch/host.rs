//! Figures of one recorder. The controller has limited what a host reports.
use std::collections::BTreeMap;

use keepup_results::Count;
use keepup_results::live::{FleetFlow, FleetHost, FleetHostState, FleetPool, FleetVolume};
use keepup_results::printable::one_line;

use super::line;
use crate::clock::Offset;
use crate::controller::{MemberReport, PartEnd, limited_causes};
use crate::message::{Counters, Health, HostState, Role, VolumeHealth};
use crate::record::outcome::RecordOutcome;
use crate::record::plan::RecordPlan;

/// Observer of a recorder.
pub(super) struct HostWatch {
    name: String,
    role: Role,
    /// Directories of the recording.
    paths: Vec<String>,
    /// Arrival of the latest heartbeat, ns.
    heard_ns: Option<u64>,
    clock: Option<Offset>,
    is_member: bool,
    /// Whether its latest state is the end of its part.
    is_ending: bool,
    has_streams: bool,
    had_streams: bool,
    latest: Figures,
    sampled: Figures,
    rates: Rates,
    missing: BTreeMap<String, u64>,
    health: Option<Health>,
    /// End of its part, without the result.
    end: Option<PartEnd>,
}

/// Figures of the run, with the times by the host's clock at which they were sent, ns.
#[derive(Clone, Copy, Default)]
struct Figures {
    sent_ns: u64,
    counters: Counters,
    health_ns: u64,
    durable_bytes: u64,
}

#[derive(Clone, Copy, Default)]
struct Rates {
    received: f64,
    durable: f64,
    events: f64,
}

impl HostWatch {
    pub(super) fn new(name: &str, role: Role, plan: &RecordPlan) -> Self {
        let path = |volume: &std::path::PathBuf| volume.join(&plan.name).display().to_string();
        Self {
            name: name.to_owned(),
            role,
            paths: plan.volumes.iter().map(path).collect(),
            heard_ns: None,
            clock: None,
            is_member: false,
            is_ending: false,
            has_streams: false,
            had_streams: false,
            latest: Figures::default(),
            sampled: Figures::default(),
            rates: Rates::default(),
            missing: BTreeMap::new(),
            health: None,
            end: None,
        }
    }

    pub(super) fn end(&mut self, end: &PartEnd) {
        self.end = Some(match end {
            PartEnd::Finished(text) => match RecordOutcome::parse(text) {
                Ok(outcome) => {
                    self.finish(&outcome);
                    PartEnd::Finished(String::new())
                }
                Err(why) => PartEnd::Failed(why),
            },
            PartEnd::Failed(why) => PartEnd::Failed(one_line(why)),
            PartEnd::Absent | PartEnd::Lost | PartEnd::TimedOut(_) => end.clone(),
        });
    }

    /// Takes the final figures from the result. Its last heartbeats may have arrived between two calls of
    /// [`HostWatch::observe`], and then the figures in them were not seen.
    fn finish(&mut self, outcome: &RecordOutcome) {
        let Figures { counters, durable_bytes, .. } = &mut self.latest;
        (counters.events, counters.bytes) = (outcome.received_events, outcome.received_bytes);
        (counters.durable_events, *durable_bytes) = (outcome.durable_events, outcome.durable_bytes);
        counters.connected_streams = 0;
        self.missing = limited_causes(&outcome.missing);
    }

    pub(super) fn observe(&mut self, run: u64, report: Option<MemberReport<'_>>, has_streams: bool) {
        self.has_streams = has_streams;
        self.had_streams |= has_streams;
        let Some(MemberReport { heartbeat, received_ns, health }) = report else {
            (self.is_member, self.is_ending) = (false, false);
            return;
        };
        self.heard_ns = Some(received_ns);
        self.clock = heartbeat.clock.or(self.clock);
        self.is_member = true;
        let state = &heartbeat.state;
        self.is_ending = matches!(state, HostState::Finishing { .. } | HostState::Finished { .. });
        // The figures of a result are final. A host that was lost and is back counts from zero.
        let is_final = matches!(self.end, Some(PartEnd::Finished(_) | PartEnd::Lost | PartEnd::Absent));
        if state.run() != Some(run) || is_final {
            return;
        }
        (self.latest.sent_ns, self.latest.counters) = (heartbeat.sent_ns, heartbeat.counters);
        if let Some((sent_ns, health)) = health.filter(|(sent_ns, _)| *sent_ns != self.latest.health_ns) {
            (self.latest.health_ns, self.latest.durable_bytes) = (*sent_ns, health.durable_bytes);
            self.missing.clone_from(&health.missing);
            self.health = Some(health.clone());
        }
    }

    pub(super) fn sample(&mut self, now_ns: u64, has_started: bool) -> FleetHost {
        self.take_rates();
        let (Figures { counters, durable_bytes, .. }, health) = (&self.latest, &self.health);
        let state = self.fleet_state(has_started);
        let connected = if self.has_streams { counters.connected_streams } else { 0 };
        let missing = self.missing.clone();
        let flow = FleetFlow {
            received: Count { events: counters.events, bytes: counters.bytes },
            durable: Count { events: counters.durable_events, bytes: *durable_bytes },
            received_bytes_per_second: self.rates.received,
            durable_bytes_per_second: self.rates.durable,
            received_events_per_second: self.rates.events,
            missing_events: missing.values().fold(0, |sum, events| sum.saturating_add(*events)),
            missing,
            rejected: health.as_ref().map(|health| health.rejected.clone()).unwrap_or_default(),
            foreign: health.as_ref().map(|health| health.foreign.clone()).unwrap_or_default(),
            connected_streams: connected.into(),
            ended_streams: counters.ended_streams.into(),
        };
        FleetHost {
            name: self.name.clone(),
            role: if self.role == Role::Spare { "spare" } else { "recorder" }.to_owned(),
            state,
            why: self.end.as_ref().and_then(PartEnd::failure).map(|why| one_line(&why)),
            pool: health.as_ref().map(|health| pool(health, self.rates.received)),
            volumes: health.as_ref().map(|health| self.volumes(health)).unwrap_or_default(),
            flow,
            clock_offset_seconds: self.clock.map(|clock| clock.ns as f64 / 1e9),
            clock_error_seconds: self.clock.map(|clock| seconds(clock.error_ns)),
            heartbeat_age_seconds: self.heard_ns.map(|then_ns| seconds(now_ns.saturating_sub(then_ns))),
        }
    }

    /// Rates since the last call; those of a host from which nothing new has arrived stay until it is lost.
    fn take_rates(&mut self) {
        let (latest, sampled) = (&self.latest, &mut self.sampled);
        let passed_s = seconds(latest.sent_ns.saturating_sub(sampled.sent_ns));
        if passed_s > 0.0 {
            let (now, before) = (latest.counters, sampled.counters);
            self.rates.received = now.bytes.saturating_sub(before.bytes) as f64 / passed_s;
            self.rates.events = now.events.saturating_sub(before.events) as f64 / passed_s;
            (sampled.sent_ns, sampled.counters) = (latest.sent_ns, now);
        }
        let passed_s = seconds(latest.health_ns.saturating_sub(sampled.health_ns));
        if passed_s > 0.0 {
            let gained = latest.durable_bytes.saturating_sub(sampled.durable_bytes);
            self.rates.durable = gained as f64 / passed_s;
            (sampled.health_ns, sampled.durable_bytes) = (latest.health_ns, latest.durable_bytes);
        }
        if self.end.is_some() || !self.is_member {
            self.rates = Rates::default();
        }
    }

    fn fleet_state(&self, has_started: bool) -> FleetHostState {
        match &self.end {
            Some(PartEnd::Finished(_)) => FleetHostState::Ended,
            Some(PartEnd::Failed(_) | PartEnd::TimedOut(_)) => FleetHostState::Failed,
            Some(PartEnd::Lost) => FleetHostState::Lost,
            Some(PartEnd::Absent) => FleetHostState::Missing,
            None if !self.is_member => FleetHostState::Missing,
            None if self.is_ending => FleetHostState::Ending,
            None if self.has_streams => FleetHostState::Recording,
            None if has_started && self.role == Role::Spare => FleetHostState::Reserve,
            None => FleetHostState::Preparing,
        }
    }

    fn volumes(&self, health: &Health) -> Vec<FleetVolume> {
        let volume = |(path, now): (&String, &VolumeHealth)| FleetVolume {
            path: path.clone(),
            written_bytes: now.written_bytes,
            stalled_seconds: seconds(now.oldest_ns),
            longest_seconds: seconds(now.longest_ns.max(now.oldest_ns)),
            failed: now.has_failed,
            free_bytes: now.free_bytes,
            total_bytes: now.total_bytes,
        };
        self.paths.iter().zip(&health.volumes).map(volume).collect()
    }

    /// What has failed. A spare without streams is not needed to record.
    pub(super) fn failures(&self, host: &FleetHost) -> Vec<String> {
        let mut failures = Vec::new();
        if self.role == Role::Recorder || self.had_streams {
            failures.extend(self.loss(host));
        }
        let failed = host.volumes.iter().filter(|volume| volume.failed);
        failures.extend(failed.map(|volume| format!("{}: {} takes no more data", self.name, volume.path)));
        let rejected = host.flow.rejected.iter();
        failures.extend(
            rejected.map(|(why, count)| format!("{}: {count} not recorded, rejected as {why}", self.name)),
        );
        failures
    }

    /// Why the host no longer records; none if it does.
    pub(super) fn loss(&self, host: &FleetHost) -> Option<String> {
        let what = match host.state {
            FleetHostState::Lost => "is lost",
            FleetHostState::Failed => "has failed",
            FleetHostState::Missing if self.end.is_some() => "is missing",
            _ => return None,
        };
        Some(format!("{} {what}: {}", self.name, host.why.as_deref().unwrap_or("unknown cause")))
    }

    /// Warnings of the host itself. After the end of its part, only its missing events are reported.
    pub(super) fn warnings(&self, host: &FleetHost) -> Vec<String> {
        let missing = host.flow.missing_events;
        match (&self.end, &self.health) {
            (None, Some(health)) => health.warnings.iter().map(|text| line(&self.name, text)).collect(),
            (Some(_), _) if missing > 0 => vec![format!("{}: {missing} events are missing", self.name)],
            _ => Vec::new(),
        }
    }
}

fn pool(health: &Health, bytes_per_second: f64) -> FleetPool {
    let free_bytes = health.pool_bytes.saturating_sub(health.pool_used_bytes);
    FleetPool {
        bytes: health.pool_bytes,
        used_bytes: health.pool_used_bytes,
        room_seconds: (bytes_per_second > 0.0).then(|| free_bytes as f64 / bytes_per_second),
        wait_seconds: seconds(health.pool_wait_ns),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
