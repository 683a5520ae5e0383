//! Front end of the detector: a buffer bounded in bytes, and counts of due, sent and lost events.
//! Pure.
//!
//! Invariants: due = sent + lost + waiting + in flight, per stream, at any time; the buffer never
//! exceeds its capacity. It holds ranges of event numbers, not data, so its memory depends on the
//! number of interruptions and not on the backlog. An event occupies the buffer until its send
//! has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use super::StreamReport;
use super::event::Event;
use super::fill::BATCH_EVENTS_MAX;
use super::images::ImageSizes;
use super::plan::{EventSize, SourcePlan};
use super::schedule::{RoundRobin, Schedule, duration_ns};
use crate::ledger::Count;

/// First-in first-out buffer of event numbers, bounded by the events' bytes.
#[derive(Debug)]
pub(super) struct Fifo {
    ranges: VecDeque<std::ops::Range<u64>>,
    bytes: u64,
    bytes_max_seen: u64,
    capacity_bytes: u64,
}

impl Fifo {
    pub(super) fn new(capacity_bytes: u64) -> Fifo {
        Fifo { ranges: VecDeque::new(), bytes: 0, bytes_max_seen: 0, capacity_bytes }
    }

    /// Adds an event; numbers must rise. `false` if the buffer is full: the event is lost.
    pub(super) fn arrive(&mut self, number: u64, bytes: u64) -> bool {
        if bytes > self.capacity_bytes - self.bytes {
            return false;
        }
        self.bytes += bytes;
        self.bytes_max_seen = self.bytes_max_seen.max(self.bytes);
        match self.ranges.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => self.ranges.push_back(number..number + 1),
        }
        true
    }

    /// The oldest event.
    pub(super) fn peek(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.start)
    }

    /// Takes the oldest event from the queue; its bytes stay occupied until they are released.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let range = self.ranges.front_mut()?;
        let number = range.next();
        if range.is_empty() {
            self.ranges.pop_front();
        }
        number
    }

    /// Releases the bytes of events taken from the queue.
    pub(super) fn release(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Occupies space for an event that was never in the queue.
    fn occupy(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.bytes_max_seen = self.bytes_max_seen.max(self.bytes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn bytes_max_seen(&self) -> u64 {
        self.bytes_max_seen
    }
}

/// Counts of all streams of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) due: Count,
    pub(super) sent: Count,
    pub(super) lost: Count,
}

/// Next event to become due.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// Its number among this connection's events.
    k: u64,
    /// Due time, ns; 0 in a closed loop.
    due_ns: u64,
}

/// Front end of one connection.
#[derive(Debug)]
pub(super) struct FrontEnd {
    /// `None` in a closed loop: an event is due when it is taken.
    schedule: Option<Schedule>,
    round_robin: RoundRobin,
    size: EventSize,
    seed: u64,
    /// Sizes of compressed images, which differ a little from those drawn.
    images: Option<Arc<ImageSizes>>,
    events_end: u64,
    duration_ns: u64,
    /// `None` when no more events come.
    next: Option<Arrival>,
    /// End of the schedule, ns, even if its last event is due earlier; 0 after an early stop.
    open_until_ns: u64,
    fifo: Fifo,
    in_flight: Vec<Event>,
    streams: Vec<StreamReport>,
    totals: Totals,
}

impl FrontEnd {
    /// Creates the front end of one connection; `first_sequences` has the next sequence number of
    /// each of its streams.
    pub(super) fn new(
        plan: &SourcePlan,
        images: Option<Arc<ImageSizes>>,
        connection: u32,
        first_sequences: &[u64],
    ) -> FrontEnd {
        let round_robin = RoundRobin::new(plan.streams, plan.connections, connection);
        let streams =
            (0..round_robin.slots()).zip(first_sequences).map(|(slot, &first_sequence)| StreamReport {
                id: plan.first_stream + round_robin.position_of(slot as u64).number as u32,
                due: Count::default(),
                sent: Count::default(),
                lost: Count::default(),
                first_sequence,
                next_sequence: first_sequence,
            });
        let mut front = FrontEnd {
            schedule: Schedule::new(plan.rate, plan.burst),
            round_robin,
            size: plan.size,
            seed: plan.seed,
            images,
            events_end: plan.events.unwrap_or(u64::MAX),
            duration_ns: plan.duration.map_or(u64::MAX, duration_ns),
            next: None,
            open_until_ns: 0,
            fifo: Fifo::new(plan.buffer_bytes),
            in_flight: Vec::with_capacity(BATCH_EVENTS_MAX),
            streams: streams.collect(),
            totals: Totals::default(),
        };
        front.expect(0);
        front
    }

    /// Adds every event due until `now_ns` (from the start of the schedule). Does nothing in a
    /// closed loop, where events are due when they are taken.
    pub(super) fn advance(&mut self, now_ns: u64) {
        while let Some(Arrival { k, due_ns }) = self.next
            && self.schedule.is_some()
            && due_ns <= now_ns
        {
            let event = self.event(k, due_ns);
            self.count_due(&event);
            if !self.fifo.arrive(k, event.occupied_bytes()) {
                self.count_lost(&event);
            }
            self.expect(k + 1);
        }
    }

    /// Time of the next scheduled change after `now_ns`: an event becomes due, or the schedule
    /// ends. `None` when neither remains.
    pub(super) fn next_change_ns(&self, now_ns: u64) -> Option<u64> {
        match self.next {
            Some(next) => Some(next.due_ns),
            None => (now_ns < self.open_until_ns).then_some(self.open_until_ns),
        }
    }

    /// End of the schedule once no more events become due; ns.
    pub(super) fn closed_since_ns(&self) -> Option<u64> {
        self.next.is_none().then_some(self.open_until_ns)
    }

    /// Stops the schedule: no more events become due.
    pub(super) fn close(&mut self) {
        self.next = None;
        self.open_until_ns = 0;
    }

    /// Next event to send.
    pub(super) fn peek(&mut self, now_ns: u64) -> Option<Event> {
        if let Some(schedule) = self.schedule {
            let k = self.fifo.peek()?;
            return Some(self.event(k, schedule.due_ns(self.round_robin.position_of(k).number)));
        }
        if now_ns >= self.duration_ns {
            self.close();
        }
        Some(self.event(self.next?.k, now_ns))
    }

    /// Marks `event`, returned by `peek`, as in flight.
    pub(super) fn take(&mut self, event: Event) {
        self.pass(&event);
        self.in_flight.push(event);
    }

    /// Takes `event`, returned by `peek`. It occupies the buffer until it is released.
    pub(super) fn keep(&mut self, event: &Event) {
        self.pass(event);
        if self.schedule.is_none() {
            self.fifo.occupy(event.occupied_bytes());
        }
    }

    fn pass(&mut self, event: &Event) {
        if self.schedule.is_some() {
            self.fifo.pop();
        } else if let Some(Arrival { k, .. }) = self.next {
            self.count_due(event);
            self.expect(k + 1);
        }
    }

    /// Whether the buffer has space for `event`.
    pub(super) fn has_space(&self, event: &Event) -> bool {
        event.occupied_bytes() <= self.fifo.capacity_bytes.saturating_sub(self.fifo.bytes)
    }

    /// Counts a kept event as sent.
    pub(super) fn count_sent(&mut self, event: &Event) {
        self.streams[event.slot].sent += Count::one(event.bytes);
        self.totals.sent += Count::one(event.bytes);
    }

    /// Releases the bytes of kept events.
    pub(super) fn release(&mut self, bytes: u64) {
        self.fifo.release(bytes);
    }

    /// Payload of the events of a stream with these sequence numbers.
    pub(super) fn payload_bytes(&self, slot: usize, sequences: std::ops::Range<u64>) -> u64 {
        sequences.map(|sequence| self.bytes_of(self.streams[slot].id, sequence)).fold(0, u64::saturating_add)
    }

    /// Events in flight.
    pub(super) fn in_flight(&self) -> &[Event] {
        &self.in_flight
    }

    /// Counts everything in flight as sent.
    pub(super) fn confirm(&mut self) {
        for event in self.in_flight.drain(..) {
            let one = Count::one(event.bytes);
            self.streams[event.slot].sent += one;
            self.totals.sent += one;
            self.fifo.release(event.occupied_bytes());
        }
    }

    /// Counts everything in flight and waiting as lost, and stops the schedule.
    pub(super) fn discard(&mut self) {
        self.close();
        while let Some(event) = self.in_flight.pop() {
            self.fifo.release(event.occupied_bytes());
            self.count_lost(&event);
        }
        while let Some(k) = self.fifo.pop() {
            let event = self.event(k, 0);
            self.fifo.release(event.occupied_bytes());
            self.count_lost(&event);
        }
    }

    /// Whether events are due when they are taken.
    pub(super) fn is_closed_loop(&self) -> bool {
        self.schedule.is_none()
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn backlog_bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    pub(super) fn max_backlog_bytes(&self) -> u64 {
        self.fifo.bytes_max_seen()
    }

    pub(super) fn streams(&self) -> &[StreamReport] {
        &self.streams
    }

    fn event(&self, k: u64, due_ns: u64) -> Event {
        let place = self.round_robin.position_of(k);
        let stream = &self.streams[place.slot];
        let (id, sequence) = (stream.id, stream.first_sequence.saturating_add(place.round));
        Event { slot: place.slot, stream: id, sequence, due_ns, bytes: self.bytes_of(id, sequence) }
    }

    fn bytes_of(&self, stream: u32, sequence: u64) -> u64 {
        match &self.images {
            Some(images) => images.bytes(stream, sequence),
            None => self.size.bytes(self.seed, stream, sequence),
        }
    }

    fn count_due(&mut self, event: &Event) {
        let stream = &mut self.streams[event.slot];
        stream.due += Count::one(event.bytes);
        stream.next_sequence = event.sequence + 1;
        self.totals.due += Count::one(event.bytes);
    }

    /// Counts an event as lost.
    pub(super) fn count_lost(&mut self, event: &Event) {
        self.streams[event.slot].lost += Count::one(event.bytes);
        self.totals.lost += Count::one(event.bytes);
    }

    /// Makes event `k` the next one, unless it exceeds the plan's number of events or duration.
    fn expect(&mut self, k: u64) {
        let number = self.round_robin.position_of(k).number;
        let due_ns = self.schedule.map_or(0, |schedule| schedule.due_ns(number));
        if number >= self.events_end {
            self.close();
        } else if due_ns >= self.duration_ns {
            self.next = None;
            self.open_until_ns = self.duration_ns;
        } else {
            self.next = Some(Arrival { k, due_ns });
        }
    }
}

#[cfg(test)]
#[path = "frontend_tests.rs"]
mod tests;
