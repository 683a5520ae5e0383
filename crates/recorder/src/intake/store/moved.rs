//! Streams that move to another intake, because a connection there declares them.
//!
//! Invariants: only a settled stream moves, with nothing in flight, nothing in memory, and its losses in the
//! journal; its account, watermark and numbers go with it.
use std::sync::Arc;

use keepup_error::Cause;

use super::Store;
use crate::intake::reduction::Reducing;
use crate::intake::stream::Stream;
use crate::reduce::worker::Destination;

/// Owner of a stream that is about to move. No connection has this index.
const LEAVING: usize = usize::MAX;

/// A stream on its way, with the stream derived from it.
pub(in crate::intake) struct Moved {
    stream: Stream,
    derived: Option<Stream>,
}

impl Moved {
    /// Ids of both.
    pub(in crate::intake) fn ids(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.stream.info.id).chain(self.derived.as_ref().map(|derived| derived.info.id))
    }
}

impl Store {
    /// Prepares streams for moving: nobody else may feed them, and their events become durable soon. Returns
    /// the slots of those that are known.
    pub(in crate::intake) fn begin_leaving(&mut self, ids: impl Iterator<Item = u32>) -> Vec<usize> {
        let slots: Vec<usize> = ids.filter_map(|id| self.by_id.get(&id).copied()).collect();
        for &slot in &slots {
            self.seal(slot);
            self.streams[slot].owner = Some(LEAVING);
        }
        self.volumes.send_open_gap();
        self.flush();
        slots
    }

    /// Cancels a move.
    pub(in crate::intake) fn stay(&mut self, slots: &[usize]) {
        for &slot in slots {
            self.streams[slot].owner = None;
        }
    }

    /// Whether a stream can be taken out: nothing of it is in flight, and its losses are in the journal.
    pub(in crate::intake) fn can_leave(&mut self, slot: usize) -> bool {
        let derived = self.streams[slot].reducing.as_ref().map_or(slot, |reducing| reducing.to.slot);
        let journalled = self.volumes.gaps_durable();
        self.is_slot_settled(slot)
            && [slot, derived].into_iter().all(|slot| {
                self.advance(slot);
                self.streams[slot].watermark.is_clear(journalled)
            })
    }

    /// Takes a stream out.
    pub(in crate::intake) fn take_out(&mut self, slot: usize) -> Moved {
        self.take_unused(slot);
        let to = self.streams[slot].reducing.as_ref().map(|reducing| reducing.to.slot);
        let derived = to.filter(|&to| to != slot).map(|to| self.take_one(to));
        let stream = self.take_one(slot);
        self.shares = self.shares.saturating_sub(stream.shares);
        Moved { stream, derived }
    }

    fn take_one(&mut self, slot: usize) -> Stream {
        let stream = self.streams[slot].leave();
        self.by_id.remove(&stream.info.id);
        // What it has lost is explained, if it is, where it ends.
        for (&cause, &events) in &stream.ledger.gap_events {
            self.figures().remove_gap(cause, events);
        }
        stream
    }

    /// Puts a stream in that another intake has sent.
    pub(in crate::intake) fn put_in(&mut self, Moved { mut stream, derived }: Moved) {
        self.shares += stream.shares;
        for stream in std::iter::once(&stream).chain(&derived) {
            for (&cause, &events) in &stream.ledger.gap_events {
                self.figures().add_gap(cause, events);
            }
        }
        let reducing = stream.reducing.take();
        let slot = self.put(stream);
        let target = derived.map_or(slot, |derived| self.put(derived));
        if let Some(Reducing { recipe, to, event_bytes, reduced_bytes_max, .. }) = reducing {
            let recipe = self.reductions.recipe(recipe.steps.clone(), recipe.input.clone());
            let channel = Arc::clone(&to.channel);
            let to = Arc::new(Destination { stream: to.stream, channel, slot: target });
            self.streams[slot].reducing =
                Some(Reducing { recipe, to, event_bytes, reduced_bytes_max, target: None });
        }
    }

    /// Whether the pool has memory for `streams` more. With their reduced forms they may need more: then
    /// their blocks are small.
    pub(in crate::intake) fn check_memory(&self, streams: usize) -> Result<(), Cause> {
        self.check_shares(self.by_id.len() + streams, self.shares + streams)
    }

    /// Checks that there is memory for this intake's part of the streams of a client, on all its connections.
    ///
    /// # Errors
    /// As [`Store::check_shares`].
    pub(in crate::intake) fn check_client(&self, streams: u32) -> Result<(), Cause> {
        let part = (streams as usize).div_ceil(self.shards.count());
        self.check_shares(part, part)
    }
}
