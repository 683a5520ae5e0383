//! Blocks of one volume in the order in which they were taken, and the progress of each. Pure.
//!
//! Invariants: a block counts as written only when every block before it is, so that a reader
//! never meets a hole. Until then its memory is kept, so that it can go to another volume if this
//! one fails. A block is reported durable only if it was written before the flush (or the finish
//! of its segment) that covers it was started.
use std::collections::VecDeque;

use keepup_recording::layout::SECTOR;
use keepup_sys::pool::Block;

use crate::link::{Sealed, SealedMeta};

/// Progress of a block.
#[derive(Debug)]
enum Stage {
    InFlight,
    /// The kernel confirmed it, or refused it.
    Landed {
        block: Block,
        confirmed: bool,
    },
    Written,
    Durable,
}

#[derive(Debug)]
struct Entry {
    meta: SealedMeta,
    segment: u32,
    end_offset: u64,
    started_ns: u64,
    stage: Stage,
}

/// A block with a finished write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Landing {
    pub(super) segment: u32,
    pub(super) bytes: usize,
    /// Start time of its write.
    pub(super) started_ns: u64,
}

/// Contiguous written part of a segment, which a flush that starts now will cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    /// The segment.
    pub(super) segment: u32,
    /// Blocks before this token are covered.
    pub(super) end_token: u64,
    /// All bytes of the segment below this offset are covered.
    pub(super) end_offset: u64,
    /// Blocks of the segment below that offset.
    pub(super) blocks: u64,
}

/// Blocks by token; tokens count up from 0.
#[derive(Debug)]
pub(super) struct Order {
    entries: VecDeque<Entry>,
    first_token: u64,
    written: Covered,
    covered_token: u64,
}

impl Order {
    pub(super) fn new() -> Self {
        let written = Covered { segment: 0, end_token: 0, end_offset: SECTOR as u64, blocks: 0 };
        Self { entries: VecDeque::with_capacity(1024), first_token: 0, written, covered_token: 0 }
    }

    /// Enters a block that is about to be written; returns its token.
    pub(super) fn begin(&mut self, meta: SealedMeta, segment: u32, end_offset: u64, now_ns: u64) -> u64 {
        self.entries.push_back(Entry {
            meta,
            segment,
            end_offset,
            started_ns: now_ns,
            stage: Stage::InFlight,
        });
        self.next_token() - 1
    }

    /// Token of the next block.
    pub(super) fn next_token(&self) -> u64 {
        self.first_token + self.entries.len() as u64
    }

    /// Blocks before this token are covered by a completed flush.
    pub(super) fn covered_token(&self) -> u64 {
        self.covered_token
    }

    fn position(&self, token: u64) -> Option<usize> {
        usize::try_from(token.checked_sub(self.first_token)?).ok().filter(|&at| at < self.entries.len())
    }

    /// Enters the kernel's answer for a block.
    pub(super) fn landed(&mut self, token: u64, block: Block, confirmed: bool) -> Option<Landing> {
        let at = self.position(token)?;
        let entry = &mut self.entries[at];
        entry.stage = Stage::Landed { block, confirmed };
        Some(Landing { segment: entry.segment, bytes: entry.meta.bytes, started_ns: entry.started_ns })
    }

    /// Next block in order that is written, with all blocks before it; returns its memory.
    pub(super) fn next_written(&mut self) -> Option<Sealed> {
        let at = self.position(self.written.end_token)?;
        let entry = &mut self.entries[at];
        if !matches!(entry.stage, Stage::Landed { confirmed: true, .. }) {
            return None;
        }
        let Stage::Landed { block, .. } = std::mem::replace(&mut entry.stage, Stage::Written) else {
            return None;
        };
        let blocks = if entry.segment == self.written.segment { self.written.blocks } else { 0 };
        self.written = Covered {
            segment: entry.segment,
            end_token: self.written.end_token + 1,
            end_offset: entry.end_offset,
            blocks: blocks + 1,
        };
        Some(Sealed { block, meta: entry.meta.clone() })
    }

    /// Start time of the first block that is not yet contiguously written.
    pub(super) fn oldest_unwritten_ns(&self) -> Option<u64> {
        self.position(self.written.end_token).map(|at| self.entries[at].started_ns)
    }

    /// What a flush of `segment` would newly cover, if anything.
    pub(super) fn coverable(&self, segment: u32) -> Option<Covered> {
        let news = self.written.end_token > self.covered_token && self.written.segment == segment;
        news.then_some(self.written)
    }

    /// End of the contiguous written part of `segment`, in bytes, and the number of its blocks,
    /// given that the segment has `end_offset` bytes and `blocks` blocks in all.
    pub(super) fn written_end(&self, segment: u32, end_offset: u64, blocks: u64) -> (u64, u64) {
        match segment.cmp(&self.written.segment) {
            std::cmp::Ordering::Less => (end_offset, blocks),
            std::cmp::Ordering::Equal => (self.written.end_offset, self.written.blocks),
            std::cmp::Ordering::Greater => (SECTOR as u64, 0),
        }
    }

    /// Enters a successful flush.
    pub(super) fn covered(&mut self, covered: Covered) {
        self.covered_token = self.covered_token.max(covered.end_token);
        self.make_durable(covered.segment, covered.end_token);
    }

    /// Enters a finished segment: all its written blocks are on stable storage.
    pub(super) fn finished(&mut self, segment: u32) {
        self.make_durable(segment, u64::MAX);
    }

    fn make_durable(&mut self, segment: u32, end_token: u64) {
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let covered = entry.segment == segment && self.first_token + (at as u64) < end_token;
            if covered && matches!(entry.stage, Stage::Written) {
                entry.stage = Stage::Durable;
            }
        }
    }

    /// Next block in order that is durable and was not reported yet.
    pub(super) fn next_durable(&mut self) -> Option<SealedMeta> {
        if !matches!(self.entries.front()?.stage, Stage::Durable) {
            return None;
        }
        self.first_token += 1;
        self.entries.pop_front().map(|entry| entry.meta)
    }

    /// Unwritten blocks of a failed volume with nothing in flight; they can go to another volume.
    /// A block with a write that never completed comes without its memory.
    pub(super) fn take_unwritten(&mut self) -> Vec<(SealedMeta, Option<Block>)> {
        let keep = self.written.end_token.saturating_sub(self.first_token) as usize;
        let unwritten = self.entries.drain(keep.min(self.entries.len())..);
        unwritten
            .map(|entry| match entry.stage {
                Stage::Landed { block, .. } => (entry.meta, Some(block)),
                _ => (entry.meta, None),
            })
            .collect()
    }

    /// Blocks that were written and will not become durable.
    pub(super) fn take_undurable(&mut self) -> Vec<SealedMeta> {
        self.first_token += self.entries.len() as u64;
        self.entries.drain(..).map(|entry| entry.meta).collect()
    }

    /// Whether every block was reported.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
