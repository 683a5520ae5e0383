//! SPEAD-64-48 heaps over UDP, in packets as spead2 sends them: each event is a heap, each connection a
//! sender.
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::time::Duration;

use keepup_peer::Endpoint;

use super::super::StreamReport;
use super::super::event::Event;
use super::super::plan::SourcePlan;
use super::datagrams::{Datagrams, Train};
use super::{Framing, Link};
use crate::client::{ClientError, Sent};
use crate::time::monotonic_ns;
use crate::wire::Bye;

/// Payload of a packet, bytes: with its headers, it fits a jumbo frame.
const PAYLOAD_BYTES: usize = 8192;
/// Words in front of the payload: the header and five item pointers.
const WORDS: usize = 6;
const HEADER_BYTES: usize = 8 * WORDS;
/// Most packets of a train, which is limited by the length of a datagram.
const TRAIN_MAX: usize = 8;
/// Magic number, version 4, bytes of an item id and of an address, number of items.
const HEADER: u64 = 0x5304_0206_0000_0005;
/// Items of the protocol, and that with the payload, as in the examples of spead2.
const HEAP_COUNT: u64 = 1;
const HEAP_LENGTH: u64 = 2;
const PAYLOAD_OFFSET: u64 = 3;
const PAYLOAD_LENGTH: u64 = 4;
const STREAM_CONTROL: u64 = 6;
const DATA: u64 = 0x3300;
const STOP: u64 = 2;

/// A socket that sends heaps.
pub(super) struct Spead {
    datagrams: Datagrams,
    /// Heap of which the payload is being sent.
    heap: Heap,
    /// Number of the next heap.
    next: u64,
    streams: usize,
    bytes_max: u64,
}

/// A heap and how much of it was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Heap {
    number: u64,
    length: u64,
    offset: u64,
}

impl Heap {
    /// Header of the packet with the next `bytes`.
    fn header(&self, bytes: usize, last_item: u64) -> [u8; HEADER_BYTES] {
        let value = |id: u64, value: u64| 1 << 63 | id << 48 | value & ((1 << 48) - 1);
        let words = [
            HEADER,
            value(HEAP_COUNT, self.number),
            value(HEAP_LENGTH, self.length),
            value(PAYLOAD_OFFSET, self.offset),
            value(PAYLOAD_LENGTH, bytes as u64),
            last_item,
        ];
        let mut header = [0; HEADER_BYTES];
        header.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_be_bytes()));
        header
    }
}

impl Spead {
    /// Opens a socket towards `to`.
    pub(super) fn open(plan: &SourcePlan, connection: u32, to: &Endpoint) -> Result<Self, ClientError> {
        let streams = (connection..plan.streams).step_by(plan.connections.max(1) as usize).count();
        let (datagrams, bytes_max) = (Datagrams::open(to)?, plan.heap_bytes_max());
        Ok(Self { datagrams, heap: Heap::default(), next: 0, streams, bytes_max })
    }

    /// Sends the next part of the payload; an empty heap has one packet. Returns whether all was sent.
    fn send_payload(
        &mut self,
        mut payload: &[u8],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<bool, ClientError> {
        let bytes = HEADER_BYTES + PAYLOAD_BYTES;
        loop {
            let most = self.datagrams.datagrams_max(bytes).min(TRAIN_MAX);
            let length = payload.len().min(most * PAYLOAD_BYTES);
            let parts: Vec<&[u8]> = match length {
                0 => vec![&[]],
                _ => payload[..length].chunks(PAYLOAD_BYTES).collect(),
            };
            let mut heap = self.heap;
            let mut headers = [[0; HEADER_BYTES]; TRAIN_MAX];
            for (header, part) in headers.iter_mut().zip(&parts) {
                // Only the first packet of a heap names the item; in the others, an empty item keeps the
                // length.
                *header = heap.header(part.len(), if heap.offset == 0 { DATA << 48 } else { 0 });
                heap.offset += part.len() as u64;
            }
            let slices = headers.iter().zip(&parts).flat_map(|(header, part)| [&header[..], part]);
            let slices: Vec<IoSlice<'_>> = slices.map(IoSlice::new).collect();
            match self.datagrams.send(&slices, bytes, on_blocked)? {
                Train::Sent => (self.heap, payload) = (heap, &payload[length..]),
                Train::Stopped => return Ok(false),
                Train::TooLong => continue,
            }
            if payload.is_empty() {
                return Ok(true);
            }
        }
    }
}

impl Framing for Spead {
    fn has_checksum(&self) -> bool {
        false
    }

    /// Number and length of the heap, which [`Link::send`] puts into each packet.
    fn put_header(&self, event: &Event, _timestamp_ns: u64, _crc: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&event.sequence.to_be_bytes());
        out.extend_from_slice(&event.bytes.to_be_bytes());
    }
}

impl Link for Spead {
    fn event_bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn first_sequences(&self) -> Vec<u64> {
        vec![0; self.streams]
    }

    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        while let Some(slice) = slices.first() {
            let is_header = self.heap.offset == self.heap.length && !slice.is_empty();
            let header = slice.first_chunk::<8>().zip(slice.last_chunk::<8>()).filter(|_| is_header);
            let is_sent = match header {
                Some((number, length)) => {
                    let (number, length) = (u64::from_be_bytes(*number), u64::from_be_bytes(*length));
                    self.heap = Heap { number, length, offset: 0 };
                    self.next = number + 1;
                    length > 0 || self.send_payload(&[], on_blocked)?
                }
                None => slice.is_empty() || self.send_payload(slice, on_blocked)?,
            };
            if !is_sent {
                return Ok(Sent::Stopped);
            }
            *slices = &mut std::mem::take(slices)[1..];
        }
        Ok(Sent::All)
    }

    fn poll(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    fn blocked_ns(&self) -> (u64, u64) {
        self.datagrams.blocked_ns()
    }

    fn durable_events(&self, _streams: &[StreamReport]) -> u64 {
        0
    }

    /// Sends the stop, a heap with a number of its own. Nobody confirms it.
    fn finish(mut self: Box<Self>, _streams: &[StreamReport], timeout: Duration) -> Result<Bye, ClientError> {
        let stop = Heap { number: self.next, length: 1, offset: 0 };
        let header = stop.header(1, 1 << 63 | STREAM_CONTROL << 48 | STOP);
        let start_ns = monotonic_ns();
        let mut on_blocked = || match monotonic_ns() - start_ns < timeout.as_nanos() as u64 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let packet = [IoSlice::new(&header), IoSlice::new(&[0])];
        while self.datagrams.send(&packet, HEADER_BYTES + 1, &mut on_blocked)? == Train::TooLong {}
        Ok(Bye { streams: Vec::new() })
    }

    fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        self.datagrams.timed_out(action, waited)
    }
}

#[cfg(test)]
#[path = "spead_tests.rs"]
mod tests;
