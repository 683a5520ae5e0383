//! A detector that waits for its receiver: its address, and the decoder of what it sends.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_recording::account::Incidents;
use keepup_sources::capture::Capture;
use keepup_sources::{Decoder, Limits, MAP_ID_MIN, MAPS_MAX, MORE_IDS_MIN, STREAMS_MAX, SourceAddress};
use keepup_stream::wire::{METADATA_BYTES_MAX, StreamInfo};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::store::Store;
use crate::capture_feed::CaptureFeed;
use crate::counters::Counters;

/// Largest events that a message may hold: one of each channel.
const MESSAGE_EVENTS: usize = 4;
/// Longest start message of a series in any case: maps are larger than compressed images.
const START_BYTES_MAX: usize = 1 << 30;
/// Allowance in a message for everything except events.
const MESSAGE_SPARE_BYTES: usize = 16 << 20;

/// A detector.
pub(super) struct Detector {
    pub(super) address: SourceAddress,
    pub(super) decoder: Box<dyn Decoder>,
    pub(super) event_bytes_max: u64,
    /// Its place among the detectors of the recording.
    pub(super) place: u32,
    /// Whether there are others.
    is_one_of_several: bool,
    /// Id of its first stream beyond [`STREAMS_MAX`].
    more_ids: u32,
    /// Next of its addresses to try.
    attempts: usize,
    /// Earliest time of the next attempt.
    pub(super) retry_ns: u64,
    /// Whether a failure to connect is in the report already.
    pub(super) is_noted: bool,
    /// Stream slot and sequence number of an event that waits for memory.
    pub(super) blocked: Option<(usize, u64)>,
    /// Packets of a file, in place of a connection.
    pub(super) feed: Option<CaptureFeed>,
    /// Whether the decoder knows that the file has ended.
    is_finished: bool,
}

impl Detector {
    pub(super) fn new(
        address: SourceAddress,
        event_bytes_max: u64,
        (place, is_one_of_several, more_ids): (u32, bool, u32),
        opened_ns: u64,
    ) -> Self {
        let event_bytes = usize::try_from(event_bytes_max).unwrap_or(usize::MAX);
        let images = event_bytes.saturating_mul(MESSAGE_EVENTS).saturating_add(MESSAGE_SPARE_BYTES);
        let message_bytes_max = if address.has_series() { images.max(START_BYTES_MAX) } else { images };
        let limits = Limits { message_bytes_max, event_bytes_max };
        let decoder = address.decoder(limits, opened_ns);
        Self {
            address,
            decoder,
            event_bytes_max,
            place,
            is_one_of_several,
            more_ids: MORE_IDS_MIN + more_ids,
            attempts: 0,
            retry_ns: 0,
            is_noted: false,
            blocked: None,
            feed: None,
            is_finished: false,
        }
    }

    /// Starts to read its file; returns a descriptor that is readable while there are packets.
    pub(super) fn read(&mut self, capture: Capture, clock: &Arc<dyn Clock>) -> Result<OwnedFd, Cause> {
        let keeps_pace = matches!(&self.address, SourceAddress::Capture(address) if address.keeps_pace);
        let (feed, descriptor) = CaptureFeed::start(capture, keeps_pace, Arc::clone(clock))?;
        self.feed = Some(feed);
        Ok(descriptor)
    }

    /// Tells the decoder that its file has ended; returns whether this is new.
    pub(super) fn finish_file(&mut self, store: &mut Store) -> bool {
        if std::mem::replace(&mut self.is_finished, true) {
            return false;
        }
        self.decoder.finish(0);
        if let Some(feed) = &mut self.feed {
            let source = self.address.to_string();
            let remarks = std::mem::take(&mut feed.remarks).into_iter();
            remarks.for_each(|remark| store.incidents.push(format!("{source}: {remark}")));
            std::mem::take(&mut feed.rejected).iter().for_each(|rejection| store.reject(&source, rejection));
        }
        true
    }

    /// Why its file could not be read up to the end.
    pub(super) fn take_failure(&mut self) -> Option<Cause> {
        self.feed.as_mut().and_then(|feed| feed.failure.take())
    }

    /// Notes that the rest of its file is not recorded, if there is any.
    pub(super) fn note_rest_of_file(&self, incidents: &mut Incidents) {
        if self.feed.as_ref().is_some_and(|feed| !feed.has_ended()) {
            incidents.push(format!("{}: stopped before the end of the file", self.address));
        }
    }

    /// Streams with the ids and names that they have in the recording.
    ///
    /// Several detectors may use the same ids and names, so they get an offset and a prefix.
    pub(super) fn streams_of_recording(&self, streams: &[StreamInfo]) -> Vec<StreamInfo> {
        if !self.is_one_of_several {
            return streams.to_vec();
        }
        let id = |id: u32| match id.checked_sub(MAP_ID_MIN) {
            Some(map) => MAP_ID_MIN + self.place * MAPS_MAX as u32 + map,
            None => match id.checked_sub(STREAMS_MAX as u32) {
                Some(more) => self.more_ids + more,
                None => self.place * STREAMS_MAX as u32 + id,
            },
        };
        let stream = |info: &StreamInfo| StreamInfo {
            id: id(info.id),
            name: self.address.stream_name(&info.name),
            ..info.clone()
        };
        streams.iter().map(stream).collect()
    }

    /// Metadata of the detector. With several detectors, each name starts with the detector's address.
    pub(super) fn metadata(&self) -> BTreeMap<String, String> {
        let of_recording = |name: &String| match self.is_one_of_several {
            true => format!("{}/{name}", self.address.prefix()),
            false => name.clone(),
        };
        let entries = self.decoder.metadata().iter().map(|(name, value)| (of_recording(name), value.clone()));
        entries.filter(|(name, value)| name.len() + value.len() <= METADATA_BYTES_MAX).collect()
    }

    /// Publishes how far it is.
    pub(super) fn publish(&self, counters: &Counters) {
        if let Some(progress) = counters.sources.get(self.place as usize) {
            progress.is_ready.store(self.decoder.is_ready(), Relaxed);
            progress.has_series.store(self.decoder.has_series(), Relaxed);
        }
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
