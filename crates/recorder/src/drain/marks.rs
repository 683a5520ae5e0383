//! Drain marks of one volume: which whole segments are durable elsewhere. Pure.
//!
//! Invariant: a segment counts only when it was read to its end, the other side has all of its
//! events, and none of its blocks was skipped. No segment behind one that does not count counts
//! either, since the oldest are removed first.
use std::collections::{BTreeMap, VecDeque};

/// A segment that the other side may not have completely.
#[derive(Debug)]
struct Open {
    index: u32,
    /// One past its last event, by stream.
    ends: BTreeMap<u32, u64>,
    is_read: bool,
}

/// Drain state of the segments of one volume.
#[derive(Debug, Default)]
pub(super) struct SegmentMarks {
    open: VecDeque<Open>,
    /// All segments below this one are durable elsewhere.
    drained: u32,
    /// First segment with a skipped block.
    stop: Option<u32>,
}

impl SegmentMarks {
    /// Enters a block of a segment, which ends before event `end` of `stream`; it was sent or
    /// will be.
    pub(super) fn block(&mut self, index: u32, stream: u32, end: u64) {
        if let Some(open) = self.open(index) {
            let known = open.ends.entry(stream).or_default();
            *known = end.max(*known);
        }
    }

    /// A segment was read to its end.
    pub(super) fn read(&mut self, index: u32) {
        if let Some(open) = self.open(index) {
            open.is_read = true;
        }
    }

    /// Part of a segment is not sent.
    pub(super) fn skipped(&mut self, index: u32) {
        if index >= self.drained {
            self.stop = Some(self.stop.map_or(index, |stop| stop.min(index)));
            self.open.retain(|open| open.index < index);
        }
    }

    /// Updates how far the other side has each stream; returns the first segment that is not
    /// durable there.
    pub(super) fn drained(&mut self, ends: &BTreeMap<u32, u64>) -> u32 {
        let end = |stream: &u32| ends.get(stream).copied().unwrap_or(0);
        let has = |open: &Open| open.is_read && open.ends.iter().all(|(stream, last)| *last <= end(stream));
        while let Some(open) = self.open.front().filter(|open| has(open)) {
            self.drained = open.index + 1;
            self.open.pop_front();
        }
        self.drained
    }

    /// First segment that is not known to be durable elsewhere.
    pub(super) fn first_open(&self) -> u32 {
        self.drained
    }

    fn open(&mut self, index: u32) -> Option<&mut Open> {
        if index < self.drained || self.stop.is_some_and(|stop| index >= stop) {
            return None;
        }
        let at = self.open.partition_point(|open| open.index < index);
        if self.open.get(at).is_none_or(|open| open.index > index) {
            self.open.insert(at, Open { index, ends: BTreeMap::new(), is_read: false });
        }
        self.open.get_mut(at)
    }
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
