//! From packets of heaps to whole heaps in order, for every sender.
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectReason, RejectUnit};
use keepup_sys::datagram::DatagramReceiver;

use super::admission::Flow;
use super::heaps::{Added, Buffers, GivenUp, Heap, HeapLimits, Heaps};
use super::order::Held;
use super::spead::{HeapPacket, Spead};
use super::tally::{Subject, Tally};
use super::{Format, HELD_BYTES_MAX, Key, Packets, Payload};

/// Bytes of all heaps that are being assembled. Each sender has an equal share.
const OPEN_BYTES_MAX: usize = 512 << 20;
/// Bytes of whole heaps that wait for earlier ones; with more, those are given up.
const HELD_HEAPS_BYTES_MAX: usize = 256 << 20;

/// One sender of heaps.
#[derive(Debug)]
struct Sender {
    flow: Flow,
    heaps: Heaps,
    /// Its stream, once a heap is whole.
    stream: Option<usize>,
    /// Number of the heap with which it stopped.
    stopped_at: Option<u64>,
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
}

impl Senders {
    /// Whether all senders have stopped; once.
    pub(super) fn take_end(&mut self) -> bool {
        std::mem::take(&mut self.is_ending)
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

    /// Place of a sender, a new one included; `None`: one too many.
    fn position(&mut self, flow: Flow, most: usize) -> Option<usize> {
        let found = self.all.iter().position(|sender| sender.flow == flow);
        if found.is_none() && self.all.len() < most {
            self.all.push(Sender { flow, heaps: Heaps::default(), stream: None, stopped_at: None });
            return Some(self.all.len() - 1);
        }
        found
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
        let Some(at) = self.senders.position(flow, most) else {
            let why = || format!("more than {most} senders; raise streams= of the source");
            return self.reject_sender(flow, 1, false, why);
        };
        let share = OPEN_BYTES_MAX / self.senders.all.len();
        let Senders { all, buffers, .. } = &mut self.senders;
        let sender = &mut all[at];
        if header.is_stop {
            sender.stopped_at = Some(header.heap);
            return self.end_if_all_stopped(options);
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
        let data = match packet {
            Payload::InMessage(range) => {
                let received = self.batch.received(self.message);
                received.and_then(|received| received.data.get(range.clone())).unwrap_or(&[])
            }
            Payload::Owned(bytes) => bytes,
        };
        let added = sender.heaps.add((header, data), arrived, limits, buffers);
        count_given_up(sender, &mut self.tally);
        match added {
            Added::Part => {}
            Added::Duplicate => self.tally.duplicates = self.tally.duplicates.saturating_add(1),
            Added::Refused(reason, why) => self.refuse(flow, reason, || why),
            Added::Whole(heap) => self.take_heap(at, heap, options.step),
        }
    }

    /// Takes a whole heap; the first one of a sender declares its stream.
    fn take_heap(&mut self, at: usize, heap: Heap, step: u64) {
        let sender = &mut self.senders.all[at];
        let first = sender.heaps.first_number(&heap, step);
        let Heap { number, mask, bytes, timestamp_ns, drops, values, .. } = heap;
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
        }
        self.pending.push_back((stream, held));
    }

    /// Ends the series once every sender has stopped.
    fn end_if_all_stopped(&mut self, options: Spead) {
        let all = &self.senders.all;
        if all.len() < options.senders || all.iter().any(|sender| sender.stopped_at.is_none()) {
            return;
        }
        (self.senders.is_ending, self.senders.is_over) = (true, true);
        self.is_finishing = true;
    }

    /// Enters the heaps that are missing before the stop of each sender, which has a number of its own.
    pub(super) fn count_heaps_before_stop(&mut self) {
        if !self.senders.is_ending {
            return;
        }
        let is_only = self.senders.all.len() == 1;
        for sender in &self.senders.all {
            let Some((stream, stop)) = sender.stream.zip(sender.stopped_at) else { continue };
            let order = &self.streams[stream].order;
            let Some(missing) = order.until(stop) else { continue };
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
