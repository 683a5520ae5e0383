//! Parts of the hosts in a recording.
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_plan::reduction::Reduction;
use keepup_recorder::{PlacementKind, RecorderConfig, Target};
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::file::{FleetFile, HostEntry};

/// What is recorded, and how.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// Name of the recording's directory on every volume.
    pub name: String,
    /// Run number.
    pub run: u64,
    /// Metadata stored with every recording.
    pub metadata: BTreeMap<String, String>,
    /// Port on which recorders listen.
    pub port: u16,
    /// Settings of all recorders.
    pub settings: RecorderSettings,
}

/// Settings of a recorder that do not depend on its host; see [`RecorderConfig`] for the meaning of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are those of RecorderConfig")]
pub struct RecorderSettings {
    pub pool_bytes: usize,
    pub unflushed_bytes: Option<usize>,
    pub block_bytes: usize,
    pub segment_bytes: u64,
    pub segment_auto: bool,
    pub event_bytes_max: u64,
    pub depth: usize,
    pub intake_threads: usize,
    pub connections_max: usize,
    pub slow_after: Duration,
    pub peer_timeout: Duration,
    pub reductions: Vec<String>,
    pub reduce_threads: usize,
    pub placement: PlacementKind,
}

impl RecorderSettings {
    /// Those of `config`.
    #[must_use]
    pub fn of(config: &RecorderConfig) -> Self {
        Self {
            pool_bytes: config.pool_bytes,
            unflushed_bytes: config.unflushed_bytes,
            block_bytes: config.block_bytes,
            segment_bytes: config.segment_bytes,
            segment_auto: config.segment_auto,
            event_bytes_max: config.event_bytes_max,
            depth: config.depth,
            intake_threads: config.intake_threads,
            connections_max: config.connections_max,
            slow_after: config.slow_after,
            peer_timeout: config.peer_timeout,
            reductions: config.reductions.iter().map(ToString::to_string).collect(),
            reduce_threads: config.reduce_threads,
            placement: config.placement,
        }
    }
}

/// Part of a recorder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordPlan {
    /// Name of the recording's directory on every volume.
    pub name: String,
    /// Run number.
    pub run: u64,
    /// Metadata.
    pub metadata: BTreeMap<String, String>,
    /// Directories to record to.
    pub volumes: Vec<PathBuf>,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Sink that receives a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_to: Option<SocketAddr>,
    /// Settings.
    pub settings: RecorderSettings,
}

impl RecordPlan {
    /// Configuration of the recorder; `volumes` are the checked ones.
    ///
    /// # Errors
    /// A reduction that cannot be parsed.
    pub(crate) fn config(&self, volumes: Vec<PathBuf>) -> Result<RecorderConfig, String> {
        let RecorderSettings {
            pool_bytes,
            unflushed_bytes,
            block_bytes,
            segment_bytes,
            segment_auto,
            event_bytes_max,
            depth,
            intake_threads,
            connections_max,
            slow_after,
            peer_timeout,
            reductions,
            reduce_threads,
            placement,
        } = self.settings.clone();
        let reductions: Result<Vec<Reduction>, _> = reductions.iter().map(|text| text.parse()).collect();
        Ok(RecorderConfig {
            pool_bytes,
            unflushed_bytes,
            block_bytes,
            segment_bytes,
            segment_auto,
            event_bytes_max,
            depth,
            intake_threads,
            connections_max,
            slow_after,
            peer_timeout,
            reductions: reductions.map_err(|error| error.to_string())?,
            reduce_threads,
            placement: if volumes.len() > 1 { placement } else { PlacementKind::Free },
            run: Some(self.run),
            metadata: self.metadata.clone(),
            // Clients come and go; the controller ends the run.
            stay: true,
            ..RecorderConfig::new(self.listen.into(), Target::Volumes(volumes), self.name.clone())
        })
    }
}

/// The part of each host of `file`, none for sources and drain hosts.
///
/// # Errors
/// A recorder without an address for its clients, or ports that do not exist.
pub fn plans(file: &FleetFile, request: &RecordRequest) -> Result<Vec<Option<RecordPlan>>, FleetError> {
    // Recorders with the same address are on one machine, and need different ports.
    let mut used: BTreeMap<IpAddr, u16> = BTreeMap::new();
    let mut part = |host: &HostEntry| {
        if !host.role.records() {
            return Ok(None);
        }
        let Some(data) = host.data else {
            let why = Cause::new(format!("{}: clients need the address of the recorder", host.name));
            let hint = "set `data` of each recorder and spare to its address on the data network";
            return Err(FleetError::Record(why.with_hint(hint)));
        };
        let number = used.entry(data).or_default();
        let port = request.port.checked_add(*number).filter(|_| request.port > 0);
        let Some(port) = port else {
            let why = Cause::new(format!("there is no port {} + {number}", request.port));
            return Err(FleetError::Record(why.with_hint("a lower --fleet-port, at least 1")));
        };
        let listen = (data, port).into();
        *number += 1;
        Ok(Some(RecordPlan {
            name: request.name.clone(),
            run: request.run,
            metadata: request.metadata.clone(),
            volumes: host.volumes.clone(),
            listen,
            drain_to: None,
            settings: request.settings.clone(),
        }))
    };
    file.hosts.iter().map(&mut part).collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
