//! From packets of heaps to whole heaps in order, for every sender.
use std::net::SocketAddr;
use std::ops::Range;

use keepup_sys::datagram::DatagramReceiver;

use super::heaps::{Added, Buffers, Heap, HeapLimits, Heaps};
use super::order::{Held, Verdict};
use super::spead::{self, Spead};
use super::{Current, Format, HELD_BYTES_MAX, Key, Packets, Place};
use crate::STREAMS_MAX;

/// Bytes of all heaps that are being assembled. Each sender has an equal share.
const OPEN_BYTES_MAX: usize = 512 << 20;
/// Bytes of whole heaps that wait for earlier ones; with more, those are given up.
const HELD_HEAPS_BYTES_MAX: usize = 256 << 20;

/// One sender of heaps.
#[derive(Debug)]
struct Sender {
    address: Option<SocketAddr>,
    heaps: Heaps,
    /// Its stream, once a heap is whole.
    stream: Option<usize>,
    /// Number of its first heap.
    first: u64,
    /// Number of the heap with which it stopped.
    stopped_at: Option<u64>,
}

/// Senders of heaps.
#[derive(Debug, Default)]
pub(super) struct Senders {
    all: Vec<Sender>,
    buffers: Buffers,
    /// A whole heap whose stream is being declared, or continues behind a jump.
    waiting: Option<(usize, Held)>,
    /// Events that each stream has sent, once all senders have stopped.
    end: Option<u64>,
    announced: u64,
    is_over: bool,
}

impl Senders {
    /// Whether all senders have stopped; once.
    pub(super) fn take_end(&mut self) -> bool {
        let end = self.end.take();
        self.announced = end.unwrap_or(self.announced);
        end.is_some()
    }

    /// Events of each stream at the end; 0 if unknown.
    pub(super) fn announced(&self) -> u64 {
        self.announced
    }

    /// Number of heaps that are not handed out because a part of them is missing; drops these.
    pub(super) fn take_unfinished(&mut self) -> u64 {
        let heaps = self.all.iter_mut().map(|sender| std::mem::take(&mut sender.heaps));
        heaps.map(|heaps| heaps.unfinished()).sum()
    }

    /// Takes back the buffer of a heap that was handed out.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.put_back(buffer);
    }

    /// Place of a sender, a new one included; `None`: one too many.
    fn position(&mut self, address: Option<SocketAddr>) -> Option<usize> {
        let found = self.all.iter().position(|sender| sender.address == address);
        if found.is_none() && self.all.len() < STREAMS_MAX {
            let heaps = Heaps::default();
            self.all.push(Sender { address, heaps, stream: None, first: 0, stopped_at: None });
            return Some(self.all.len() - 1);
        }
        found
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

    /// Takes a packet of the current message: a part of a heap.
    pub(super) fn take_part_of_heap(&mut self, range: Range<usize>, arrived: (u64, u32), options: Spead) {
        if self.senders.is_over {
            return;
        }
        let address = self.batch.peer(self.message);
        let packet = self.batch.received(self.message).and_then(|received| received.data.get(range));
        let packet = packet.unwrap_or(&[]);
        let header = match spead::read(packet) {
            Ok(header) => header,
            Err(why) => return self.refuse(why),
        };
        let Some(at) = self.senders.position(address) else { return self.refused.surplus += 1 };
        let share = OPEN_BYTES_MAX / self.senders.all.len();
        let Senders { all, buffers, .. } = &mut self.senders;
        let sender = &mut all[at];
        if header.is_stop {
            sender.stopped_at = Some(header.heap);
            return self.end_if_all_stopped(header.mask, options);
        }
        // A packet of an earlier heap is late; any other one shows that the sender has started again.
        let is_late = |stop: &u64| stop.wrapping_sub(header.heap) & header.mask <= header.mask / 2;
        sender.stopped_at = sender.stopped_at.filter(is_late);
        let limits = HeapLimits {
            window: self.options.window,
            bytes: share,
            heap_bytes: self.event_bytes_max,
            keeps_values: sender.stream.is_none(),
        };
        match sender.heaps.add((&header, packet), arrived, limits, buffers) {
            Added::Part => {}
            Added::Duplicate => self.refused.late += 1,
            Added::Refused(why) => self.refuse(why),
            Added::Whole(heap) => self.take_heap(at, heap, options.step),
        }
    }

    /// Takes a whole heap; the first one of a sender declares its stream.
    fn take_heap(&mut self, at: usize, heap: Heap, step: u64) {
        let sender = &mut self.senders.all[at];
        let first = sender.heaps.first_number(&heap, step);
        let Heap { number, mask, bytes, timestamp_ns, drops, values, .. } = heap;
        let stream = sender.stream.unwrap_or(self.keys.len());
        let held = Held { timestamp_ns, drops, number, frame: 0, bytes };
        if sender.stream.is_none() {
            (sender.stream, sender.first) = (Some(stream), first);
            let address = sender.address;
            self.declare(Key::Sender(address), (first, first), drops, (step, mask));
            let name = self.infos.last().map_or("", |info| &info.name);
            let values = values.iter().map(|(id, value)| (format!("{name}/item_{id:#x}"), value.to_string()));
            self.metadata.extend(values);
        }
        self.senders.waiting = Some((stream, held));
    }

    /// Places the heap that waits for its stream; returns whether there was one.
    pub(super) fn place_waiting_heap(&mut self) -> bool {
        let Some((stream, held)) = self.senders.waiting.take() else { return false };
        match self.orders[stream].judge(held.number, held.drops) {
            Verdict::Next(sequence, missing) => {
                self.due = self.orders[stream].has_held().then_some(stream);
                let packet = Place { stream, sequence, timestamp_ns: held.timestamp_ns, missing };
                self.current = Some(Current::Held { packet, held });
            }
            Verdict::Early => {
                self.held_bytes += held.bytes.len();
                self.orders[stream].hold(held);
                self.due = Some(stream);
            }
            Verdict::Late => self.refused.late_heaps += 1,
            Verdict::OffStep => self.refuse(format!(
                "heap {} is not a whole number of steps from the expected number",
                held.number
            )),
            Verdict::Restart => {
                self.senders.waiting = Some((stream, held));
                self.due = Some(stream);
            }
        }
        true
    }

    /// Ends the series once every sender has stopped.
    fn end_if_all_stopped(&mut self, mask: u64, options: Spead) {
        let all = &self.senders.all;
        if all.len() < options.senders || all.iter().any(|sender| sender.stopped_at.is_none()) {
            return;
        }
        // Heaps of a single sender are counted up to its stop, which has a number of its own.
        let events = match &all[..] {
            [Sender { stream: Some(_), first, stopped_at: Some(stop), .. }] => {
                (stop.wrapping_sub(*first) & mask) / options.step
            }
            _ => 0,
        };
        (self.senders.end, self.senders.is_over) = (Some(events), true);
        self.is_finishing = true;
        self.due = (!self.orders.is_empty()).then_some(0);
    }
}

#[cfg(test)]
#[path = "senders_tests.rs"]
mod tests;
