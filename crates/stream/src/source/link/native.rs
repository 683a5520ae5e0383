//! keepup's own protocol, with acknowledgements.
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_peer::Endpoint;

use super::super::StreamReport;
use super::super::event::Event;
use super::super::plan::SourcePlan;
use super::{Framing, Link};
use crate::client::{Client, ClientError, Sent};
use crate::wire::{Bye, End, EndStream, FrameKind, Header};

/// A client and the largest event that its recorder takes, bytes.
pub(super) struct Native(Client, u64);

/// Connects, and declares the streams of the connection.
pub(super) fn open(
    plan: &SourcePlan,
    connection: u32,
    to: &Endpoint,
    timeout: Duration,
) -> Result<Native, ClientError> {
    let (client, welcome) = Client::connect(to, &plan.hello(connection), timeout)?;
    Ok(Native(client, welcome.max_event_bytes))
}

impl Framing for Native {
    fn has_checksum(&self) -> bool {
        true
    }

    fn put_header(&self, event: &Event, timestamp_ns: u64, crc: u32, out: &mut Vec<u8>) {
        put_header(event, timestamp_ns, crc, out);
    }
}

/// Appends the header of an event.
pub(in super::super) fn put_header(event: &Event, timestamp_ns: u64, crc: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(event, timestamp_ns, crc).encode());
}

/// Header of an event.
pub(in super::super) fn header(event: &Event, timestamp_ns: u64, crc: u32) -> Header {
    Header {
        kind: FrameKind::Event,
        stream: event.stream,
        sequence: event.sequence,
        timestamp_ns,
        length: event.bytes,
        crc,
        a: 0,
        b: 0,
    }
}

impl Link for Native {
    fn event_bytes_max(&self) -> u64 {
        self.1
    }

    fn first_sequences(&self) -> Vec<u64> {
        self.0.acks().iter().map(|ack| ack.received_next).collect()
    }

    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        self.0.send(slices, on_blocked)
    }

    fn poll(&mut self) -> Result<(), ClientError> {
        self.0.poll_acks()
    }

    fn blocked_ns(&self) -> (u64, u64) {
        (self.0.blocked_ns(), self.0.longest_blocked_ns())
    }

    /// Stored events below the durable watermark, at most as many as were sent.
    fn durable_events(&self, streams: &[StreamReport]) -> u64 {
        let passed = self.0.acks().iter().zip(streams);
        let passed =
            passed.map(|(ack, s)| ack.durable_next.saturating_sub(s.first_sequence).min(s.sent.events));
        passed.zip(self.0.lost_events()).map(|(passed, lost)| passed.saturating_sub(lost)).saturating_sum()
    }

    fn finish(self: Box<Self>, streams: &[StreamReport], timeout: Duration) -> Result<Bye, ClientError> {
        let streams = streams.iter().map(|stream| EndStream {
            id: stream.id,
            events: stream.sent.events,
            bytes: stream.sent.bytes,
            lost_events: stream.lost.events,
            lost_bytes: stream.lost.bytes,
            next_sequence: stream.next_sequence,
        });
        self.0.finish(&End { streams: streams.collect() }, timeout)
    }

    fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        self.0.timed_out(action, waited)
    }
}
