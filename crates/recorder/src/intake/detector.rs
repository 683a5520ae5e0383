//! A detector that waits for its receiver: its address, and the decoder of what it sends.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use keepup_peer::Endpoint;
use keepup_sources::{Decoder, Limits, STREAMS_MAX, SourceAddress};
use keepup_stream::wire::{METADATA_BYTES_MAX, StreamInfo};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Largest events that a message may hold: one of each channel, or the tables of a start message.
const MESSAGE_EVENTS: usize = 4;
/// Allowance in a message for everything except events.
const MESSAGE_SPARE_BYTES: usize = 16 << 20;

/// A detector.
pub(super) struct Detector {
    pub(super) address: SourceAddress,
    pub(super) decoder: Box<dyn Decoder>,
    pub(super) event_bytes_max: u64,
    /// Its place among the detectors of the recording, if there are several.
    pub(super) place: Option<u32>,
    /// Next of its addresses to try.
    attempts: usize,
    /// Earliest time of the next attempt.
    pub(super) retry_ns: u64,
    /// Whether a failure to connect is in the report already.
    pub(super) is_noted: bool,
    /// Stream slot and sequence number of an event that waits for memory.
    pub(super) blocked: Option<(usize, u64)>,
}

impl Detector {
    pub(super) fn new(
        address: SourceAddress,
        event_bytes_max: u64,
        place: Option<u32>,
        opened_ns: u64,
    ) -> Self {
        let event_bytes = usize::try_from(event_bytes_max).unwrap_or(usize::MAX);
        let message_bytes_max =
            event_bytes.saturating_mul(MESSAGE_EVENTS).saturating_add(MESSAGE_SPARE_BYTES);
        let limits = Limits { message_bytes_max, event_bytes_max };
        let decoder = address.decoder(limits, opened_ns);
        Self {
            address,
            decoder,
            event_bytes_max,
            place,
            attempts: 0,
            retry_ns: 0,
            is_noted: false,
            blocked: None,
        }
    }

    /// Streams with the ids and names that they have in the recording.
    ///
    /// Several detectors may use the same ids and names, so they get an offset and a prefix.
    pub(super) fn streams_of_recording(&self, streams: &[StreamInfo]) -> Vec<StreamInfo> {
        let Some(place) = self.place else { return streams.to_vec() };
        let stream = |info: &StreamInfo| StreamInfo {
            id: place * STREAMS_MAX as u32 + info.id,
            name: self.address.stream_name(&info.name),
            ..info.clone()
        };
        streams.iter().map(stream).collect()
    }

    /// Metadata of the detector. With several detectors, each name starts with the detector's address.
    pub(super) fn metadata(&self) -> BTreeMap<String, String> {
        let of_recording = |name: &String| match self.place {
            Some(_) => format!("{}/{name}", self.address.prefix()),
            None => name.clone(),
        };
        let entries = self.decoder.metadata().iter().map(|(name, value)| (of_recording(name), value.clone()));
        entries.filter(|(name, value)| name.len() + value.len() <= METADATA_BYTES_MAX).collect()
    }

    pub(super) fn bytes_due(&self) -> usize {
        self.decoder.bytes_due()
    }

    pub(super) fn is_within_message(&self) -> bool {
        self.decoder.is_within_message()
    }

    pub(super) fn outgoing(&mut self) -> Vec<u8> {
        self.decoder.outgoing()
    }

    /// The address to try now, of those of its endpoint.
    pub(super) fn next_address(&mut self, endpoint: &Endpoint) -> SocketAddr {
        let addresses: Vec<_> = endpoint.addresses().collect();
        self.attempts += 1;
        addresses[(self.attempts - 1) % addresses.len()]
    }
}

/// Begins to connect without waiting.
pub(super) fn connect(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}
