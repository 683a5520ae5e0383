//! What a stream needs of a host.
use std::time::Duration;

use keepup_plan::{Profile, Transport};
use keepup_results::DoctorNeeds;

/// Longest stall that socket buffers should bridge unless told otherwise. 100 MiB at 1 GB/s, as PSI's guide
/// for its detectors' receivers asks for (slsDetectorPackage, Receiver PC Tuning Options).
pub const STALL: Duration = Duration::from_millis(100);
/// Rate, event and transport that a host is judged for without a profile.
const RATE: f64 = 1e9;
const EVENT_BYTES: f64 = 1_048_576.0;
/// What IPv4 and UDP put before the payload of a packet, in bytes; TCP with timestamps.
const UDP_HEADERS: f64 = 28.0;
const TCP_HEADERS: f64 = 52.0;

/// What a stream needs of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// The detector; nothing when the host is judged for no one in particular.
    pub profile: Option<String>,
    /// Bytes per second, mean over bursts and silence: what disks take.
    pub rate: f64,
    /// Bytes per second within bursts: what the network takes.
    pub peak: f64,
    /// Mean size of an event, in bytes.
    pub event_bytes: f64,
    /// Largest event, in bytes.
    pub event_bytes_max: u64,
    /// What is written at once, in bytes.
    pub block_bytes: u64,
    /// How the detector hands over its data.
    pub transport: Transport,
    /// Connections, or sources of datagrams.
    pub connections: u32,
    /// Bytes of one run, if there is one.
    pub run_bytes: Option<u64>,
    /// Longest stall of the receiver that buffers should bridge.
    pub stall: Duration,
}

impl Needs {
    /// Those of a detector.
    pub fn of(profile: &Profile, stall: Duration) -> Self {
        Self {
            profile: Some(profile.name.clone()),
            rate: profile.required_bytes_per_second(),
            peak: profile.peak_bytes_per_second(),
            event_bytes: profile.event.mean_bytes(),
            event_bytes_max: profile.event.max().0,
            block_bytes: profile.block.0,
            transport: profile.transport,
            connections: profile.connections.max(1),
            run_bytes: Some(profile.space_needed().0),
            stall,
        }
    }

    /// 1 GB/s of datagrams from one source: the case in which settings decide most.
    pub fn of_no_one(stall: Duration) -> Self {
        Self {
            profile: None,
            rate: RATE,
            peak: RATE,
            event_bytes: EVENT_BYTES,
            event_bytes_max: EVENT_BYTES as u64,
            block_bytes: 1 << 20,
            transport: Transport::Udp,
            connections: 1,
            run_bytes: None,
            stall,
        }
    }

    /// Whether what nobody takes in time is lost.
    pub fn is_udp(&self) -> bool {
        self.transport == Transport::Udp
    }

    /// Whether data comes through the network at all.
    pub fn is_networked(&self) -> bool {
        matches!(self.transport, Transport::Udp | Transport::Tcp | Transport::Zeromq)
    }

    /// Bytes per second of one connection.
    pub(super) fn peak_of_connection(&self) -> f64 {
        self.peak / f64::from(self.connections)
    }

    /// What a packet has before its payload, in bytes.
    pub(super) fn headers(&self) -> f64 {
        if self.is_udp() { UDP_HEADERS } else { TCP_HEADERS }
    }

    /// Payload of a packet where at most `mtu` bytes fit into one. Datagrams do not carry several events.
    pub(super) fn payload_of_packet(&self, mtu: f64) -> f64 {
        let room = (mtu - self.headers()).max(1.0);
        if self.is_udp() { room.min(self.event_bytes).max(1.0) } else { room }
    }

    /// The same for a result.
    pub fn told(&self) -> DoctorNeeds {
        DoctorNeeds {
            profile: self.profile.clone(),
            bytes_per_second: self.rate,
            bytes_per_second_peak: self.peak,
            event_bytes: self.event_bytes,
            transport: self.transport_name().to_owned(),
            connections: self.connections,
            run_bytes: self.run_bytes,
            stall_ns: u64::try_from(self.stall.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// The transport as profiles have it.
    pub fn transport_name(&self) -> &'static str {
        match self.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Zeromq => "zeromq",
            Transport::File => "file",
            Transport::SharedMemory => "shared-memory",
        }
    }
}
