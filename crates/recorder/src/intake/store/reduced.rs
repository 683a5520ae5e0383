//! Streams that are reduced: declared, given memory, sent to the reducer threads, and accounted for.
//!
//! Invariants: a block is handed over only together with the memory for its reduced form; a thread that ends
//! early leaves losses with a cause.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keepup_error::Cause;
use keepup_plan::reduction::{Keep, Samples, Step};
use keepup_recording::layout::{BlockHeader, ChannelBytes, MESSAGE_HEADER};
use keepup_sources::MAP_ID_MIN;
use keepup_stream::ledger::{Gap, Ledger, LossCause, Reduced, StreamLedger};
use keepup_stream::wire::{Compression, StreamInfo};
use keepup_sys::pool::Block;

use super::Store;
use crate::config::block_bytes_needed;
use crate::intake::reduction::{Owed, Reducing};
use crate::intake::shards::Ends;
use crate::intake::stream::{OpenBlock, Stream};
use crate::link::Sealed;
use crate::reduce::worker::{Destination, Done, Job};
use crate::reduce::{bytes_max, element_type, samples};

/// A block, and for a reduced stream the memory for its reduced form.
pub(super) type Lent = (Block, Option<Block>);

/// First id of derived streams.
const DERIVED_ID_MIN: u32 = 32_768;
/// One past the largest id of derived streams. Maps of detectors follow.
const DERIVED_ID_END: u32 = MAP_ID_MIN;
/// Suffix of a derived stream's name.
const SUFFIX: &str = "/reduced";
/// Longest stream name, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// A declared stream, ready to be added.
pub(super) struct Prepared {
    stream: Stream,
    recorded: StreamInfo,
    /// The derived stream with the reduced events, where the raw ones are kept too.
    derived: Option<Stream>,
    /// Steps, and the kind of events they apply to.
    reduction: Option<(Vec<Step>, Samples)>,
    reduced_bytes_max: usize,
}

impl Prepared {
    /// Sets the first sequence number of the stream and its derived stream, if `starts` has one.
    pub(super) fn start_at(&mut self, starts: &BTreeMap<u32, u64>) {
        let start = starts.get(&self.recorded.id).copied().unwrap_or(0);
        for stream in std::iter::once(&mut self.stream).chain(&mut self.derived) {
            (stream.next_sequence, stream.watermark.next) = (start, start);
        }
    }

    /// Shares of the pool that the stream needs.
    pub(super) fn shares(&self) -> usize {
        let bytes = self.reduction.as_ref().and_then(|(_, input)| input.bytes());
        bytes.map_or(1, |bytes| shares(bytes, self.reduced_bytes_max))
    }
}

impl Store {
    /// Prepares newly declared streams and their derived streams, without adding them. The ids of derived
    /// streams are claimed.
    pub(super) fn prepare(
        &self,
        new: &[&StreamInfo],
        claimed: &mut Vec<u32>,
    ) -> Result<Vec<Prepared>, Cause> {
        let declared = new.iter().map(|info| info.id).collect();
        let mut made = Vec::with_capacity(new.len());
        for &info in new {
            let mut prepared = Prepared {
                stream: Stream::new(info.clone(), channel(info)?),
                recorded: info.clone(),
                derived: None,
                reduction: None,
                reduced_bytes_max: 0,
            };
            if let Some((reduction, output)) = self.reductions.plan(info)? {
                prepared.reduction = Some((reduction.steps.clone(), samples(info)));
                prepared.reduced_bytes_max = bytes_max(&output);
                let reduced = StreamInfo {
                    element: element_type(output.element),
                    shape: output.shape,
                    compression: output.compressed.then_some(Compression::BitshuffleLz4),
                    ..info.clone()
                };
                match reduction.keep {
                    Keep::Reduced => {
                        prepared.stream.ledger.reduced = Some(Reduced::default());
                        prepared.recorded = reduced;
                    }
                    Keep::Both => prepared.derived = Some(self.derive(reduced, &declared, claimed)?),
                }
            }
            made.push(prepared);
        }
        Ok(made)
    }

    /// Derived stream of one that is also kept raw.
    fn derive(
        &self,
        reduced: StreamInfo,
        declared: &BTreeSet<u32>,
        claimed: &mut Vec<u32>,
    ) -> Result<Stream, Cause> {
        let next = claimed.last().map_or(DERIVED_ID_MIN, |last| last + 1);
        let is_declared = |id| declared.contains(&id);
        let Some(id) = self.shards.places().claim(next..DERIVED_ID_END, self.intake, is_declared) else {
            let what = format!("no stream id is left for the reduced form of stream {}", reduced.id);
            return Err(what.into());
        };
        claimed.push(id);
        let name = format!("{}{SUFFIX}", reduced.name);
        if name.len() > NAME_BYTES_MAX {
            let what = format!(
                "cannot keep both forms of stream {}: its name is too long to append \"{SUFFIX}\"",
                reduced.id
            );
            let hint = format!("at most {} bytes where both forms are kept", NAME_BYTES_MAX - SUFFIX.len());
            return Err(Cause::new(what).with_hint(hint));
        }
        let info = StreamInfo { id, name, ..reduced };
        let channel = channel(&info)?;
        let mut stream = Stream::new(info, channel);
        stream.ledger.reduced = Some(Reduced { raw_kept: true, ..Reduced::default() });
        Ok(stream)
    }

    /// Adds a prepared stream and its derived stream.
    pub(super) fn take_in(&mut self, prepared: Prepared) -> Result<(), Cause> {
        let shares = prepared.shares();
        let Prepared { mut stream, recorded, derived, reduction, reduced_bytes_max } = prepared;
        stream.shares = shares;
        self.counters.streams.add(Arc::clone(&stream.figures));
        let slot = self.enter(stream, &recorded);
        let Some((steps, input)) = reduction else { return Ok(()) };
        let recipe = self.reductions.recipe(steps, input);
        let (target_slot, recorded) = match derived {
            Some(derived) => {
                let info = derived.info.clone();
                (self.enter(derived, &info), info)
            }
            None => (slot, recorded),
        };
        let channel = Arc::new(channel(&recorded)?);
        let to = Arc::new(Destination { stream: recorded.id, channel, slot: target_slot });
        let event_bytes = recipe.input.bytes().unwrap_or(0);
        self.streams[slot].reducing =
            Some(Reducing { recipe, to, event_bytes, reduced_bytes_max, target: None });
        Ok(())
    }

    /// Lends a block for an event of `length` bytes and later ones; for a reduced stream, also
    /// the memory for the reduced form.
    pub(super) fn lend(&mut self, slot: usize, length: u64) -> Option<Lent> {
        let bytes = self.next_block_bytes(slot).max(length as usize);
        let block = self.pool.take(block_bytes_needed(bytes))?;
        let Some(reducing) = &self.streams[slot].reducing else { return Some((block, None)) };
        let events = (block.len() / (reducing.event_bytes as usize + MESSAGE_HEADER)).max(1);
        let target = block_bytes_needed(events * (reducing.reduced_bytes_max + MESSAGE_HEADER));
        match self.pool.take(target) {
            Some(target) => Some((block, Some(target))),
            None => {
                self.pool.give_back(block);
                None
            }
        }
    }

    /// Makes a lent block the stream's open one.
    pub(super) fn open(&mut self, slot: usize, (block, target): Lent) {
        self.open_bytes += self.charge(slot, block.len());
        let stream = &mut self.streams[slot];
        stream.open(block);
        stream.keep_target(target);
    }

    /// Takes back memory that was lent and not used.
    pub(super) fn take_unused(&mut self, slot: usize) {
        let stream = &mut self.streams[slot];
        let target = stream.reducing.as_mut().and_then(|reducing| reducing.target.take());
        let empty = stream.open.take().map(OpenBlock::into_block);
        self.open_bytes -= empty.as_ref().map_or(0, |block| self.charge(slot, block.len()));
        empty.into_iter().chain(target).for_each(|block| self.pool.give_back(block));
    }

    /// Sends a sealed block to its reducer or to a volume.
    pub(super) fn send(&mut self, sealed: Sealed) {
        let slot = sealed.meta.slot;
        let Some(reducing) = &mut self.streams[slot].reducing else { return self.place(sealed) };
        let to = Arc::clone(&reducing.to);
        let owed = Owed { raw_slot: slot, to: Arc::clone(&to), header: sealed.meta.header };
        let Some(target) = reducing.target.take() else {
            self.pool.give_back(sealed.block);
            return self.lose_owed(owed);
        };
        let recipe = Arc::clone(&reducing.recipe);
        if to.slot != slot {
            self.streams[to.slot].unsettled += 1;
        }
        if let Err(job) = self.reductions.hand_over(Job { recipe, to, raw: sealed, target }) {
            self.pool.give_back(job.raw.block);
            self.pool.give_back(job.target);
            self.lose_owed(owed);
            self.failed.get_or_insert_with(|| "a reducer thread ended early".into());
        }
    }

    /// Places finished blocks. Returns whether memory was freed.
    pub(super) fn absorb_reduced(&mut self) -> bool {
        let mut freed = false;
        while let Some(Done { to, raw, reduced }) = self.reductions.next_done() {
            freed = true;
            let (slot, header) = (raw.meta.slot, raw.meta.header);
            match reduced {
                Ok(sealed) => self.place(sealed),
                Err(target) => {
                    self.pool.give_back(target);
                    self.lose_reduced(&to, &header);
                }
            }
            match to.slot == slot {
                true => self.pool.give_back(raw.block),
                false => self.place(raw),
            }
        }
        while let Some(owed) = self.reductions.next_abandoned() {
            self.lose_owed(owed);
            self.failed.get_or_insert_with(|| "a reducer thread ended early".into());
        }
        if self.reductions.flush_after && self.reductions.is_idle() {
            self.reductions.flush_after = false;
            self.volumes.flush();
        }
        freed
    }

    /// Makes everything durable that was sent.
    pub(in crate::intake) fn flush(&mut self) {
        self.volumes.flush();
        self.reductions.flush_after = !self.reductions.is_idle();
    }

    /// Id of the stream with the reduced events, where the raw ones are kept too.
    pub(super) fn derived_id(&self, slot: usize) -> Option<u32> {
        let to = &self.streams[slot].reducing.as_ref()?.to;
        (to.slot != slot).then_some(to.stream)
    }

    /// Enters into the journals that the derived stream lacks what its stream lacks. Before the entry of the
    /// stream, so that this one is the last.
    pub(super) fn note_derived_gap(&mut self, slot: usize, gap: Gap) {
        if let Some(stream) = self.derived_id(slot) {
            self.volumes.note_gap(Gap { stream, ..gap });
        }
    }

    fn lose_reduced(&mut self, to: &Destination, header: &BlockHeader) {
        self.incidents.push(format!(
            "{} events of stream {} from {} on could not be reduced",
            header.event_count, header.stream, header.first_sequence
        ));
        self.lose(to.slot, gap(to.stream, header));
    }

    fn lose_owed(&mut self, owed: Owed) {
        if owed.to.slot != owed.raw_slot {
            self.lose(owed.raw_slot, gap(owed.header.stream, &owed.header));
        }
        self.lose_reduced(&owed.to, &owed.header);
    }

    /// Whether every event of the stream in `slot`, raw and reduced, is durable or known to be
    /// lost.
    pub(in crate::intake) fn is_slot_settled(&self, slot: usize) -> bool {
        let stream = &self.streams[slot];
        let derived = stream.reducing.as_ref().is_none_or(|r| self.streams[r.to.slot].is_settled());
        stream.is_settled() && derived
    }

    /// Stream id, received and durable counts of every stream on the volumes.
    pub(in crate::intake) fn ends(&self) -> Ends {
        let end = |stream: &Stream| {
            let ledger = &stream.ledger;
            (
                stream.info.id,
                ledger.received,
                ledger.reduced.map_or(ledger.durable, |reduced| reduced.durable),
            )
        };
        let mut ends: Ends = self.streams.iter().map(end).collect();
        for stream in &self.streams {
            if let Some(reducing) = &stream.reducing {
                ends[reducing.to.slot].1 = stream.ledger.received;
            }
        }
        let present = ends.into_iter().zip(&self.streams).filter(|(_, stream)| !stream.is_gone);
        present.map(|(end, _)| end).collect()
    }

    /// Ledger of all received streams; a stream's reduced form is part of its account.
    pub(in crate::intake) fn ledger(&self) -> Ledger {
        let received = self.streams.iter().filter(|stream| !stream.is_derived() && !stream.is_gone);
        let account = |stream: &Stream| {
            let reduced = stream.reducing.as_ref().and_then(|r| self.streams[r.to.slot].ledger.reduced);
            (stream.info.id, StreamLedger { reduced, ..stream.ledger.clone() })
        };
        Ledger { streams: received.map(account).collect() }
    }
}

/// Shares of the pool for the reduced form, relative to the raw form; whole shares.
fn shares(event_bytes: u64, reduced_bytes_max: usize) -> usize {
    // Message headers add a little, in proportion to the size.
    let grown = (reduced_bytes_max as u64 * 7 / 8).div_ceil(event_bytes.max(1));
    1 + (grown as usize).max(1)
}

fn gap(stream: u32, header: &BlockHeader) -> Gap {
    let (first_sequence, events) = (header.first_sequence, u64::from(header.event_count));
    Gap { stream, first_sequence, events, cause: LossCause::NotReduced }
}

fn channel(info: &StreamInfo) -> Result<ChannelBytes, Cause> {
    ChannelBytes::new(info).map_err(|e| Cause::of(&e))
}

#[cfg(test)]
#[path = "reduced_tests.rs"]
mod tests;
