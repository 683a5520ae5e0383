//! Parts of the hosts in a check.
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use keepup_plan::Profile;
use serde::{Deserialize, Serialize};

use crate::file::{FleetFile, HostEntry};
use crate::message::Role;
use crate::trial::endpoint;

/// Limit on the sources to which a recorder measures its path.
pub(super) const SOURCES_MAX: usize = 256;

/// For which stream the hosts are judged.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// The detector, with all streams; none for a general judgement.
    pub profile: Option<Profile>,
    /// Longest stall of a receiver that buffers must bridge.
    pub stall: Duration,
}

/// Part of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckPlan {
    /// Role of the host.
    pub role: Role,
    /// Its share of the detector, as TOML; none for a general judgement.
    pub profile: Option<String>,
    /// Longest stall of a receiver that buffers must bridge, ns.
    pub stall_ns: u64,
    /// Directories to judge.
    pub volumes: Vec<PathBuf>,
    /// Address in the data network, if the fleet file has it.
    pub data: Option<IpAddr>,
    /// Address on which a source listens, `HOST:PORT`.
    pub listen: Option<String>,
    /// Sources to which a recorder measures its path.
    pub sources: Vec<SourceAddress>,
}

/// A source as its recorders reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceAddress {
    /// Name of the host.
    pub name: String,
    /// `HOST:PORT`.
    pub address: String,
}

/// The part of each host of `file`, and notes on what is not checked.
#[must_use]
pub fn plans(file: &FleetFile, request: &CheckRequest) -> (Vec<CheckPlan>, Vec<String>) {
    let with = |role| file.hosts.iter().filter(move |host| host.role == role);
    let count = |role| u32::try_from(with(role).count()).unwrap_or(u32::MAX);
    let mut sources: Vec<SourceAddress> = (0..).zip(with(Role::Source)).map(source_address).collect();
    let all = sources.len();
    sources.truncate(SOURCES_MAX);
    let mut notes = Vec::new();
    if all > SOURCES_MAX {
        notes.push(format!("paths are checked to the first {SOURCES_MAX} of {all} sources only"));
    }
    let (mut recorder, mut source, mut drain) = (0, 0, 0);
    let mut plan = |host: &HostEntry| {
        let mut part = CheckPlan {
            role: host.role,
            profile: None,
            stall_ns: u64::try_from(request.stall.as_nanos()).unwrap_or(u64::MAX),
            volumes: host.volumes.clone(),
            data: host.data,
            listen: None,
            sources: if host.role.records() { sources.clone() } else { Vec::new() },
        };
        let number = match host.role {
            Role::Recorder => post_increment(&mut recorder),
            // A spare may take the place of the recorder with the largest share.
            Role::Spare => 0,
            Role::Drain => post_increment(&mut drain),
            Role::Source => {
                let number = post_increment(&mut source);
                let listen = host.data.map_or_else(|| "0.0.0.0".to_owned(), |ip| ip.to_string());
                part.listen = Some(endpoint(&listen, number));
                number
            }
        };
        let of = count(if host.role == Role::Spare { Role::Recorder } else { host.role });
        let profile = request.profile.as_ref().map(|profile| share(profile, (number, of), &host.volumes));
        part.profile = profile.map(|profile| profile.to_toml());
        part
    };
    (file.hosts.iter().map(&mut plan).collect(), notes)
}

/// The share of host `number` of `of` hosts: the streams are distributed evenly, as in a trial.
fn share(profile: &Profile, (number, of): (u32, u32), volumes: &[PathBuf]) -> Profile {
    let of = of.max(1);
    let streams = profile.streams / of + u32::from(number < profile.streams % of);
    let volumes = u32::try_from(volumes.len().max(1)).unwrap_or(u32::MAX);
    profile.clone().with_streams(streams.max(1)).on_volumes(volumes)
}

fn source_address((number, host): (u32, &HostEntry)) -> SourceAddress {
    let at = host.data.map_or_else(|| host.name.clone(), |ip| ip.to_string());
    SourceAddress { name: host.name.clone(), address: endpoint(&at, number) }
}

const fn post_increment(number: &mut u32) -> u32 {
    let own = *number;
    *number += 1;
    own
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
