//! Durable watermark of a stream, and the losses below it. Pure.
//!
//! Invariants: the watermark never passes an unsettled event; it passes a loss only after the
//! loss's journal entry is on stable storage, so that an acknowledgement survives a crash.
use std::collections::VecDeque;

/// Fate of a block that was sent to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Durable,
    Lost,
}

/// A block above the watermark.
#[derive(Clone, Copy, Debug)]
struct Pending {
    stream_block: u64,
    first_sequence: u64,
    events: u64,
    fate: Fate,
    /// Damaged events between the block before and the end of this one.
    damaged: u64,
    /// Journal entry that must be durable first.
    entry: u64,
}

impl Pending {
    fn lost_events(&self) -> u64 {
        self.damaged.saturating_add(if self.fate == Fate::Lost { self.events } else { 0 })
    }
}

/// A block that was still unsettled when the recorder ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsettled {
    pub(super) first_sequence: u64,
    pub(super) events: u64,
}

/// The watermark of one stream.
#[derive(Debug)]
pub(super) struct Watermark {
    pending: VecDeque<Pending>,
    /// First sequence number that is neither durable nor known to be missing.
    pub(super) next: u64,
    /// Events below `next` that reached the recorder and are not stored.
    pub(super) lost_events: u64,
    /// Damaged events since the last block.
    damaged: u64,
    /// Journal entry of the last loss that is not yet attached to a pending block.
    entry: u64,
    /// Journal entry of the last loss.
    last_entry: u64,
}

impl Watermark {
    pub(super) fn new() -> Self {
        Self {
            pending: VecDeque::with_capacity(64),
            next: 0,
            lost_events: 0,
            damaged: 0,
            entry: 0,
            last_entry: 0,
        }
    }

    /// For an empty place in the table of streams.
    pub(super) fn unused() -> Self {
        Self { pending: VecDeque::new(), next: 0, lost_events: 0, damaged: 0, entry: 0, last_entry: 0 }
    }

    /// Enters a sealed block of consecutive events.
    pub(super) fn sealed(&mut self, stream_block: u64, first_sequence: u64, events: u64) {
        let damaged = std::mem::take(&mut self.damaged);
        let entry = std::mem::take(&mut self.entry);
        let fate = Fate::Open;
        self.pending.push_back(Pending { stream_block, first_sequence, events, fate, damaged, entry });
    }

    /// Enters events that are missing in front of the next one; `damaged` of them arrived with a
    /// wrong checksum. `entry` is the number of their journal entry.
    pub(super) fn missing(&mut self, damaged: u64, entry: u64) {
        self.damaged = self.damaged.saturating_add(damaged);
        self.entry = self.entry.max(entry);
        self.last_entry = entry;
    }

    /// Number of the journal entry of the last missing events; 0 when none were missing.
    pub(super) fn last_entry(&self) -> u64 {
        self.last_entry
    }

    /// Forgets the numbers of journal entries, all of which are on stable storage: the stream moves to an
    /// intake with its own numbers.
    pub(super) fn forget_entries(&mut self) {
        (self.entry, self.last_entry) = (0, 0);
    }

    /// Enters that a block is on stable storage.
    pub(super) fn durable(&mut self, stream_block: u64) {
        let Some(first) = self.pending.front().map(|p| p.stream_block) else { return };
        let position = stream_block.checked_sub(first).and_then(|n| usize::try_from(n).ok());
        if let Some(pending) = position.and_then(|at| self.pending.get_mut(at)) {
            pending.fate = Fate::Durable;
        }
    }

    /// Enters that the block that starts with an event will never be durable; `entry` is the
    /// number of its journal entry.
    pub(super) fn lost(&mut self, first_sequence: u64, entry: u64) {
        let at = self.pending.partition_point(|pending| pending.first_sequence < first_sequence);
        if let Some(pending) = self.pending.get_mut(at).filter(|p| p.first_sequence == first_sequence) {
            pending.fate = Fate::Lost;
            pending.entry = pending.entry.max(entry);
            self.last_entry = self.last_entry.max(entry);
        }
    }

    /// Whether it may advance once more than `journalled` entries are durable.
    pub(super) fn waits_for_journal(&self, journalled: u64) -> bool {
        self.pending.front().map_or(self.entry, |pending| pending.entry) > journalled
    }

    /// Whether nothing is pending, and every loss is in the journal.
    pub(super) fn is_clear(&self, journalled: u64) -> bool {
        self.pending.is_empty() && self.entry.max(self.last_entry) <= journalled
    }

    /// Advances as far as possible. `received_next` is the end once all received events are
    /// settled, `None` before. Journal entries up to `journalled` are durable. Returns whether it
    /// advanced.
    pub(super) fn advance(&mut self, received_next: Option<u64>, journalled: u64) -> bool {
        let before = self.next;
        while let Some(pending) = self.pending.front() {
            if pending.fate == Fate::Open || pending.entry > journalled {
                return self.next != before;
            }
            self.next = pending.first_sequence.saturating_add(pending.events);
            self.lost_events = self.lost_events.saturating_add(pending.lost_events());
            self.pending.pop_front();
        }
        if let Some(next) = received_next.filter(|_| self.entry <= journalled) {
            self.next = self.next.max(next);
            self.lost_events = self.lost_events.saturating_add(std::mem::take(&mut self.damaged));
        }
        self.next != before
    }

    /// Takes all unsettled blocks, which count as lost.
    pub(super) fn take_unsettled(&mut self) -> Vec<Unsettled> {
        let open = self.pending.iter_mut().filter(|pending| pending.fate == Fate::Open);
        open.map(|pending| {
            pending.fate = Fate::Lost;
            Unsettled { first_sequence: pending.first_sequence, events: pending.events }
        })
        .collect()
    }
}

#[cfg(test)]
#[path = "watermark_tests.rs"]
mod tests;
