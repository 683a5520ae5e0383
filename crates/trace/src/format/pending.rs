//! Requests that entered the queue and whose completion is waited for: what a block trace has of them.
//!
//! The kernel merges requests that follow each other and splits long ones, so a completion is of a range: it
//! completes those requests that make it up, or the first part of a longer one. Invariants: requests leave in
//! the order in which they came; at most [`LIMIT`] are kept, and the oldest leaves without its completion
//! then.
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::batch::{Batch, NO_TIME, Raw};
use crate::mix::Mixer;
use crate::record::Operation;

/// Requests that are kept.
const LIMIT: usize = 65_536;
/// Requests of one place that are looked through for the oldest.
const CHAIN_MAX: usize = 16;
/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Where a completion looks: device, operation, first byte.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    offset: u64,
    kind: u32,
}

#[derive(Clone, Copy)]
struct Waiting {
    raw: Raw,
    key: Key,
    /// Bytes whose completion was not seen.
    left: u64,
    /// The request before it with the same key.
    older: Option<u64>,
    is_waiting: bool,
}

/// The requests that are under way.
#[derive(Default)]
pub(super) struct Pending {
    queue: VecDeque<Waiting>,
    /// Number of the oldest in the queue, counted from the trace's first.
    first: u64,
    newest: HashMap<Key, u64, BuildHasherDefault<Mixer>>,
    has_completions: bool,
    without: u64,
}

impl Pending {
    /// A request entered the queue.
    #[inline]
    pub(super) fn issue(&mut self, raw: Raw, batch: &mut Batch) {
        let key = Key::new(raw.device, raw.operation, raw.offset);
        let number = self.first + self.queue.len() as u64;
        let older = self.newest.insert(key, number);
        self.queue.push_back(Waiting { raw, key, left: raw.bytes, older, is_waiting: true });
        if self.queue.len() > LIMIT {
            self.leave(batch);
        }
    }

    /// A range of a device was completed.
    #[inline]
    pub(super) fn complete(&mut self, done: Raw, batch: &mut Batch) {
        self.has_completions = true;
        let (mut offset, mut left, mut found) = (done.offset, done.bytes, false);
        loop {
            let key = Key::new(done.device, done.operation, offset);
            let Some(number) = self.take(key) else { break };
            found = true;
            let request = &mut self.queue[(number - self.first) as usize];
            if request.left > left {
                request.left -= left;
                let rest = Key { offset: offset + left, ..key };
                request.key = rest;
                request.older = self.newest.insert(rest, number);
                break;
            }
            request.raw.completion_ns = done.time_ns;
            request.is_waiting = false;
            (offset, left) = (offset + request.left, left - request.left);
            if left == 0 {
                break;
            }
        }
        batch.corrections.lone_completions += u64::from(!found);
        while self.queue.front().is_some_and(|request| !request.is_waiting) {
            self.leave(batch);
        }
    }

    /// There is no more: all leave.
    pub(super) fn finish(&mut self, batch: &mut Batch) {
        while !self.queue.is_empty() {
            self.leave(batch);
        }
        if self.has_completions {
            batch.corrections.without_completion += std::mem::take(&mut self.without);
        }
    }

    /// Takes the oldest request with this key out of its chain.
    #[inline]
    fn take(&mut self, key: Key) -> Option<u64> {
        let newest = self.newest.get(&key).copied().filter(|number| *number >= self.first)?;
        let (mut newer, mut number) = (None, newest);
        for _ in 0..CHAIN_MAX {
            let older = self.queue[(number - self.first) as usize].older;
            let Some(older) = older.filter(|older| *older >= self.first) else { break };
            let request = &self.queue[(older - self.first) as usize];
            // One that has moved on, or is done, is in this chain no more.
            if !request.is_waiting || request.key != key {
                break;
            }
            (newer, number) = (Some(number), older);
        }
        let older = self.queue[(number - self.first) as usize].older;
        match newer {
            Some(newer) => self.queue[(newer - self.first) as usize].older = older,
            None => {
                self.newest.remove(&key);
            }
        }
        Some(number)
    }

    /// The oldest leaves.
    #[inline]
    fn leave(&mut self, batch: &mut Batch) {
        let Some(request) = self.queue.pop_front() else { return };
        if request.is_waiting {
            self.without += 1;
            if self.newest.get(&request.key) == Some(&self.first) {
                self.newest.remove(&request.key);
            }
        }
        self.first += 1;
        batch.records.push(request.raw);
    }
}

impl Key {
    fn new(device: u16, operation: Operation, offset: u64) -> Self {
        let offset = if operation == Operation::Flush { 0 } else { offset };
        Self { offset, kind: u32::from(device) << 8 | operation as u32 }
    }
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64((self.offset / SECTOR) ^ (u64::from(self.kind) << 40));
    }
}

/// A request as a queue event has it; times and bytes as in the trace.
#[inline]
pub(super) fn request(time_ns: i64, place: u64, device: u16, operation: Operation) -> Raw {
    let flags = crate::record::Flags::NONE;
    Raw { time_ns, completion_ns: NO_TIME, offset: 0, bytes: 0, place, device, operation, flags }
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
