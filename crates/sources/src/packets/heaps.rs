//! Assembly of the heaps of one sender from packets, in any order and several at once.
//!
//! Invariants: a heap is whole once every byte of it has arrived exactly once; memory is bounded by the
//! limits of [`Heaps::add`], whatever lengths the packets state.
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use keepup_measure::sum::Sums;
use keepup_stream::rejected::RejectReason;

use super::spead::{self, HeapPacket};

/// Most immediate values of a heap that are kept.
pub(super) const VALUES_MAX: usize = 64;
/// Most separate parts of a heap; packets of a heap arrive nearly in order.
const PARTS_MAX: usize = 1024;
/// Whole heaps that are remembered, half of the least number.
const HISTORY_MIN: usize = 32;
/// Most heaps that are assembled at once.
const OPEN_MAX: usize = 1024;
/// Buffers that are kept for the next heaps, and their bytes.
const SPARE_MAX: usize = 4;
const SPARE_BYTES_MAX: usize = 64 << 20;

/// A heap, whole or in part.
#[derive(Debug)]
pub(super) struct Heap {
    pub(super) number: u64,
    pub(super) mask: u64,
    pub(super) bytes: Vec<u8>,
    /// Parts that have arrived, in order, none touching the next.
    parts: Vec<Range<usize>>,
    /// Time of its first packet, ns since the Unix epoch.
    pub(super) timestamp_ns: u64,
    /// What the kernel had dropped when its last packet arrived.
    pub(super) drops: u32,
    /// Immediate values, if the stream is not known yet; each id once.
    pub(super) values: BTreeMap<u64, u64>,
    /// Whether it had more of them than are kept.
    pub(super) has_more_values: bool,
    /// How many heaps of the sender had started before it, and with its last packet.
    started: u64,
    heard: u64,
    /// Whole heaps that started after its last packet.
    passed: usize,
    packets: u64,
    /// A heap with this number was whole already.
    is_copy: bool,
}

/// What becomes of a packet.
#[derive(Debug)]
pub(super) enum Added {
    /// Its heap is not whole.
    Part,
    /// Its heap is whole.
    Whole(Heap),
    /// This part has arrived before, with the same content.
    Duplicate,
    /// It contradicts the packets before it.
    Refused(RejectReason, String),
}

/// Limits of the heaps of one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapLimits {
    /// Whole heaps that start after the last packet of a heap in the making until that one is given up.
    pub(super) window: usize,
    /// Bytes of these heaps.
    pub(super) bytes: usize,
    /// Longest heap, bytes.
    pub(super) heap_bytes: u64,
    /// Whether immediate values of the heaps are kept.
    pub(super) keeps_values: bool,
}

/// Buffers for the next heaps: new memory costs more time than copying into it.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    /// Buffer of a length, whose old contents are overwritten before the heap is whole.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= length && buffer.capacity() / 2 <= length;
        match self.spare.iter().position(fits) {
            Some(at) => {
                let mut buffer = self.spare.swap_remove(at);
                buffer.resize(length, 0);
                buffer
            }
            // Zeros from the kernel take no memory until they are written.
            None => vec![0; length],
        }
    }

    /// Takes back the buffer of a heap.
    pub(super) fn put_back(&mut self, buffer: Vec<u8>) {
        let bytes: usize = self.spare.iter().map(Vec::capacity).saturating_sum();
        if self.spare.len() < SPARE_MAX && bytes + buffer.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(buffer);
        }
    }
}

/// Heaps of one sender.
#[derive(Debug, Default)]
pub(super) struct Heaps {
    /// In the order of their first packets.
    open: Vec<Heap>,
    /// Numbers of the last whole heaps: packets that repeat a part of them make a copy, or a new count.
    whole: VecDeque<u64>,
    started: u64,
    given_up: GivenUp,
}

/// Heaps that were given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GivenUp {
    pub(super) heaps: u64,
    /// What the first one lacks.
    pub(super) first: Option<String>,
    /// Packets of copies of whole heaps.
    pub(super) duplicates: u64,
}

impl Heaps {
    /// Adds a packet that arrived at `arrived_ns` after `drops` dropped ones.
    pub(super) fn add(
        &mut self,
        (header, packet): (&HeapPacket, &[u8]),
        (arrived_ns, drops): (u64, u32),
        limits: HeapLimits,
        buffers: &mut Buffers,
    ) -> Added {
        let at = match self.open.iter().position(|heap| heap.number == header.heap) {
            Some(at) => at,
            None => match self.start(header, arrived_ns, limits, buffers) {
                Ok(at) => at,
                Err(why) => return Added::Refused(RejectReason::Unsupported, why),
            },
        };
        let heap = &mut self.open[at];
        if heap.bytes.len() as u64 != header.length {
            let (stated, before) = (header.length, heap.bytes.len());
            let why = format!("heap length {stated}, {before} in the packets before");
            return Added::Refused(RejectReason::Contradictory, why);
        }
        if limits.keeps_values && header.has_values {
            heap.keep_values(packet);
        }
        let payload = packet.get(header.payload.clone()).unwrap_or(&[]);
        if payload.is_empty() && header.length > 0 {
            // It has nothing but items.
            return Added::Part;
        }
        let range = header.offset as usize..header.offset as usize + payload.len();
        match heap.insert(range.clone()) {
            Ok(true) => {}
            Ok(false) if heap.bytes[range] == *payload => return Added::Duplicate,
            Ok(false) => {
                let why = format!("a part of heap {} arrived again with other content", header.heap);
                return Added::Refused(RejectReason::Conflicting, why);
            }
            Err((reason, why)) => return Added::Refused(reason, why),
        }
        heap.bytes[range].copy_from_slice(payload);
        (heap.drops, heap.heard, heap.passed) = (drops, self.started, 0);
        heap.packets += 1;
        if !heap.is_whole() {
            return Added::Part;
        }
        let heap = self.open.remove(at);
        self.open.iter_mut().filter(|open| open.heard <= heap.started).for_each(|open| open.passed += 1);
        while let Some(at) = self.open.iter().position(|open| open.passed >= limits.window.max(1)) {
            self.give_up(at, buffers);
        }
        if !heap.is_copy {
            self.whole.push_back(heap.number);
        }
        if self.whole.len() > 2 * limits.window.max(HISTORY_MIN) {
            self.whole.pop_front();
        }
        Added::Whole(heap)
    }

    /// Starts a heap; gives up the oldest ones beyond the limits.
    fn start(
        &mut self,
        header: &HeapPacket,
        arrived_ns: u64,
        limits: HeapLimits,
        buffers: &mut Buffers,
    ) -> Result<usize, String> {
        let most = limits.heap_bytes.min(limits.bytes as u64);
        if header.length > most {
            return Err(format!("heap of {} bytes, limit {most} bytes", header.length));
        }
        let length = header.length as usize;
        self.shrink((limits.bytes - length, OPEN_MAX - 1), buffers);
        self.started += 1;
        let bytes = buffers.take(length);
        let (number, mask, timestamp_ns) = (header.heap, header.mask, arrived_ns);
        self.open.push(Heap {
            number,
            mask,
            bytes,
            parts: Vec::new(),
            timestamp_ns,
            drops: 0,
            values: BTreeMap::new(),
            has_more_values: false,
            started: self.started,
            heard: self.started,
            passed: 0,
            packets: 0,
            is_copy: self.whole.contains(&number),
        });
        Ok(self.open.len() - 1)
    }

    /// Gives up the oldest heaps beyond `bytes` and `heaps`.
    pub(super) fn shrink(&mut self, (bytes, heaps): (usize, usize), buffers: &mut Buffers) {
        let mut held: usize = self.open.iter().map(|heap| heap.bytes.len()).saturating_sum();
        while self.open.len() > heaps || held > bytes {
            // Copies first.
            let at = self.open.iter().position(|open| open.is_copy).unwrap_or(0);
            held -= self.open[at].bytes.len();
            self.give_up(at, buffers);
        }
    }

    /// Whether a heap is being assembled.
    pub(super) fn has(&self, number: u64) -> bool {
        self.open.iter().any(|open| open.number == number)
    }

    /// Number with which a stream starts when `whole` is its first whole heap: that of an earlier heap of
    /// which the start has arrived, if one is still being assembled.
    pub(super) fn first_number(&self, whole: &Heap, step: u64) -> u64 {
        let behind = |heap: &Heap| whole.number.wrapping_sub(heap.number) & whole.mask;
        let near = self.open.iter().filter(|heap| heap.parts.first().is_some_and(|part| part.start == 0));
        let near = near.map(behind).filter(|behind| behind.is_multiple_of(step) && behind / step <= 64);
        whole.number.wrapping_sub(near.max().unwrap_or(0)) & whole.mask
    }

    /// Gives up a heap in the making.
    fn give_up(&mut self, at: usize, buffers: &mut Buffers) {
        let heap = self.open.remove(at);
        if heap.is_copy {
            self.given_up.duplicates += heap.packets;
        } else {
            let arrived: usize = heap.parts.iter().fold(0, |sum, part| sum + part.len());
            let (number, length) = (heap.number, heap.bytes.len());
            self.given_up.heaps += 1;
            self.given_up
                .first
                .get_or_insert_with(|| format!("{arrived} of {length} bytes of heap {number} arrived"));
        }
        buffers.put_back(heap.bytes);
    }

    /// Heaps that were given up since the last call.
    pub(super) fn take_given_up(&mut self) -> GivenUp {
        std::mem::take(&mut self.given_up)
    }

    /// Gives up all heaps in the making.
    pub(super) fn close(&mut self, buffers: &mut Buffers) {
        while !self.open.is_empty() {
            self.give_up(0, buffers);
        }
    }

    /// The sender counts its heaps from the start again: none of those in the making is a copy.
    pub(super) fn restart(&mut self) {
        self.whole.clear();
        self.open.iter_mut().for_each(|open| open.is_copy = false);
    }

    /// Whether a heap is being assembled with a number from `from` to before `to`.
    pub(super) fn is_assembling(&self, from: u64, to: u64) -> bool {
        let is_between =
            |open: &Heap| open.number.wrapping_sub(from) & open.mask < to.wrapping_sub(from) & open.mask;
        self.open.iter().any(|open| !open.is_copy && is_between(open))
    }
}

impl Heap {
    fn keep_values(&mut self, packet: &[u8]) {
        for (id, value) in spead::values(packet) {
            match self.values.len() < VALUES_MAX || self.values.contains_key(&id) {
                true => drop(self.values.insert(id, value)),
                false => self.has_more_values = true,
            }
        }
    }

    /// Notes a part; returns whether it is new.
    fn insert(&mut self, part: Range<usize>) -> Result<bool, (RejectReason, String)> {
        let next = self.parts.partition_point(|known| known.start < part.start);
        let covers = |known: &Range<usize>| known.start <= part.start && part.end <= known.end;
        // An empty heap.
        if part.is_empty() {
            return Ok(true);
        }
        if self.parts[..next].last().is_some_and(covers) || self.parts.get(next).is_some_and(covers) {
            return Ok(false);
        }
        let overlaps = self.parts[..next].last().is_some_and(|before| before.end > part.start)
            || self.parts.get(next).is_some_and(|after| after.start < part.end);
        if overlaps {
            return Err((RejectReason::Contradictory, "SPEAD payloads of a heap overlap".to_owned()));
        }
        let joins_before = next > 0 && self.parts[next - 1].end == part.start;
        let joins_after = self.parts.get(next).is_some_and(|after| after.start == part.end);
        match (joins_before, joins_after) {
            (true, true) => self.parts[next - 1].end = self.parts.remove(next).end,
            (true, false) => self.parts[next - 1].end = part.end,
            (false, true) => self.parts[next].start = part.start,
            (false, false) if self.parts.len() >= PARTS_MAX => {
                let why = format!("SPEAD heap in more than {PARTS_MAX} separate parts");
                return Err((RejectReason::Unsupported, why));
            }
            (false, false) => self.parts.insert(next, part),
        }
        Ok(true)
    }

    fn is_whole(&self) -> bool {
        match &self.parts[..] {
            [part] => part.len() == self.bytes.len(),
            _ => self.bytes.is_empty(),
        }
    }
}

#[cfg(test)]
#[path = "heaps_tests.rs"]
mod tests;
