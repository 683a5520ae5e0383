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
    /// Largest error of the offset, ns.
    pub clock_error_ns: Option<u64>,
    /// Shortest of the last round trips, ns, without the time in the controller.
    pub round_trip_ns: Option<u64>,
    /// Counters of its run.
    pub counters: Counters,
}

pub(super) fn of(file: &FleetFile, controller: &Controller, traffic: Traffic) -> FleetStatus {
    let report = |host: HostId| {
        let heartbeat = controller.heartbeat_of(host)?;
        Some(HostReport {
            version: heartbeat.version,
            state: heartbeat.state.clone(),
            clock_offset_ns: heartbeat.clock.map(|clock| clock.ns),
            clock_error_ns: heartbeat.clock.map(|clock| clock.error_ns),
            // The error is half of the round trip of an exchange, and the drift since.
            round_trip_ns: heartbeat.clock.map(|clock| clock.error_ns.saturating_mul(2)),
            counters: heartbeat.counters,
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

impl FleetStatus {
    /// Whether all hosts are members.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.hosts.iter().all(|host| host.report.is_some())
    }

    /// Bytes of all messages, in both directions.
    #[must_use]
    pub const fn traffic_bytes(&self) -> u64 {
        self.traffic.sent.bytes + self.traffic.received.bytes
    }

    /// Table with one line for each host, and a summary.
    #[must_use]
    pub fn table(&self) -> String {
        let mut rows = vec![HEAD.map(str::to_owned)];
        rows.extend(self.hosts.iter().map(HostStatus::row));
        let members = self.hosts.iter().filter(|host| host.report.is_some()).count();
        let Traffic { sent, received } = self.traffic;
        let mut table = crate::table::table(&rows, COLUMNS);
        table.push_str(&format!(
            "fleet {}: {members} of {} hosts, controller on {}\n\
             {} messages with {} bytes sent, {} with {} received",
            self.name,
            self.hosts.len(),
            self.controller,
            sent.messages,
            sent.bytes,
            received.messages,
            received.bytes
        ));
        table
    }
}

/// Columns of the table.
const COLUMNS: usize = 6;
const HEAD: [&str; COLUMNS] = ["host", "role", "state", "version", "clock offset (ms)", "round trip (ms)"];

impl HostStatus {
    fn row(&self) -> [String; COLUMNS] {
        let role = match self.role {
            Role::Recorder => "recorder",
            Role::Source => "source",
            Role::Spare => "spare",
            Role::Drain => "drain",
        };
        let none = || "-".to_owned();
        let Some(report) = &self.report else {
            return [self.name.clone(), role.to_owned(), "MISSING".to_owned(), none(), none(), none()];
        };
        let ms = |ns: u64| format!("{:.2}", ns as f64 / 1e6);
        let offset = report.clock_offset_ns.zip(report.clock_error_ns);
        let offset = offset.map(|(ns, error)| format!("{:+.2} ± {}", ns as f64 / 1e6, ms(error)));
        [
            self.name.clone(),
            role.to_owned(),
            state(&report.state).to_owned(),
            report.version.to_string(),
            offset.unwrap_or_else(none),
            report.round_trip_ns.map_or_else(none, ms),
        ]
    }
}

const fn state(state: &HostState) -> &'static str {
    match state {
        HostState::Idle => "idle",
        HostState::Preparing { .. } => "preparing",
        HostState::Ready { .. } => "ready",
        HostState::Running { .. } => "running",
        HostState::Finishing { .. } => "finishing",
        HostState::Finished { .. } => "finished",
        HostState::Failed { .. } => "failed",
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
