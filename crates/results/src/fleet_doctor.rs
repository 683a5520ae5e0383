//! Result of `keepup doctor --fleet`: facts and findings of all hosts of a fleet.
//!
//! `None` means "not read" or "not applicable" and is written as null. Sizes are bytes, times ns.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::doctor::{DoctorCounts, DoctorFinding, DoctorNeeds};

/// Version of the layout; incremented when an older reader could misread a newer file.
pub const FLEET_DOCTOR_SCHEMA_VERSION: u32 = 1;

/// Result of a check of all hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetDoctorSummary {
    /// Layout version.
    pub schema_version: u32,
    /// Version of keepup on the controller.
    pub tool_version: String,
    /// Time, RFC 3339, UTC.
    pub created: String,
    /// Command line.
    pub command: String,
    /// Name of the fleet.
    pub fleet: String,
    /// The hosts in the order of the fleet file.
    pub hosts: Vec<HostCheck>,
    /// Number of findings by severity. A finding on several hosts counts once.
    pub counts: DoctorCounts,
    /// Findings, worst first.
    pub findings: Vec<FleetFinding>,
    /// Notes on how the hosts were judged.
    pub notes: Vec<String>,
}

/// Result of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCheck {
    /// Name in the fleet file.
    pub host: String,
    /// `recorder`, `spare` or `source`.
    pub role: String,
    /// Requirements that the host was judged for; `None` if it was not checked.
    pub needs: Option<DoctorNeeds>,
    /// Its facts; `None` if it was not checked.
    pub facts: Option<HostFacts>,
    /// Why it was not checked.
    pub failure: Option<String>,
    /// Clock of the controller minus clock of the host.
    pub clock_offset_ns: Option<i64>,
    /// Largest error of that offset.
    pub clock_error_ns: Option<u64>,
}

/// Finding about one or several hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetFinding {
    /// Names of the hosts for which it is the same.
    pub hosts: Vec<String>,
    /// The finding.
    pub finding: DoctorFinding,
}

/// Facts about a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// Version of keepup.
    pub tool_version: String,
    /// Version of its messages to the controller.
    pub message_version: u32,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Online logical cores.
    pub cores: Option<u64>,
    /// Memory usable by the kernel.
    pub memory_bytes: Option<u64>,
    /// Limit of locked memory of the agent: bytes, or `unlimited`.
    pub memlock: Option<String>,
    /// The system clock.
    pub clock: ClockFacts,
    /// Interfaces that carry the data.
    pub interfaces: Vec<InterfaceFacts>,
    /// The volumes of the fleet file.
    pub volumes: Vec<VolumeFacts>,
    /// Paths to the sources; empty for a source.
    pub paths: Vec<PathFacts>,
}

/// System clock of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockFacts {
    /// Clock source of the kernel, such as `tsc`.
    pub source: Option<String>,
    /// Whether the kernel regards the system clock as synchronised.
    pub is_synchronised: Option<bool>,
    /// Largest error of the system clock by the account of the program that synchronises it.
    pub error_ns_max: Option<u64>,
    /// Programs found running that synchronise clocks: `chronyd`, `ptp4l`, ...; `None` if the processes of
    /// other users are hidden.
    pub programs: Option<Vec<String>>,
    /// PTP hardware clocks with their names.
    pub hardware_clocks: Vec<String>,
}

/// Interface that carries data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceFacts {
    /// Name.
    pub name: String,
    /// MTU, bytes.
    pub mtu: Option<u64>,
    /// Link speed, Mbit/s.
    pub speed_mbit: Option<u64>,
    /// Driver of the card; `None` for virtual interfaces.
    pub driver: Option<String>,
    /// `up`, `down` or `unknown`.
    pub state: Option<String>,
    /// Its PTP hardware clock, such as `ptp0`.
    pub hardware_clock: Option<String>,
}

/// Volume of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeFacts {
    /// The directory.
    pub path: String,
    /// Bytes that the agent may still write.
    pub free_bytes: Option<u64>,
    /// Size of the file system.
    pub size_bytes: Option<u64>,
}

/// Network path from a recorder to a source. Packet sizes include the headers of IP and UDP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathFacts {
    /// Name of the source.
    pub source: String,
    /// Its address, `HOST:PORT`.
    pub address: String,
    /// Why no TCP connection was possible; `None` if it was.
    pub failure: Option<String>,
    /// Interface of the recorder on this path.
    pub interface: Option<String>,
    /// MTU of the recorder's route to the source.
    pub mtu: Option<u64>,
    /// MTU of the source's route to the recorder; `None` if the source does not answer UDP packets.
    pub source_mtu: Option<u64>,
    /// Largest packet that reached the source in one piece.
    pub to_source_bytes: Option<u64>,
    /// Largest packet that arrived from the source in one piece.
    pub from_source_bytes: Option<u64>,
}
