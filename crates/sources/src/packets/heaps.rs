//! Assembly of the heaps of one sender from packets, in any order and several at once.
//!
//! Invariants: a heap is whole once every byte of it has arrived exactly once; memory is bounded by the
//! limits of [`Heaps::add`], whatever lengths the packets state.
use std::collections::VecDeque;
use std::ops::Range;

use super::spead::{self, HeapPacket};

/// Most immediate values of a heap that are kept.
const VALUES_MAX: usize = 16;
/// Most separate parts of a heap; packets of a heap arrive nearly in order.
const PARTS_MAX: usize = 1024;
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
    /// Immediate values, if the stream is not known yet.
    pub(super) values: Vec<(u64, u64)>,
}

/// What becomes of a packet.
#[derive(Debug)]
pub(super) enum Added {
    /// Its heap is not whole.
    Part,
    /// Its heap is whole.
    Whole(Heap),
    /// This part has arrived before.
    Duplicate,
    /// It contradicts the packets before it.
    Refused(String),
}

/// Limits of the heaps of one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapLimits {
    /// Heaps that are assembled at once.
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
        let bytes: usize = self.spare.iter().map(Vec::capacity).sum();
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
    /// Numbers of the last whole heaps: packets that repeat a part of them start no new heap.
    whole: VecDeque<u64>,
    /// Heaps that were given up.
    incomplete: u64,
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
        if self.whole.contains(&header.heap) {
            return Added::Duplicate;
        }
        let at = match self.open.iter().position(|heap| heap.number == header.heap) {
            Some(at) => at,
            None => match self.start(header, arrived_ns, limits, buffers) {
                Ok(at) => at,
                Err(why) => return Added::Refused(why),
            },
        };
        let heap = &mut self.open[at];
        if heap.bytes.len() as u64 != header.length {
            let (stated, before) = (header.length, heap.bytes.len());
            return Added::Refused(format!("heap length {stated}, {before} in the packets before"));
        }
        if limits.keeps_values {
            let free = VALUES_MAX.saturating_sub(heap.values.len());
            heap.values.extend(spead::values(packet).take(free));
        }
        let payload = packet.get(header.payload.clone()).unwrap_or(&[]);
        let range = header.offset as usize..header.offset as usize + payload.len();
        match heap.insert(range.clone()) {
            Ok(true) => {}
            Ok(false) => return Added::Duplicate,
            Err(why) => return Added::Refused(why),
        }
        heap.bytes[range].copy_from_slice(payload);
        heap.drops = drops;
        if !heap.is_whole() {
            return Added::Part;
        }
        let heap = self.open.remove(at);
        self.whole.push_back(heap.number);
        if self.whole.len() > 2 * limits.window {
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
        let mut bytes: usize = self.open.iter().map(|heap| heap.bytes.len()).sum();
        while self.open.len() >= limits.window.max(1) || bytes + length > limits.bytes {
            if self.open.is_empty() {
                break;
            }
            let given_up = self.open.remove(0);
            bytes -= given_up.bytes.len();
            self.incomplete += 1;
            buffers.put_back(given_up.bytes);
        }
        let bytes = buffers.take(length);
        let (number, mask, timestamp_ns) = (header.heap, header.mask, arrived_ns);
        self.open.push(Heap {
            number,
            mask,
            bytes,
            parts: Vec::new(),
            timestamp_ns,
            drops: 0,
            values: Vec::new(),
        });
        Ok(self.open.len() - 1)
    }

    /// Number with which a stream starts when `whole` is its first whole heap: that of an earlier heap of
    /// which the start has arrived, if one is still being assembled.
    pub(super) fn first_number(&self, whole: &Heap, step: u64) -> u64 {
        let behind = |heap: &Heap| whole.number.wrapping_sub(heap.number) & whole.mask;
        let near = self.open.iter().filter(|heap| heap.parts.first().is_some_and(|part| part.start == 0));
        let near = near.map(behind).filter(|behind| behind.is_multiple_of(step) && behind / step <= 64);
        whole.number.wrapping_sub(near.max().unwrap_or(0)) & whole.mask
    }

    /// Heaps that are not whole, and those that were given up.
    pub(super) fn unfinished(&self) -> u64 {
        self.open.len() as u64 + self.incomplete
    }
}

impl Heap {
    /// Notes a part; returns whether it is new.
    fn insert(&mut self, part: Range<usize>) -> Result<bool, String> {
        let next = self.parts.partition_point(|known| known.start < part.start);
        let covers = |known: &Range<usize>| known.start <= part.start && part.end <= known.end;
        // Only an empty heap has empty parts.
        if part.is_empty() {
            return Ok(self.bytes.is_empty());
        }
        if self.parts[..next].last().is_some_and(covers) || self.parts.get(next).is_some_and(covers) {
            return Ok(false);
        }
        let overlaps = self.parts[..next].last().is_some_and(|before| before.end > part.start)
            || self.parts.get(next).is_some_and(|after| after.start < part.end);
        if overlaps {
            return Err("SPEAD payloads of a heap overlap".to_owned());
        }
        let joins_before = next > 0 && self.parts[next - 1].end == part.start;
        let joins_after = self.parts.get(next).is_some_and(|after| after.start == part.end);
        match (joins_before, joins_after) {
            (true, true) => self.parts[next - 1].end = self.parts.remove(next).end,
            (true, false) => self.parts[next - 1].end = part.end,
            (false, true) => self.parts[next].start = part.start,
            (false, false) if self.parts.len() >= PARTS_MAX => {
                return Err("SPEAD heap in too many parts".to_owned());
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
