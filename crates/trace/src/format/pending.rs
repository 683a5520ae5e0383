//! Joins queued requests of a block trace with their dispatches and completions.
//!
//! The kernel merges adjacent requests and splits long ones, so a dispatch or completion is that of a range:
//! it applies to the requests in it, or to the first part of a longer one. A request is dispatched with its
//! first part and completed with its last. Invariants: requests leave in queue order; at most [`LIMIT`] are
//! kept, and beyond that the oldest leaves without its completion.
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::batch::{Batch, NO_TIME, RawRecord};
use crate::mix::Mixer;
use crate::record::Operation;

/// Largest number of pending requests.
const LIMIT: usize = 65_536;
/// Largest number of requests with one key that are searched for the oldest.
const CHAIN_MAX: usize = 16;
/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Key of a pending request: device, operation, first byte not completed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    offset: u64,
    kind: u32,
}

#[derive(Clone, Copy)]
struct Waiting {
    raw: RawRecord,
    key: Key,
    /// Bytes not completed yet.
    left: u64,
    /// Number of the previous request with the same key.
    older: Option<u64>,
    is_waiting: bool,
}

/// Requests in flight.
#[derive(Default)]
pub(super) struct Pending {
    queue: VecDeque<Waiting>,
    /// Number of the oldest request in the queue, counted from the start of the trace.
    first: u64,
    newest: HashMap<Key, u64, BuildHasherDefault<Mixer>>,
    has_completions: bool,
    without: u64,
}

impl Pending {
    /// Adds a queued request.
    #[inline]
    pub(super) fn issue(&mut self, raw: RawRecord, batch: &mut Batch) {
        let key = Key::new(raw.device, raw.operation, raw.offset);
        let number = self.first + self.queue.len() as u64;
        let older = self.newest.insert(key, number);
        self.queue.push_back(Waiting { raw, key, left: raw.bytes, older, is_waiting: true });
        if self.queue.len() > LIMIT {
            self.pop_oldest(batch);
        }
    }

    /// Dispatches a range of a device. A request that is dispatched again keeps its first time.
    #[inline]
    pub(super) fn dispatch(&mut self, sent: RawRecord) {
        let (mut offset, mut left) = (sent.offset, sent.bytes);
        loop {
            let key = Key::new(sent.device, sent.operation, offset);
            let Some(number) = self.first_undispatched(key) else { break };
            let request = &mut self.queue[(number - self.first) as usize];
            request.raw.dispatch_ns = sent.time_ns;
            // An empty request is a flush.
            if request.left == 0 || request.left >= left {
                break;
            }
            (offset, left) = (offset + request.left, left - request.left);
        }
    }

    /// Number of the oldest request with this key that was not dispatched.
    #[inline]
    fn first_undispatched(&self, key: Key) -> Option<u64> {
        let mut found = None;
        let mut next = self.newest.get(&key).copied();
        for _ in 0..CHAIN_MAX {
            let Some(number) = next.filter(|number| *number >= self.first) else { break };
            let request = &self.queue[(number - self.first) as usize];
            if !request.is_waiting || request.key != key {
                break;
            }
            if request.raw.dispatch_ns == NO_TIME {
                found = Some(number);
            }
            next = request.older;
        }
        found
    }

    /// Completes a range of a device.
    #[inline]
    pub(super) fn complete(&mut self, done: RawRecord, batch: &mut Batch) {
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
            self.pop_oldest(batch);
        }
    }

    /// Ends the trace: all requests leave.
    pub(super) fn finish(&mut self, batch: &mut Batch) {
        while !self.queue.is_empty() {
            self.pop_oldest(batch);
        }
        if self.has_completions {
            batch.corrections.without_completion += std::mem::take(&mut self.without);
        }
    }

    /// Removes the oldest request with this key from its chain.
    #[inline]
    fn take(&mut self, key: Key) -> Option<u64> {
        let newest = self.newest.get(&key).copied().filter(|number| *number >= self.first)?;
        let (mut newer, mut number) = (None, newest);
        for _ in 0..CHAIN_MAX {
            let older = self.queue[(number - self.first) as usize].older;
            let Some(older) = older.filter(|older| *older >= self.first) else { break };
            let request = &self.queue[(older - self.first) as usize];
            // A request with another key, or a completed one, has left this chain.
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

    /// Moves the oldest request to the batch.
    #[inline]
    fn pop_oldest(&mut self, batch: &mut Batch) {
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

/// A request without offset, length, flags and later times.
#[inline]
pub(super) fn request(time_ns: i64, position: u64, device: u16, operation: Operation) -> RawRecord {
    let flags = crate::record::Flags::NONE;
    RawRecord {
        time_ns,
        completion_ns: NO_TIME,
        dispatch_ns: NO_TIME,
        offset: 0,
        bytes: 0,
        position,
        device,
        operation,
        flags,
    }
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
