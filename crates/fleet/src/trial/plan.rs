//! Parts of the hosts in a trial.
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_plan::Profile;
use keepup_workload::net::SOURCE_PORT;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::file::{FleetFile, HostEntry};
use crate::message::Role;

/// What a trial does.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The detector, with all streams.
    pub profile: Profile,
    /// Rate of all streams together, mean over bursts, bytes per second; none: the profile's.
    pub rate: Option<f64>,
    /// How long the sources send.
    pub time: Duration,
    /// Drop sealed blocks instead of writing them.
    pub to_null: bool,
}

/// Part of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "role")]
pub enum HostPlan {
    /// Of a recorder.
    Recorder(RecorderPlan),
    /// Of a source.
    Source(SourcePlan),
}

/// Part of a recorder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecorderPlan {
    /// Its share of the detector, as TOML.
    pub profile: String,
    /// Its share of the rate, bytes per second.
    pub rate: f64,
    /// How long the source sends, seconds.
    pub seconds: f64,
    /// Directories to record to; none: blocks are dropped.
    pub volumes: Vec<PathBuf>,
    /// Its source, `HOST:PORT`.
    pub source: String,
}

/// Part of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcePlan {
    /// Address to listen on, `HOST:PORT`.
    pub listen: String,
    /// Number of recorders that it serves.
    pub recorders: u32,
}

/// The part of each host of `file`, none for spares and sources without a recorder.
///
/// # Errors
/// No recorder or source, or fewer streams than recorders.
pub fn plans(file: &FleetFile, request: &TrialRequest) -> Result<Vec<Option<HostPlan>>, FleetError> {
    let with =
        |role: Role| -> Vec<&HostEntry> { file.hosts.iter().filter(|host| host.role == role).collect() };
    let (recorders, sources) = (with(Role::Recorder), with(Role::Source));
    if recorders.is_empty() || sources.is_empty() {
        let why = Cause::new("a trial needs at least one recorder and one source");
        return Err(FleetError::Trial(why.with_hint("set `role` of the hosts in the fleet file")));
    }
    let (streams, count) = (request.profile.streams, recorders.len() as u32);
    if streams < count {
        let why = format!("the profile has {streams} streams for {count} recorders");
        return Err(FleetError::Trial(Cause::new(why).with_hint("--streams N, at least one per recorder")));
    }
    let rate = request.rate.unwrap_or_else(|| request.profile.required_bytes_per_second());
    let (mut recorder, mut source) = (0, 0);
    let part = |host: &HostEntry| match host.role {
        Role::Spare => None,
        Role::Source => {
            let own = source;
            source += 1;
            let recorders = (0..count).filter(|index| index % sources.len() as u32 == own).count() as u32;
            let listen = host.data.map_or_else(|| "0.0.0.0".to_owned(), |ip| ip.to_string());
            let listen = endpoint(&listen, own);
            (recorders > 0).then_some(HostPlan::Source(SourcePlan { listen, recorders }))
        }
        Role::Recorder => {
            let own = recorder;
            recorder += 1;
            let from = own % sources.len() as u32;
            let share = streams / count + u32::from(own < streams % count);
            Some(HostPlan::Recorder(recorder_plan(
                host,
                request,
                share,
                rate,
                (from, sources[from as usize]),
            )))
        }
    };
    Ok(file.hosts.iter().map(part).collect())
}

/// Part of a recorder with `share` of the streams.
fn recorder_plan(
    host: &HostEntry,
    request: &TrialRequest,
    share: u32,
    rate: f64,
    (number, source): (u32, &HostEntry),
) -> RecorderPlan {
    let volumes = if request.to_null { Vec::new() } else { host.volumes.clone() };
    let of_all = f64::from(share) / f64::from(request.profile.streams);
    let profile = request.profile.clone().with_streams(share);
    let profile = profile.on_volumes(u32::try_from(volumes.len().max(1)).unwrap_or(u32::MAX));
    let at = source.data.map_or_else(|| source.name.clone(), |ip| ip.to_string());
    RecorderPlan {
        profile: profile.to_toml(),
        rate: rate * of_all,
        seconds: request.time.as_secs_f64(),
        volumes,
        source: endpoint(&at, number),
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
