//! Events of a connection group until they are acknowledged, and what each connection sends next. Pure.
//!
//! Invariants: a connection gets the events of a stream in order, each once; an event is removed when it is
//! acknowledged or given up, and counted once. It holds descriptions of events, not data. A description is
//! smaller than the header that an event occupies in the front-end buffer, so this buffer bounds the memory.
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use super::super::event::Event;
use crate::ledger::Count;
use crate::wire::{EndStream, FrameKind, WireError};

/// Number of a connection; never used twice.
pub(super) type ConnectionId = u64;

/// Position of a stream at its recorder, from a welcome or an ack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Sequence number that the recorder expects next.
    pub(super) next_sequence: u64,
    /// First sequence number that is not durable.
    pub(super) durable_next: u64,
    /// Events that reached the recorder and are not stored.
    pub(super) lost_events: u64,
}

/// An event to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) event: Event,
    /// Whether it was sent before.
    pub(super) is_again: bool,
}

#[derive(Debug, Clone, Copy)]
struct KeptEvent {
    sequence: u64,
    due_ns: u64,
    bytes: u64,
    /// Payload of the events before it that were lost at the source.
    gap_bytes: u64,
}

impl KeptEvent {
    fn event(&self, slot: usize, stream: u32) -> Event {
        Event { slot, stream, sequence: self.sequence, due_ns: self.due_ns, bytes: self.bytes }
    }
}

/// A stream on its connection.
#[derive(Debug)]
struct Route {
    connection: ConnectionId,
    /// Number of kept events that this connection has not sent; the last ones.
    unsent: usize,
    is_queued: bool,
    /// What the recorder expected first.
    first: u64,
    sent: Count,
    gap_bytes: u64,
}

#[derive(Debug)]
struct Stream {
    id: u32,
    events: VecDeque<KeptEvent>,
    /// First sequence number without acknowledgement.
    durable_next: u64,
    /// One past the last event that was sent to any recorder.
    sent_next: u64,
    /// One past the last number that a recorder can know.
    assigned_next: u64,
    /// Since when its first event waits for an acknowledgement, ns.
    waits_since_ns: Option<u64>,
    route: Option<Route>,
    /// The last recorder, and its number of lost events.
    recorder: Option<(SocketAddr, u64)>,
}

/// Streams of a connection.
#[derive(Debug, Default)]
struct Connection {
    /// Those with events to send, in turn.
    queue: VecDeque<usize>,
    /// Number of their kept events.
    kept: usize,
}

/// Events without acknowledgement.
#[derive(Debug)]
pub(super) struct Kept {
    streams: Vec<Stream>,
    connections: BTreeMap<ConnectionId, Connection>,
    events: usize,
    pub(super) acknowledged: Count,
    pub(super) sent_again: Count,
    pub(super) lost_at_recorders: u64,
    pub(super) moves: u64,
}

impl Kept {
    /// Streams with their ids and first sequence numbers, in order of their slots.
    pub(super) fn new(streams: impl Iterator<Item = (u32, u64)>) -> Self {
        let stream = |(id, first)| Stream {
            id,
            events: VecDeque::new(),
            durable_next: first,
            sent_next: first,
            assigned_next: first,
            waits_since_ns: None,
            route: None,
            recorder: None,
        };
        Self {
            streams: streams.map(stream).collect(),
            connections: BTreeMap::new(),
            events: 0,
            acknowledged: Count::default(),
            sent_again: Count::default(),
            lost_at_recorders: 0,
            moves: 0,
        }
    }

    /// One past the last event of a stream that was added.
    pub(super) fn next_sequence(&self, slot: usize) -> u64 {
        self.streams[slot].assigned_next
    }

    /// First sequence number of a stream without acknowledgement.
    pub(super) fn durable_next(&self, slot: usize) -> u64 {
        self.streams[slot].durable_next
    }

    /// Whether everything is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether a connection has events without acknowledgement.
    pub(super) fn has_events(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|connection| connection.kept > 0)
    }

    /// Whether a connection has events to send.
    pub(super) fn has_unsent(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|connection| !connection.queue.is_empty())
    }

    /// First stream without an acknowledgement for `patience`, although it has events.
    pub(super) fn overdue(&self, now_ns: u64, patience: Duration) -> Option<u32> {
        let is_overdue = |stream: &&Stream| {
            let waited_ns = stream.waits_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
            u128::from(waited_ns) > patience.as_nanos()
        };
        self.streams.iter().find(is_overdue).map(|stream| stream.id)
    }

    /// Adds an event; `gap_bytes` is the payload of the events before it that were lost at the source.
    pub(super) fn push(&mut self, event: &Event, gap_bytes: u64, now_ns: u64) {
        let stream = &mut self.streams[event.slot];
        let Event { sequence, due_ns, bytes, .. } = *event;
        stream.events.push_back(KeptEvent { sequence, due_ns, bytes, gap_bytes });
        stream.assigned_next = sequence + 1;
        stream.waits_since_ns.get_or_insert(now_ns);
        self.events += 1;
        let Some(route) = &mut stream.route else { return };
        let Some(connection) = self.connections.get_mut(&route.connection) else { return };
        connection.kept += 1;
        route.unsent += 1;
        if !std::mem::replace(&mut route.is_queued, true) {
            connection.queue.push_back(event.slot);
        }
    }

    /// Gives streams without a connection to a new one, at the positions of its welcome; all or none.
    /// Returns the bytes that acknowledgements in the welcome release.
    ///
    /// # Errors
    /// The recorder expects an event that was acknowledged elsewhere, or one that does not exist.
    pub(super) fn attach(
        &mut self,
        number: ConnectionId,
        address: SocketAddr,
        positions: &[(usize, Position)],
        now_ns: u64,
    ) -> Result<u64, WireError> {
        for &(slot, position) in positions {
            let Stream { id, durable_next, assigned_next, .. } = self.streams[slot];
            if !(durable_next..=assigned_next).contains(&position.next_sequence) {
                let what = format!(
                    "the recorder expects event {} of stream {id}, possible are {durable_next} to \
                     {assigned_next}",
                    position.next_sequence
                );
                return Err(WireError::Invalid { kind: FrameKind::Welcome, what: what.into() });
            }
        }
        let mut released_bytes = 0;
        for &(slot, position) in positions {
            let stream = &mut self.streams[slot];
            let is_known = stream.recorder.is_some_and(|(last, _)| last == address);
            if !is_known {
                self.moves += u64::from(stream.recorder.is_some());
                stream.recorder = Some((address, position.lost_events));
            }
            released_bytes += self.acknowledge(slot, position, now_ns);
            let stream = &mut self.streams[slot];
            let sent = stream.events.partition_point(|event| event.sequence < position.next_sequence);
            let unsent = stream.events.len() - sent;
            stream.route = Some(Route {
                connection: number,
                unsent,
                is_queued: unsent > 0,
                first: position.next_sequence,
                sent: Count::default(),
                gap_bytes: 0,
            });
            let connection = self.connections.entry(number).or_default();
            connection.kept += stream.events.len();
            if unsent > 0 {
                connection.queue.push_back(slot);
            }
        }
        Ok(released_bytes)
    }

    /// Takes the streams `slots` of a connection off it. Their events are kept.
    pub(super) fn detach(&mut self, number: ConnectionId, slots: &[usize]) {
        self.connections.remove(&number);
        slots.iter().for_each(|&slot| self.streams[slot].route = None);
    }

    /// Next event for a connection.
    pub(super) fn next(&mut self, number: ConnectionId) -> Option<Outgoing> {
        let queue = &mut self.connections.get_mut(&number)?.queue;
        while let Some(slot) = queue.pop_front() {
            let stream = &mut self.streams[slot];
            let Some(route) = &mut stream.route else { continue };
            let index = stream.events.len() - route.unsent;
            let Some(kept) = stream.events.get(index) else {
                route.is_queued = false;
                continue;
            };
            route.unsent -= 1;
            route.is_queued = route.unsent > 0;
            if route.is_queued {
                queue.push_back(slot);
            }
            route.sent += Count::one(kept.bytes);
            route.gap_bytes += kept.gap_bytes;
            let is_again = kept.sequence < stream.sent_next;
            stream.sent_next = stream.sent_next.max(kept.sequence + 1);
            if is_again {
                self.sent_again += Count::one(kept.bytes);
            }
            return Some(Outgoing { event: kept.event(slot, stream.id), is_again });
        }
        None
    }

    /// Handles an acknowledgement from the recorder of a stream; returns the bytes that it releases.
    pub(super) fn acknowledge(&mut self, slot: usize, position: Position, now_ns: u64) -> u64 {
        let stream = &mut self.streams[slot];
        if let Some((_, lost)) = &mut stream.recorder
            && position.lost_events > *lost
        {
            let more = position.lost_events - *lost;
            self.lost_at_recorders = self.lost_at_recorders.saturating_add(more);
            *lost = position.lost_events;
        }
        // A recorder cannot acknowledge what it was not sent.
        let durable_next = position.durable_next.min(stream.sent_next);
        let (mut released_bytes, mut removed) = (0, 0);
        while let Some(kept) = stream.events.front().filter(|event| event.sequence < durable_next) {
            self.acknowledged += Count::one(kept.bytes);
            released_bytes += kept.event(slot, stream.id).occupied_bytes();
            removed += 1;
            stream.events.pop_front();
        }
        stream.durable_next = stream.durable_next.max(durable_next);
        self.events -= removed;
        if removed > 0 {
            stream.waits_since_ns = (!stream.events.is_empty()).then_some(now_ns);
        }
        if let Some(route) = &mut stream.route {
            route.unsent = route.unsent.min(stream.events.len());
            if let Some(connection) = self.connections.get_mut(&route.connection) {
                connection.kept -= removed;
            }
        }
        released_bytes
    }

    /// Final counts of a stream on its connection. The last number assigned is one below `next_sequence`;
    /// `tail_bytes` is the payload lost at the source after the last event.
    pub(super) fn end(&mut self, slot: usize, next_sequence: u64, tail_bytes: u64) -> EndStream {
        let stream = &mut self.streams[slot];
        stream.assigned_next = stream.assigned_next.max(next_sequence);
        let (first, sent, gap_bytes) = stream
            .route
            .as_ref()
            .map_or((next_sequence, Count::default(), 0), |route| (route.first, route.sent, route.gap_bytes));
        let lost_events = next_sequence.saturating_sub(first).saturating_sub(sent.events);
        let lost_bytes = if lost_events == 0 { 0 } else { gap_bytes + tail_bytes };
        let Count { events, bytes } = sent;
        EndStream { id: stream.id, events, bytes, lost_events, lost_bytes, next_sequence }
    }

    /// Removes all events; calls `on_removed` with each, and whether it was sent at least once.
    pub(super) fn give_up(&mut self, mut on_removed: impl FnMut(&Event, bool)) {
        for (slot, stream) in self.streams.iter_mut().enumerate() {
            for kept in stream.events.drain(..) {
                on_removed(&kept.event(slot, stream.id), kept.sequence < stream.sent_next);
            }
            stream.route = None;
        }
        self.connections.clear();
        self.events = 0;
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
