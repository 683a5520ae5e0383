//! Parts of the hosts in a trial.
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_plan::Profile;
use keepup_recorder::{RecorderConfig, Target};
use keepup_workload::detector::recorder_config;
use keepup_workload::net::SOURCE_PORT;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::file::{FleetFile, HostEntry};
use crate::message::{HostId, Role};
use crate::placement::shares;
use crate::record::drain::{DrainPlan, Sinks};
use crate::record::{RecordPlan, RecorderSettings};

/// How long a trial may be, seconds: a year.
pub(super) const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// What a trial does.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The detector, with all streams. If it has a drain and recorders have volumes, they drain.
    pub profile: Profile,
    /// Rate of all streams together.
    pub rate: TrialRate,
    /// How long the sources send.
    pub time: Duration,
    /// Drop sealed blocks instead of writing them.
    pub to_null: bool,
    /// What is read back at the end.
    pub check: ReadBack,
    /// End the sources of a recorder soon after its first loss.
    pub cut_off: bool,
    /// Hosts that take no part.
    pub without: BTreeSet<HostId>,
}

/// Rate of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialRate {
    /// That of the profile.
    Profile,
    /// Bytes per second, mean over bursts.
    Bytes(f64),
    /// As fast as the path takes it; at most this many bytes of all streams together, if they are limited.
    Max(Option<f64>),
}

/// What a recorder reads back and verifies after a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadBack {
    /// Nothing.
    None,
    /// As many segments as possible in this many seconds.
    Sample(f64),
    /// The whole recording.
    Whole,
}

/// Part of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "role")]
pub enum HostPlan {
    /// Of a recorder.
    Recorder(RecorderPlan),
    /// Of a source.
    Source(SourcePlan),
    /// Of a drain host.
    Drain(DrainPlan),
}

/// Part of a recorder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecorderPlan {
    /// Its share of the detector, as TOML.
    pub profile: String,
    /// Its share of the rate, bytes per second; none: unthrottled.
    pub rate: Option<f64>,
    /// Most payload that the source sends, bytes, if it is limited.
    pub bytes_max: Option<f64>,
    /// How long the source sends, seconds.
    pub seconds: f64,
    /// Directories to record to; none: blocks are dropped.
    pub volumes: Vec<PathBuf>,
    /// Its source, `HOST:PORT`.
    pub source: String,
    /// What is read back.
    pub check: ReadBack,
    /// End the source soon after the first loss.
    pub cut_off: bool,
    /// What it drains meanwhile.
    pub drain: Option<RecorderDrain>,
}

/// Drain of a recorder during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecorderDrain {
    /// Its share of the drain's rate, bytes per second.
    pub rate: f64,
    /// Sink on a drain host; none: in the recorder itself, which drops the events.
    pub to: Option<SocketAddr>,
}

/// Part of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcePlan {
    /// Address to listen on, `HOST:PORT`.
    pub listen: String,
    /// Number of recorders that it serves.
    pub recorders: u32,
}

/// A recorder and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The recorder.
    pub recorder: HostId,
    /// The source.
    pub source: HostId,
    /// Number of streams.
    pub streams: u32,
}

/// The recorders of `file` with their sources and shares of `streams`, without the hosts in `without`.
///
/// # Errors
/// No recorder or source, or fewer streams than recorders.
pub fn pairs(file: &FleetFile, streams: u32, without: &BTreeSet<HostId>) -> Result<Vec<Pair>, FleetError> {
    let with = |role: Role| -> Vec<HostId> {
        let all =
            (0..).zip(&file.hosts).filter(|(host, entry)| entry.role == role && !without.contains(host));
        all.map(|(host, _)| host).collect()
    };
    let (recorders, sources) = (with(Role::Recorder), with(Role::Source));
    if recorders.is_empty() || sources.is_empty() {
        let why = Cause::new("a trial needs at least one recorder and one source");
        return Err(FleetError::Trial(why.with_hint("set `role` of the hosts in the fleet file")));
    }
    let count = recorders.len();
    if (streams as usize) < count {
        let why = format!("the profile has {streams} streams for {count} recorders");
        return Err(FleetError::Trial(Cause::new(why).with_hint("--streams N, at least one per recorder")));
    }
    // The shares that the recorders have in a recording.
    let of_sources = recorders.into_iter().zip(sources.iter().cycle());
    let pairs = of_sources.zip(shares(streams, count));
    Ok(pairs.map(|((recorder, &source), streams)| Pair { recorder, source, streams }).collect())
}

/// The part of each host of `file`, none for spares, and for sources and drain hosts without a recorder.
///
/// # Errors
/// See [`pairs`]; a drain host without an address; more time than a year.
pub fn plans(file: &FleetFile, request: &TrialRequest) -> Result<Vec<Option<HostPlan>>, FleetError> {
    if request.time.as_secs_f64() > SECONDS_MAX {
        let why = Cause::new(format!("{:?} is more than a year", request.time));
        return Err(FleetError::Trial(why.with_hint("a shorter --time or --soak")));
    }
    let pairs = pairs(file, request.profile.streams, &request.without)?;
    let number = |source: HostId| {
        let before = file.hosts.iter().take(source as usize);
        before.filter(|host| host.role == Role::Source).count() as u32
    };
    // A source may be on the machine of a drain host.
    let sources = file.hosts.iter().filter(|host| host.role == Role::Source).count();
    let sink_port = SOURCE_PORT.saturating_add(u16::try_from(sources).unwrap_or(u16::MAX));
    let mut sinks = Sinks::new(file, &request.without, sink_port);
    let mut part = |(host, entry): (HostId, &HostEntry)| {
        if let Some(pair) = pairs.iter().find(|pair| pair.recorder == host) {
            let source = &file.hosts[pair.source as usize];
            let at = source.data.map_or_else(|| source.name.clone(), |ip| ip.to_string());
            let source = endpoint(&at, number(pair.source));
            let mut plan = recorder_plan(entry, request, pair.streams, source);
            if let Some(drain) = &mut plan.drain {
                let profile = request.profile.clone().with_streams(pair.streams);
                drain.to = sinks.add(|drain, listen| copy(entry, &profile, drain, listen))?;
            }
            return Ok(Some(HostPlan::Recorder(plan)));
        }
        let recorders = pairs.iter().filter(|pair| pair.source == host).count() as u32;
        let listen = entry.data.map_or_else(|| "0.0.0.0".to_owned(), |ip| ip.to_string());
        let listen = endpoint(&listen, number(host));
        Ok((recorders > 0).then_some(HostPlan::Source(SourcePlan { listen, recorders })))
    };
    let parts = (0..).zip(&file.hosts).map(&mut part).collect::<Result<Vec<_>, Cause>>();
    let drains = sinks.into_parts(true);
    let parts = parts.map_err(FleetError::Trial)?.into_iter().zip(drains);
    Ok(parts.map(|(part, drain)| part.or(drain.map(HostPlan::Drain))).collect())
}

/// Recording of what `recorder` drains, for its share of the detector.
fn copy(recorder: &HostEntry, profile: &Profile, drain: &HostEntry, listen: SocketAddr) -> RecordPlan {
    let volumes = drain.volumes.len().max(1);
    let profile = profile.clone().on_volumes(u32::try_from(volumes).unwrap_or(u32::MAX));
    let name = format!("keepup-fleet-trial-{}", recorder.name);
    let any = RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), Target::Null, &name);
    RecordPlan {
        name,
        run: 0,
        metadata: BTreeMap::new(),
        volumes: drain.volumes.clone(),
        listen,
        drain_to: None,
        settings: RecorderSettings::of(&recorder_config(&profile, &any)),
    }
}

/// Part of a recorder with `share` of the streams.
fn recorder_plan(host: &HostEntry, request: &TrialRequest, share: u32, source: String) -> RecorderPlan {
    let volumes = if request.to_null { Vec::new() } else { host.volumes.clone() };
    let of_all = f64::from(share) / f64::from(request.profile.streams);
    let profile = request.profile.clone().with_streams(share);
    let profile = profile.on_volumes(u32::try_from(volumes.len().max(1)).unwrap_or(u32::MAX));
    let (rate, bytes_max) = match request.rate {
        TrialRate::Profile => (Some(request.profile.required_bytes_per_second()), None),
        TrialRate::Bytes(rate) => (Some(rate), None),
        TrialRate::Max(bytes) => (None, bytes),
    };
    let drained = profile.drain.filter(|_| !volumes.is_empty());
    RecorderPlan {
        drain: drained.map(|rate| RecorderDrain { rate: rate.bytes_per_second() * of_all, to: None }),
        profile: profile.to_toml(),
        rate: rate.map(|rate| rate * of_all),
        bytes_max: bytes_max.map(|bytes| bytes * of_all),
        seconds: request.time.as_secs_f64(),
        volumes,
        source,
        check: request.check,
        cut_off: request.cut_off,
    }
}

/// Address of source `number`: sources of one machine need different ports.
pub(crate) fn endpoint(host: &str, number: u32) -> String {
    let port = SOURCE_PORT.saturating_add(u16::try_from(number).unwrap_or(0));
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
