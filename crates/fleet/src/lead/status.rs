//! State of a fleet, for people and programs.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::controller::Controller;
use crate::file::FleetFile;
use crate::link::Traffic;
use crate::message::{Counters, HostId, HostState, Role};

/// State of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStatus {
    /// Name of the fleet.
    pub name: String,
    /// Address of the controller.
    pub controller: SocketAddr,
    /// Hosts in the order of the file.
    pub hosts: Vec<HostStatus>,
    /// Messages of the controller so far.
    pub traffic: Traffic,
}

/// State of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Name.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Its latest report; none if it is no member.
    pub report: Option<HostReport>,
}

/// What a host has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// Version of its messages.
    pub version: u32,
    /// What it does now.
    pub state: HostState,
    /// The controller's clock less that of the host, ns; none before the first exchange.
    pub clock_offset_ns: Option<i64>,
    /// Largest error of that, ns.
    pub clock_error_ns: Option<u64>,
    /// Shortest of the last round trips, ns, without the time in the controller.
    pub round_trip_ns: Option<u64>,
    /// Counters of its run.
    pub counters: Counters,
}

pub(super) fn of(file: &FleetFile, controller: &Controller, traffic: Traffic) -> FleetStatus {
    let report = |host: HostId| {
        let beat = controller.beat_of(host)?;
        Some(HostReport {
            version: beat.version,
            state: beat.state.clone(),
            clock_offset_ns: beat.clock.map(|clock| clock.ns),
            clock_error_ns: beat.clock.map(|clock| clock.error_ns),
            // The error of an exchange is half of its round trip.
            round_trip_ns: beat.clock.map(|clock| clock.error_ns.saturating_mul(2)),
            counters: beat.counters,
        })
    };
    let status = |(number, host): (HostId, &crate::file::HostEntry)| HostStatus {
        name: host.name.clone(),
        role: host.role,
        report: report(number),
    };
    let hosts = (0..).zip(&file.hosts).map(status).collect();
    FleetStatus { name: file.name.clone(), controller: file.listen, hosts, traffic }
}
