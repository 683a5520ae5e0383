//! From packets of heaps to whole heaps in order, for every sender.
use std::collections::{BTreeMap, BTreeSet};

use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectReason, RejectUnit};
use keepup_sys::datagram::DatagramReceiver;

use super::admission::Flow;
use super::heaps::{Added, Buffers, GivenUp, Heap, HeapLimits, Heaps, VALUES_MAX};
use super::order::Held;
use super::spead::{self, HeapPacket, Spead};
use super::tally::{Subject, Tally};
use super::{Format, HELD_BYTES_MAX, Key, Packets, Payload};

/// Bytes of all heaps that are being assembled. Each sender has an equal share.
const OPEN_BYTES_MAX: usize = 512 << 20;
/// Bytes of whole heaps that wait for earlier ones; with more, those are given up.
const HELD_HEAPS_BYTES_MAX: usize = 256 << 20;
/// How long the next packet of a heap with a stop is waited for once all senders have stopped, ns.
const STOP_WAIT_NS: u64 = 1_000_000_000;
/// Most items that are reported because their values change.
const CHANGED_MAX: usize = 64;

/// One sender of heaps.
#[derive(Debug)]
struct Sender {
    flow: Flow,
    heaps: Heaps,
    /// Its stream, once a heap is whole.
    stream: Option<usize>,
    stop: Option<Stop>,
    /// Whether heaps of it have arrived, in part at least.
    has_heaps: bool,
    /// Immediate values of its first heap.
    values: BTreeMap<u64, u64>,
}

/// Stop of a sender.
#[derive(Clone, Copy, Debug)]
struct Stop {
    /// Number of its heap.
    heap: u64,
    /// That heap is an event.
    has_data: bool,
}

/// Senders of heaps.
#[derive(Debug, Default)]
pub(super) struct Senders {
    all: Vec<Sender>,
    buffers: Buffers,
    /// All senders have stopped, and the end was not handed out.
    is_ending: bool,
    announced: u64,
    is_over: bool,
    /// All have stopped, but a heap with a stop is not whole. Since when no packet has arrived, monotonic ns,
    /// once that is known.
    awaits_heap: bool,
    awaits_since_ns: Option<u64>,
    /// Stops before the first heap of their sender.
    pub(super) early_stops: u64,
    /// Ids of items with values after the first heap of a sender that differ.
    changed: BTreeSet<u64>,
    remarks: Vec<String>,
}

impl Senders {
    /// Whether all senders have stopped; once.
    pub(super) fn take_end(&mut self) -> bool {
        std::mem::take(&mut self.is_ending)
    }

    /// Whether the end is due without another packet.
    pub(super) fn has_end(&self) -> bool {
        self.is_ending
    }

    /// Events of each stream at the end; 0 if unknown.
    pub(super) fn announced(&self) -> u64 {
        self.announced
    }

    /// Whether a heap of a stream is being assembled with a number from `from` to before `to`.
    pub(super) fn awaits(&self, stream: usize, from: u64, to: u64) -> bool {
        let sender = self.all.iter().find(|sender| sender.stream == Some(stream));
        sender.is_some_and(|sender| sender.heaps.is_assembling(from, to))
    }

    /// The numbers of a stream have started again.
    pub(super) fn restart(&mut self, stream: usize) {
        let sender = self.all.iter_mut().find(|sender| sender.stream == Some(stream));
        sender.into_iter().for_each(|sender| sender.heaps.restart());
    }

    /// Counts the heaps that are not whole; drops these.
    pub(super) fn close(&mut self, tally: &mut Tally) {
        for sender in &mut self.all {
            sender.heaps.close(&mut self.buffers);
            count_given_up(sender, tally);
        }
    }

    /// Takes back the buffer of a heap that was handed out.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            self.buffers.put_back(buffer);
        }
    }

    /// What was found since the last call, for the report.
    pub(super) fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Place of a sender.
    fn find(&self, flow: Flow) -> Option<usize> {
        self.all.iter().position(|sender| sender.flow == flow)
    }

    /// Adds a sender; the others give up what exceeds their new share of memory.
    fn add(&mut self, flow: Flow, tally: &mut Tally) -> usize {
        let (heaps, values) = (Heaps::default(), BTreeMap::new());
        self.all.push(Sender { flow, heaps, stream: None, stop: None, has_heaps: false, values });
        let share = self.share();
        for sender in &mut self.all {
            sender.heaps.shrink((share, usize::MAX), &mut self.buffers);
            count_given_up(sender, tally);
        }
        self.all.len() - 1
    }

    /// Bytes of the heaps of one sender.
    fn share(&self) -> usize {
        OPEN_BYTES_MAX / self.all.len().max(1)
    }

    /// Notes immediate values of a packet that differ from those of the first heap, which are recorded.
    fn compare_values(&mut self, at: usize, packet: &[u8]) {
        for (id, value) in spead::values(packet) {
            let is_same = self.all[at].values.get(&id) == Some(&value);
            if !is_same && self.changed.len() < CHANGED_MAX && self.changed.insert(id) {
                let what = "differ from those of the first heap of a sender; they are not recorded";
                self.remarks.push(format!("values of item {id:#x} {what}"));
            }
        }
    }
}

/// Counts heaps of a sender that were given up.
fn count_given_up(sender: &mut Sender, tally: &mut Tally) {
    let GivenUp { heaps, first, duplicates } = sender.heaps.take_given_up();
    tally.duplicates = tally.duplicates.saturating_add(duplicates);
    if heaps > 0 {
        let (reason, unit) = (RejectReason::Incomplete, RejectUnit::Heap);
        let subject = Subject { sender: sender.flow.sender, reason, unit, is_foreign: false };
        tally.reject(subject, heaps, || first.unwrap_or_default());
    }
}

impl Packets {
    /// Bytes of packets or heaps that may wait for earlier ones.
    pub(super) fn held_bytes_max(&self) -> usize {
        match self.options.format {
            Format::Spead(_) => HELD_HEAPS_BYTES_MAX,
            _ => HELD_BYTES_MAX,
        }
    }

    /// Takes a packet: a part of a heap.
    pub(super) fn take_part_of_heap(
        &mut self,
        flow: Flow,
        (header, packet): (&HeapPacket, &Payload),
        arrived: (u64, u32),
        options: Spead,
    ) {
        if self.senders.is_over {
            if !header.is_stop {
                let why = || "its sender had stopped".to_owned();
                self.refuse(flow, RejectReason::OutsideSeries, why);
            }
            return;
        }
        let most = self.options.streams;
        let at = match self.senders.find(flow) {
            Some(at) => at,
            None if self.senders.all.len() < most => self.senders.add(flow, &mut self.tally),
            None => {
                let why = || format!("more than {most} senders; raise streams= of the source");
                return self.reject_sender(flow, 1, false, why);
            }
        };
        let share = self.senders.share();
        let Senders { all, buffers, early_stops, .. } = &mut self.senders;
        let sender = &mut all[at];
        if !header.is_stop && !sender.has_heaps {
            // Its stop was that of a series before this one.
            sender.stop = None;
        }
        if header.is_stop {
            sender.stop = Some(Stop { heap: header.heap, has_data: header.has_data() });
            if !header.has_data() {
                *early_stops = early_stops.saturating_add(u64::from(!sender.has_heaps));
                return self.end_if_all_stopped(options);
            }
        }
        sender.has_heaps = true;
        // A packet of an earlier heap is late; any other one shows that the sender has started again.
        let is_late = |stop: &Stop| stop.heap.wrapping_sub(header.heap) & header.mask <= header.mask / 2;
        sender.stop = sender.stop.filter(is_late);
        let has_stopped = sender.stop.is_some();
        let limits = HeapLimits {
            window: self.options.window,
            bytes: share,
            heap_bytes: self.event_bytes_max,
            keeps_values: sender.stream.is_none(),
        };
        let data = match packet {
            Payload::InMessage(range) => {
                let received = self.batch.received(self.message);
                received.and_then(|received| received.data.get(range.clone())).unwrap_or(&[])
            }
            Payload::Owned(bytes) => bytes,
        };
        let added = sender.heaps.add((header, data), arrived, limits, buffers);
        count_given_up(sender, &mut self.tally);
        if header.has_values && sender.stream.is_some() {
            self.senders.compare_values(at, data);
        }
        match added {
            Added::Part => {}
            Added::Duplicate => self.tally.duplicates = self.tally.duplicates.saturating_add(1),
            Added::Refused(reason, why) => self.refuse(flow, reason, || why),
            Added::Whole(heap) => self.take_heap(at, heap, options.step),
        }
        if has_stopped {
            self.end_if_all_stopped(options);
        }
    }

    /// Takes a whole heap; the first one of a sender declares its stream.
    fn take_heap(&mut self, at: usize, heap: Heap, step: u64) {
        let sender = &mut self.senders.all[at];
        let first = sender.heaps.first_number(&heap, step);
        let Heap { number, mask, bytes, timestamp_ns, drops, values, has_more_values, .. } = heap;
        let stream = sender.stream.unwrap_or(self.streams.len());
        let held = Held { timestamp_ns, drops, number, frame: 0, bytes };
        if sender.stream.is_none() {
            sender.stream = Some(stream);
            let key = Key { flow: sender.flow, thread: None };
            self.declare(key, (first, first), drops, (step, mask), None);
            let name = self.infos.last().map_or(String::new(), |info| info.name.clone());
            values.iter().for_each(|(id, value)| {
                self.note_metadata(format!("{name}/item_{id:#x}"), value.to_string());
            });
            if has_more_values {
                let what = format!("{name}: {VALUES_MAX} immediate values are recorded, the others are not");
                self.senders.remarks.push(what);
            }
            self.senders.all[at].values = values;
        }
        self.pending.push_back((stream, held));
    }

    /// Ends the series once every sender has stopped, and its heap with the stop is whole or given up.
    fn end_if_all_stopped(&mut self, options: Spead) {
        (self.senders.awaits_heap, self.senders.awaits_since_ns) = (false, None);
        let all = &self.senders.all;
        let is_stopped = all.len() >= options.senders && all.iter().all(|sender| sender.stop.is_some());
        // A series has heaps.
        if !is_stopped || !all.iter().any(|sender| sender.has_heaps) {
            return;
        }
        let awaits = |sender: &Sender| sender.stop.is_some_and(|stop| sender.heaps.has(stop.heap));
        self.senders.awaits_heap = all.iter().any(awaits);
        if !self.senders.awaits_heap {
            self.end_series();
        }
    }

    fn end_series(&mut self) {
        (self.senders.is_ending, self.senders.is_over) = (true, true);
        (self.senders.awaits_heap, self.is_finishing) = (false, true);
    }

    /// Ends the series if a heap with a stop does not become whole.
    pub(super) fn limit_wait_for_stop(&mut self, now_ns: u64) {
        if !self.senders.awaits_heap {
            self.senders.awaits_since_ns = None;
            return;
        }
        let since_ns = *self.senders.awaits_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= STOP_WAIT_NS {
            self.end_series();
        }
    }

    /// Enters the heaps that are missing before the stop of each sender. A stop without data has a number of
    /// its own.
    pub(super) fn count_heaps_before_stop(&mut self) {
        let Format::Spead(Spead { step, .. }) = self.options.format else { return };
        if !self.senders.is_ending {
            return;
        }
        let is_only = self.senders.all.len() == 1;
        for sender in &self.senders.all {
            let Some((stream, stop)) = sender.stream.zip(sender.stop) else { continue };
            let order = &self.streams[stream].order;
            let end = if stop.has_data { stop.heap.wrapping_add(step) } else { stop.heap };
            let Some(missing) = order.until(end) else { continue };
            let end = order.sequence().saturating_add(missing);
            if is_only {
                self.senders.announced = end;
            } else if missing > 0 {
                self.lost.push_back((stream, end - 1, LossCause::SequenceGap));
            }
        }
    }
}

#[cfg(test)]
#[path = "senders_tests.rs"]
mod tests;
