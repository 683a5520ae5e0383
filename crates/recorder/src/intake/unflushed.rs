//! Written, unflushed blocks, kept in memory so that they can be written to another volume when
//! their own fails.
//!
//! Invariant: at most `bytes_max` are kept. Above that, and whenever the pool has no free memory,
//! the oldest blocks are given up. Such a block has no copy in memory until the next flush.
use std::collections::VecDeque;

use keepup_sys::pool::{Block, Pool};

/// Stream slot and number of the block within the stream.
type Key = (usize, u64);

/// Kept blocks, oldest first, with an index by stream.
#[derive(Debug)]
pub(super) struct Unflushed {
    bytes_max: usize,
    bytes: usize,
    order: VecDeque<Key>,
    streams: Vec<VecDeque<(u64, Block)>>,
}

impl Unflushed {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, order: VecDeque::new(), streams: Vec::new() }
    }

    /// Memory of the kept blocks, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a written block; blocks above the limit go back to `pool`.
    pub(super) fn keep(&mut self, slot: usize, stream_block: u64, block: Block, pool: &mut Pool) {
        if block.len() > self.bytes_max {
            return pool.give_back(block);
        }
        if slot >= self.streams.len() {
            self.streams.resize_with(slot + 1, VecDeque::new);
        }
        self.bytes += block.len();
        self.streams[slot].push_back((stream_block, block));
        self.order.push_back((slot, stream_block));
        while self.bytes > self.bytes_max && self.give_up_oldest(pool) {}
    }

    /// Takes a block out, because it is durable or must be written again. `None` when it was
    /// given up.
    pub(super) fn take(&mut self, slot: usize, stream_block: u64) -> Option<Block> {
        let kept = self.streams.get_mut(slot)?;
        // Blocks usually become durable in the order in which they were written.
        let at = kept.iter().position(|(number, _)| *number == stream_block)?;
        let (_, block) = kept.remove(at)?;
        self.bytes -= block.len();
        if self.order.front() == Some(&(slot, stream_block)) {
            self.order.pop_front();
        }
        Some(block)
    }

    /// Gives the memory of the oldest block back to `pool`; returns whether there was one.
    pub(super) fn give_up_oldest(&mut self, pool: &mut Pool) -> bool {
        while let Some((slot, stream_block)) = self.order.pop_front() {
            if let Some(block) = self.take(slot, stream_block) {
                pool.give_back(block);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
#[path = "unflushed_tests.rs"]
mod tests;
