//! Requirements of a stream on a host.
use std::time::Duration;

use keepup_plan::{Profile, Transport};
use keepup_results::DoctorNeeds;

/// Default stall that socket buffers should bridge: 100 MiB at 1 GB/s, as recommended by PSI's
/// guide for detector receivers (slsDetectorPackage, Receiver PC Tuning Options).
pub const STALL: Duration = Duration::from_millis(100);
/// Rate, event size and transport assumed without a profile.
const RATE: f64 = 1e9;
const EVENT_BYTES: f64 = 1_048_576.0;
/// Header bytes of a packet for IPv4 and UDP, and for TCP with timestamps.
const UDP_HEADERS: f64 = 28.0;
const TCP_HEADERS: f64 = 52.0;

/// Requirements of a stream on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// The detector; none for a general judgement.
    pub profile: Option<String>,
    /// Mean bytes per second including pauses: load of the disks.
    pub rate: f64,
    /// Bytes per second within bursts: load of the network.
    pub peak: f64,
    /// Mean event size, bytes.
    pub event_bytes: f64,
    /// Largest event, bytes.
    pub event_bytes_max: u64,
    /// Write size, bytes.
    pub block_bytes: u64,
    /// Transport of the detector.
    pub transport: Transport,
    /// Number of connections or datagram sources.
    pub connections: u32,
    /// Bytes of one run, if runs are limited.
    pub run_bytes: Option<u64>,
    /// Longest receiver stall that buffers should bridge.
    pub stall: Duration,
}

impl Needs {
    /// Requirements of a detector.
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

    /// 1 GB/s of datagrams from one source: the case most sensitive to settings.
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

    /// Whether data not received in time is lost.
    pub fn is_udp(&self) -> bool {
        matches!(self.transport, Transport::Udp | Transport::Spead)
    }

    /// Whether data arrives over the network.
    pub fn is_networked(&self) -> bool {
        !matches!(self.transport, Transport::File | Transport::SharedMemory)
    }

    /// Bytes per second per connection.
    pub(super) fn peak_of_connection(&self) -> f64 {
        self.peak / f64::from(self.connections)
    }

    /// Header bytes per packet.
    pub(super) fn headers(&self) -> f64 {
        if self.is_udp() { UDP_HEADERS } else { TCP_HEADERS }
    }

    /// Payload per packet for this MTU. A datagram never carries several events.
    pub(super) fn payload_of_packet(&self, mtu: f64) -> f64 {
        let payload = (mtu - self.headers()).max(1.0);
        if self.is_udp() { payload.min(self.event_bytes).max(1.0) } else { payload }
    }

    /// Requirements in the form of a result.
    pub fn summary(&self) -> DoctorNeeds {
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

    /// Transport name as in profiles.
    pub fn transport_name(&self) -> &'static str {
        match self.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Spead => "spead",
            Transport::Zeromq => "zeromq",
            Transport::Pvaccess => "pvaccess",
            Transport::File => "file",
            Transport::SharedMemory => "shared-memory",
        }
    }
}
