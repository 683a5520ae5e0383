//! One connection to a recorder, with the bytes that it has not taken.
//!
//! Never waits. Invariant: the bytes in `out` are whole frames of events, or the header and pieces of a large
//! event in order.
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use keepup_measure::sum::Sums;

use super::super::clock::Clock;
use super::super::event::Event;
use super::super::link::native::header;
use super::kept::{ConnectionId, Kept, Outgoing, Position};
use super::payload::Payload;
use crate::client::{Client, ClientError, Sent, Waits};
use crate::wire::{HEADER_BYTES, crc32};

/// Bytes of events for one system call, if they are small.
const BATCH_BYTES: usize = 256 << 10;
/// Largest event whose frame is built in one go; the payload of a larger one is built once more for the
/// checksum.
const WHOLE_BYTES_MAX: u64 = 512 << 10;
/// System calls before other connections get their turn.
const TURN: usize = 4;

/// A connection.
pub(super) struct Outlet {
    pub(super) number: ConnectionId,
    pub(super) address: SocketAddr,
    /// Its streams, in the order of hello.
    pub(super) slots: Vec<usize>,
    pub(super) client: Client,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent_bytes: usize,
    /// Large event, and where its next piece starts.
    rest: Option<(Event, u64)>,
    blocked_since_ns: Option<u64>,
    waits: Waits,
    /// When the recorder last took something, acknowledged something, or had nothing to do; ns.
    pub(super) progress_ns: u64,
    /// Whether answers may have arrived.
    pub(super) is_readable: bool,
    /// Sum of what the recorder expects next, over the streams.
    received: u64,
}

/// What a connection needs to build frames.
pub(super) struct Builder<'a> {
    pub(super) kept: &'a mut Kept,
    pub(super) payload: &'a mut Payload,
    pub(super) clock: &'a Clock,
}

impl Outlet {
    pub(super) fn new(
        number: ConnectionId,
        address: SocketAddr,
        slots: Vec<usize>,
        client: Client,
        now_ns: u64,
    ) -> Self {
        Self {
            number,
            address,
            slots,
            client,
            out: Vec::with_capacity(BATCH_BYTES + WHOLE_BYTES_MAX as usize),
            sent_bytes: 0,
            rest: None,
            blocked_since_ns: None,
            waits: Waits::default(),
            progress_ns: now_ns,
            is_readable: true,
            received: 0,
        }
    }

    /// Whether the socket is full.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since_ns.is_some()
    }

    /// Whether it has bytes to send, apart from events in `kept`.
    pub(super) fn has_bytes(&self) -> bool {
        self.sent_bytes < self.out.len() || self.rest.is_some()
    }

    /// Time spent waiting for space in the socket, ns.
    pub(super) fn blocked_ns(&self, now_ns: u64) -> u64 {
        let current_ns = self.blocked_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.waits.total_ns.saturating_add(current_ns)
    }

    /// Longest single wait for space in the socket, ns.
    pub(super) fn longest_blocked_ns(&self, now_ns: u64) -> u64 {
        let current_ns = self.blocked_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.waits.longest_ns.max(current_ns)
    }

    /// Handles the acknowledgements that have been read; returns the bytes that they release.
    pub(super) fn acknowledge(&mut self, kept: &mut Kept, now_ns: u64) -> u64 {
        let (mut released_bytes, mut received) = (0, 0u64);
        for (slot, position) in self.positions() {
            received = received.wrapping_add(position.next_sequence);
            released_bytes += kept.acknowledge(slot, position, now_ns);
        }
        let has_received = std::mem::replace(&mut self.received, received) != received;
        if released_bytes > 0 || has_received || !(self.has_bytes() || kept.has_events(self.number)) {
            self.progress_ns = now_ns;
        }
        released_bytes
    }

    /// Positions of its streams by the answers so far.
    pub(super) fn positions(&self) -> impl Iterator<Item = (usize, Position)> + '_ {
        self.slots.iter().zip(self.client.acks()).map(|(&slot, ack)| {
            let position = Position {
                next_sequence: ack.received_next,
                durable_next: ack.durable_next,
                lost_events: ack.lost_events,
            };
            (slot, position)
        })
    }

    /// Sends what the socket takes. Calls `on_sent` with each event whose frame was built.
    pub(super) fn pump(
        &mut self,
        now_ns: u64,
        builder: &mut Builder<'_>,
        on_sent: &mut dyn FnMut(&Outgoing),
    ) -> Result<(), ClientError> {
        for _ in 0..TURN {
            if self.sent_bytes == self.out.len() && !self.refill(builder, on_sent) {
                return Ok(());
            }
            if !self.flush(now_ns)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Builds the next frames; `false` if there is nothing to send.
    fn refill(&mut self, builder: &mut Builder<'_>, on_sent: &mut dyn FnMut(&Outgoing)) -> bool {
        self.out.clear();
        self.sent_bytes = 0;
        while self.out.len() < BATCH_BYTES {
            if let Some((event, from)) = self.rest.take() {
                let next = builder.payload.append(&event, from, &mut self.out);
                self.rest = (next < event.bytes).then_some((event, next));
                continue;
            }
            let Some(outgoing) = builder.kept.next(self.number) else { break };
            self.build(&outgoing.event, builder);
            on_sent(&outgoing);
        }
        !self.out.is_empty()
    }

    /// Builds the frame of an event, or the header of a large one.
    fn build(&mut self, event: &Event, builder: &mut Builder<'_>) {
        let timestamp_ns = builder.clock.unix_ns(event.due_ns);
        if event.bytes > WHOLE_BYTES_MAX {
            let crc = builder.payload.crc(event);
            self.out.extend_from_slice(&header(event, timestamp_ns, crc).encode());
            self.rest = Some((*event, 0));
            return;
        }
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER_BYTES]);
        let mut from = 0;
        while from < event.bytes {
            from = builder.payload.append(event, from, &mut self.out);
        }
        let (head, payload) = self.out[start..].split_at_mut(HEADER_BYTES);
        head.copy_from_slice(&header(event, timestamp_ns, crc32(payload)).encode());
    }

    /// Sends built frames; `false` if the socket is full.
    fn flush(&mut self, now_ns: u64) -> Result<bool, ClientError> {
        let mut slices = [IoSlice::new(&self.out[self.sent_bytes..])];
        let mut unsent = &mut slices[..];
        let sent = self.client.send(&mut unsent, &mut || ControlFlow::Break(()))?;
        let left: usize = unsent.iter().map(|slice| slice.len()).saturating_sum();
        let sent_bytes = self.out.len() - left;
        if sent_bytes > self.sent_bytes {
            self.progress_ns = now_ns;
        }
        self.sent_bytes = sent_bytes;
        match sent {
            Sent::All => {
                if let Some(since_ns) = self.blocked_since_ns.take() {
                    self.waits.add(now_ns.saturating_sub(since_ns));
                }
                Ok(true)
            }
            Sent::Stopped => {
                self.blocked_since_ns.get_or_insert(now_ns);
                Ok(false)
            }
        }
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.as_fd()
    }
}
