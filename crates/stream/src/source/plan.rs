//! Plan of a source in plain types, and its validation.
//!
//! Invariant: after `SourcePlan::check` no arithmetic of the simulator overflows and every event fits the
//! front-end buffer.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use keepup_error::Cause;
use keepup_sys::datagram::DATAGRAM_BYTES_MAX;
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use super::{PV_NAME, SourceError};
use crate::bslz4::BLOCK_BYTES;
use crate::wire::{ControlMessage, ElementType, HEADER_BYTES, Hello, STREAM_ID_END, StreamInfo};

/// Most connections of one source.
const CONNECTIONS_MAX: u32 = 64;
/// Largest event in a packet behind a counter of 8 bytes.
pub(super) const PACKET_BYTES_MAX: u64 = DATAGRAM_BYTES_MAX as u64 - 8;
/// Bytes of the SPEAD heaps that a recorder assembles at once, and how many these are for each sender.
const SPEAD_BYTES_MAX: u64 = 512 << 20;
const SPEAD_HEAPS: u64 = 4;
/// Most streams of packets that a recorder takes from one source.
const PACKET_STREAMS_MAX: u32 = 16;
/// Largest image in a message of pvAccess, with space for its other fields, bytes.
const NTNDARRAY_BYTES_MAX: u64 = (1 << 31) - (64 << 10);
/// Images without photons compress to less than a share of this.
const COMPRESSION_MAX: u64 = 100;
/// Highest rate that a clock of whole nanoseconds can schedule, events per second.
const RATE_MAX: f64 = 1e9;

/// Event rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// Events per second of all streams together, open loop.
    EventsPerSecond(f64),
    /// Closed loop: as fast as the recorder accepts; no losses at the source.
    Max,
}

/// Distribution of payload sizes, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EventSize {
    /// All the same.
    Fixed(u64),
    /// Uniform between `min` and `max`, inclusive.
    Uniform {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// `median * exp(sigma * z)` with z normally distributed, cut at `max`.
    LogNormal {
        /// Median, bytes.
        median: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Largest, bytes.
        max: u64,
    },
}

impl EventSize {
    /// Smallest event, bytes.
    pub(super) fn min_bytes(&self) -> u64 {
        match *self {
            EventSize::Fixed(bytes) => bytes,
            EventSize::Uniform { min, .. } => min,
            EventSize::LogNormal { .. } => 0,
        }
    }

    /// Largest event, bytes.
    pub fn max_bytes(&self) -> u64 {
        match *self {
            EventSize::Fixed(bytes) => bytes,
            EventSize::Uniform { max, .. } | EventSize::LogNormal { max, .. } => max,
        }
    }
}

/// Burst pattern: the rate holds for `on`, then no event is due for `off`, repeatedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Length of a burst.
    pub on: Duration,
    /// Pause after it.
    pub off: Duration,
}

/// Protocol in which a source sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Protocol {
    /// keepup's own, over TCP; the recorder acknowledges events.
    #[default]
    Keepup,
    /// A datagram for each event, with its sequence number in 8 bytes in front, big endian. Each connection
    /// is a sender with one stream.
    Udp,
    /// A datagram for each event, which is a VDIF frame. Each stream is a thread.
    Vdif {
        /// Frames of a thread per second; only their numbers depend on it.
        frames_per_second: u64,
    },
    /// A SPEAD-64-48 heap for each event, in UDP packets. Each connection is a sender with one stream.
    Spead,
    /// The stream of a DECTRIS detector over ZeroMQ: each event is an image. The recorder connects to the
    /// source.
    Dectris(DectrisVersion),
    /// An areaDetector IOC that serves an NTNDArray over pvAccess: each event is an image. The recorder
    /// connects to the source.
    #[serde(rename = "pvaccess")]
    PvAccess,
    /// Files in a directory, from which the recorder takes them: each event is a file.
    Files,
}

/// As in `source --as`.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keepup => "keepup",
            Self::Udp => "udp",
            Self::Vdif { .. } => "vdif",
            Self::Spead => "spead",
            Self::Dectris(DectrisVersion::V1) => "dectris-v1",
            Self::Dectris(DectrisVersion::V2) => "dectris-v2",
            Self::PvAccess => "pvaccess",
            Self::Files => "files",
        })
    }
}

/// Version of the stream of a DECTRIS detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DectrisVersion {
    /// JSON and binary frames.
    V1,
    /// CBOR.
    V2,
}

impl Protocol {
    fn is_keepup(&self) -> bool {
        *self == Self::Keepup
    }

    /// Whether the source waits until the recorder connects, and not the other way round.
    #[must_use]
    pub fn waits_for_recorder(&self) -> bool {
        matches!(self, Self::Dectris(_) | Self::PvAccess)
    }

    /// Whether the source can run on another machine than the recorder.
    #[must_use]
    pub fn can_be_remote(&self) -> bool {
        *self != Self::Files
    }

    /// Whether the recorder acknowledges events.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.is_keepup()
    }

    /// Whether a recorder that is too slow slows down the source, so that a source without a schedule
    /// measures the recorder.
    #[must_use]
    pub fn has_flow_control(&self) -> bool {
        matches!(self, Self::Keepup | Self::Dectris(_) | Self::PvAccess)
    }
}

/// Plan of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcePlan {
    /// Payload sizes.
    pub size: EventSize,
    /// Rate of all streams together.
    pub rate: Rate,
    /// Number of streams, served round robin.
    pub streams: u32,
    /// TCP connections, each with a thread; streams are assigned round robin. At most 64.
    pub connections: u32,
    /// Bursts; `None` for a steady rate.
    pub burst: Option<Burst>,
    /// Length of the schedule, after which the source ends.
    pub duration: Option<Duration>,
    /// Number of events over all streams; without this and `duration` the source runs until
    /// stopped.
    pub events: Option<u64>,
    /// Front-end buffer of each connection, bytes; an event takes its payload plus 64 bytes.
    pub buffer_bytes: u64,
    /// Seed for sizes and data.
    pub seed: u64,
    /// Element type declared to the recorder.
    pub element: ElementType,
    /// Shape of one event declared to the recorder, before compression; empty means opaque bytes.
    pub shape: Vec<u64>,
    /// Whether events are images that the detector compresses with bitshuffle and LZ4. Only a DECTRIS
    /// detector is simulated with such images; in other protocols, events are opaque bytes of these sizes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compressed: bool,
    /// Id of the first stream; the others are consecutive.
    pub first_stream: u32,
    /// CPUs of the sending threads; empty means any.
    pub cpus: Vec<usize>,
    /// Protocol.
    #[serde(default, skip_serializing_if = "Protocol::is_keepup")]
    pub protocol: Protocol,
}

impl SourcePlan {
    /// One stream of opaque bytes over one connection, endless, with a front-end buffer of 64
    /// MiB.
    pub fn new(size: EventSize, rate: Rate) -> Self {
        Self {
            size,
            rate,
            streams: 1,
            connections: 1,
            burst: None,
            duration: None,
            events: None,
            buffer_bytes: 64 << 20,
            seed: 1,
            element: ElementType::U8,
            shape: Vec::new(),
            compressed: false,
            first_stream: 0,
            cpus: Vec::new(),
            protocol: Protocol::Keepup,
        }
    }

    /// The same plan in another protocol. Each sender of packets or heaps has one stream.
    #[must_use]
    pub fn in_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        if matches!(protocol, Protocol::Udp | Protocol::Spead) {
            self.connections = self.streams;
        }
        self
    }

    /// Source to name to a recorder (`record --from`), so that it receives this plan's protocol: at its own
    /// `address`, or from the `address` at which the source waits. `None`: it listens, or takes files.
    #[must_use]
    pub fn received_at(&self, address: SocketAddr) -> Option<String> {
        match self.protocol {
            Protocol::Keepup | Protocol::Files => None,
            Protocol::Udp => Some(format!("udp://{address},skip=8")),
            Protocol::Vdif { frames_per_second } => {
                Some(format!("vdif://{address},frames-per-second={frames_per_second}"))
            }
            Protocol::Spead => Some(format!("spead://{address},senders={}", self.connections)),
            Protocol::Dectris(_) => Some(format!("zmq://{address}")),
            Protocol::PvAccess => Some(format!("pva://{address}/{PV_NAME}")),
        }
    }

    /// Size of the images before compression, bytes; `None` if payloads are no compressed images.
    #[must_use]
    pub fn uncompressed_bytes(&self) -> Option<u64> {
        let sends_images = self.compressed && matches!(self.protocol, Protocol::Dectris(_));
        self.image_bytes().filter(|_| sends_images)
    }

    /// Size of the array of an event, bytes; `None` without a shape.
    fn image_bytes(&self) -> Option<u64> {
        let pixels = self.shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
        pixels.filter(|_| !self.shape.is_empty())?.checked_mul(self.element.bytes())
    }

    /// Largest event in a SPEAD heap, bytes.
    pub(super) fn heap_bytes_max(&self) -> u64 {
        SPEAD_BYTES_MAX / SPEAD_HEAPS / u64::from(self.streams.max(1))
    }

    /// Checks the plan before anything is opened.
    ///
    /// # Errors
    /// [`SourceError::Plan`] with the first problem.
    pub fn check(&self) -> Result<(), SourceError> {
        self.first_fault().map_or(Ok(()), |what| Err(SourceError::Plan { what }))
    }

    fn first_fault(&self) -> Option<Cause> {
        let last = u64::from(self.first_stream) + u64::from(self.streams);
        if self.streams == 0 || last > u64::from(STREAM_ID_END) || self.streams == STREAM_ID_END {
            return Some(
                format!(
                    "{} streams from id {}: at least 1, at most 65535, ids below 65536",
                    self.streams, self.first_stream
                )
                .into(),
            );
        }
        if self.connections == 0 || self.connections > CONNECTIONS_MAX.min(self.streams) {
            return Some(
                format!(
                    "{} connections for {} streams: 1 to {CONNECTIONS_MAX}, not more than there are streams",
                    self.connections, self.streams
                )
                .into(),
            );
        }
        if let Some(cpu) = self.cpus.iter().find(|cpu| **cpu >= CpuSet::MAX_CPU) {
            let last = CpuSet::MAX_CPU - 1;
            return Some(format!("core {cpu}: cores are numbered 0 to {last}").into());
        }
        self.rate_fault().or_else(|| self.protocol_fault()).or_else(|| self.size_fault())
    }

    fn rate_fault(&self) -> Option<Cause> {
        match (self.rate, self.burst) {
            (Rate::EventsPerSecond(rate), _) if !(rate > 0.0 && rate <= RATE_MAX) => {
                let what =
                    format!("rate of {rate} events per second: must be above 0 and at most {RATE_MAX:.0}");
                Some(what.into())
            }
            (Rate::Max, Some(_)) => Some(
                Cause::new("bursts with the highest rate: a closed loop has no schedule")
                    .with_hint("state a rate"),
            ),
            (_, Some(burst)) if burst.on.is_zero() => Some("bursts of no length".into()),
            _ => None,
        }
    }

    fn protocol_fault(&self) -> Option<Cause> {
        let (size, streams, connections) = (self.size, self.streams, self.connections);
        match self.protocol {
            Protocol::Udp | Protocol::Vdif { .. } if size.max_bytes() > PACKET_BYTES_MAX => {
                let what = format!(
                    "events of {} bytes do not fit a UDP packet, limit {PACKET_BYTES_MAX} bytes",
                    size.max_bytes()
                );
                Some(Cause::new(what).with_hint("--event 8024B"))
            }
            Protocol::Spead if size.max_bytes() > self.heap_bytes_max() => {
                let (bytes, most) = (size.max_bytes(), self.heap_bytes_max());
                Some(
                    format!("events of {bytes} bytes, limit {most} bytes for each of {streams} streams")
                        .into(),
                )
            }
            Protocol::Udp | Protocol::Vdif { .. } | Protocol::Spead if streams > PACKET_STREAMS_MAX => {
                let what = format!("{streams} streams, limit {PACKET_STREAMS_MAX} with UDP packets");
                Some(Cause::new(what).with_hint("--streams 4"))
            }
            Protocol::Udp | Protocol::Spead if streams != connections => {
                let what = format!(
                    "{streams} streams over {connections} connections: over UDP, each stream needs its own"
                );
                Some(Cause::new(what).with_hint("as many --connections as --streams"))
            }
            Protocol::Vdif { frames_per_second } => {
                let is_frame = |bytes: u64| bytes >= 40 && bytes.is_multiple_of(8);
                let fits = matches!(size, EventSize::Fixed(bytes) if is_frame(bytes));
                if !fits {
                    let what =
                        "VDIF frames need a fixed event size that is a multiple of 8 and at least 40 bytes";
                    return Some(Cause::new(what).with_hint("--event 8032B"));
                }
                let is_number = (1..1 << 24).contains(&frames_per_second);
                (!is_number).then(|| {
                    format!("{frames_per_second} VDIF frames per second: must be 1 to 16777215").into()
                })
            }
            Protocol::Dectris(_) => self.images_fault("DECTRIS detector"),
            Protocol::PvAccess if size.max_bytes() > NTNDARRAY_BYTES_MAX => {
                let bytes = size.max_bytes();
                Some(
                    format!("images of {bytes} bytes, limit {NTNDARRAY_BYTES_MAX} bytes over pvAccess")
                        .into(),
                )
            }
            Protocol::PvAccess if self.compressed => Some("a simulated IOC does not compress images".into()),
            Protocol::PvAccess => self.images_fault("IOC"),
            Protocol::Keepup | Protocol::Udp | Protocol::Spead | Protocol::Files => None,
        }
    }

    /// Faults of a source of images, which `simulated` says.
    fn images_fault(&self, simulated: &str) -> Option<Cause> {
        if !self.compressed && !matches!(self.size, EventSize::Fixed(1..)) {
            let what =
                format!("images of a simulated {simulated} need a fixed event size of at least 1 byte");
            return Some(Cause::new(what).with_hint("--as keepup, or a profile with event.compression"));
        }
        let what = || format!("{} streams: a simulated {simulated} has one", self.streams);
        (self.streams != 1).then(|| Cause::new(what()).with_hint("--streams 1"))
    }

    fn size_fault(&self) -> Option<Cause> {
        let max = self.size.max_bytes();
        match self.size {
            EventSize::Uniform { min, max } if min > max => {
                return Some(
                    format!("event sizes from {min} to {max} bytes: the smallest is above the largest")
                        .into(),
                );
            }
            EventSize::LogNormal { median, sigma, max }
                if median == 0 || median > max || !(0.0..=10.0).contains(&sigma) =>
            {
                return Some(
                    format!(
                        "log-normal event sizes with median {median}, sigma {sigma}, largest {max}: \
                     median must be 1 to the largest, sigma 0 to 10"
                    )
                    .into(),
                );
            }
            _ => {}
        }
        if self.buffer_bytes < max.saturating_add(HEADER_BYTES as u64) {
            let what = format!(
                "front-end buffer of {} bytes: an event takes up to {max} and {HEADER_BYTES} for its header",
                self.buffer_bytes
            );
            return Some(
                Cause::new(what).with_hint("make the buffer larger; a detector holds several events"),
            );
        }
        if self.compressed {
            return self.compression_fault().or_else(|| self.hello(0).check().err());
        }
        let shaped = self.image_bytes();
        if !self.shape.is_empty() && (self.size != EventSize::Fixed(max) || shaped != Some(max)) {
            let what = format!(
                "shape {:?} of {} says {} bytes per event, the size is {:?}",
                self.shape,
                self.element,
                shaped.map_or("no number of".to_owned(), |bytes| bytes.to_string()),
                self.size
            );
            let hint = "a shape needs events of a fixed size that it fits; leave it out for others";
            return Some(Cause::new(what).with_hint(hint));
        }
        self.hello(0).check().err()
    }

    /// Faults of compressed images.
    fn compression_fault(&self) -> Option<Cause> {
        let bytes = self.image_bytes();
        if !matches!(self.element, ElementType::U8 | ElementType::U16 | ElementType::U32) || bytes.is_none() {
            let (element, shape) = (self.element, &self.shape);
            return Some(format!("compressed images of {element} and shape {shape:?}").into());
        }
        let (bytes, max) = (bytes.unwrap_or(0), self.size.max_bytes());
        if bytes < BLOCK_BYTES as u64 {
            return Some(format!("compressed images of {bytes} bytes: at least {BLOCK_BYTES}").into());
        }
        let (least, most) = (bytes / COMPRESSION_MAX, bytes);
        (!(least..=most).contains(&max)).then(|| {
            let what = format!("images of {bytes} bytes, compressed to at most {max} bytes");
            Cause::new(what).with_hint(format!("event.max from {least} to {most} bytes"))
        })
    }

    /// Hello of one connection: every `connections`-th stream, starting with its own number.
    pub(super) fn hello(&self, connection: u32) -> Hello {
        let streams = (connection..self.streams).step_by(self.connections.max(1) as usize).map(|stream| {
            let id = self.first_stream + stream;
            StreamInfo {
                id,
                name: format!("stream-{id}"),
                element: if self.compressed { ElementType::U8 } else { self.element },
                shape: if self.compressed { Vec::new() } else { self.shape.clone() },
                compression: None,
            }
        });
        let client_streams = (self.connections > 1).then_some(self.streams);
        Hello { client_streams, ..Hello::new("keepup source", streams.collect()) }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub(crate) mod tests;
