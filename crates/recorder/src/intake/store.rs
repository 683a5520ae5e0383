//! An intake's streams, blocks and volumes, without the sockets.
//!
//! Owned by one intake thread alone. Events come in (begin, complete, abort), blocks go out to
//! writers, and the writers' reports are absorbed. No locks; no allocation after warm-up, except
//! for gaps and other faults.
mod declared;
mod moved;
mod reduced;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_error::Cause;
use keepup_recording::account::Incidents;
use keepup_recording::crc::Combiner;
use keepup_stream::ledger::{Explained, Gap, LossCause};
use keepup_stream::rejected::{Rejected, Rejection};
use keepup_stream::wire::{EndStream, EventHead, StreamInfo};
use keepup_sys::pool::Pool;

pub(super) use self::moved::Moved;
use self::reduced::Lent;
use super::reduction::Reductions;
use super::rotation::Rotation;
use super::shards::Shards;
use super::stream::{OpenBlock, Stream};
use super::unflushed::Unflushed;
use super::volumes::Volumes;
use crate::config::{BLOCK_BYTES_MIN, OPEN_DIVISOR, RecorderConfig, block_bytes_needed, pool_bytes_needed};
use crate::counters::{Counters, IntakeCounters, add, raise};
use crate::link::{FromWriter, Sealed, SealedMeta};
use crate::reduce::worker::ReducerLink;
use crate::tap::TapInlet;

/// Most gaps that wait for the journals before their senders must wait.
const GAPS_WAITING_MAX: u64 = 10_000;

/// An open block takes at most what is left of that part, divided by this number or by that of the streams.
/// With many streams of one rate all blocks become equal; one fast stream among slow ones gets whole blocks.
const REST_DIVISOR_MAX: usize = 16;

/// Most blocks that are sealed at once because of their age, or for their memory.
const SEALED_MAX: usize = 256;

/// Result of requesting memory for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocation {
    /// The payload may be received.
    Ready,
    /// The pool is empty: wait until a writer gives a block back.
    Wait,
}

/// Result of handling a round of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Absorbed {
    /// Memory was freed.
    pub(super) freed: bool,
    /// Events became durable.
    pub(super) durable: bool,
}

/// The streams of an intake, the pool they share and the volumes they are written to.
pub(super) struct Store {
    /// Index of the intake.
    pub(super) intake: usize,
    shards: Arc<Shards>,
    pub(super) pool: Pool,
    pub(super) streams: Vec<Stream>,
    by_id: BTreeMap<u32, usize>,
    pub(super) volumes: Volumes,
    /// Which volumes take blocks; at the first intake.
    rotation: Option<Rotation>,
    pub(super) reductions: Reductions,
    counters: Arc<Counters>,
    payloads: Combiner,
    /// Largest block that is lent for several events, in bytes.
    block_bytes: usize,
    /// Memory of open blocks, with that for their reduced forms, in bytes.
    open_bytes: usize,
    tap: Option<TapInlet>,
    unflushed: Unflushed,
    /// Time of the first event, slot and number of every open block, oldest first, among blocks that are
    /// sealed already.
    opened: VecDeque<(u64, usize, u64)>,
    /// Streams whose watermark may advance, or that have something to acknowledge.
    touched: Vec<usize>,
    /// Stream of the event that has waited longest for memory: only this stream gets new blocks.
    pub(super) reserved_for: Option<usize>,
    /// Sum of the streams' shares of the pool.
    shares: usize,
    /// Reason why no volume takes blocks any more.
    pub(super) failed: Option<String>,
    /// Whether another recorder takes the streams when this one fails.
    has_successor: bool,
    /// Incidents for the report.
    pub(super) incidents: Incidents,
}

impl Store {
    pub(super) fn new(
        config: &RecorderConfig,
        shards: Arc<Shards>,
        pool: Pool,
        (volumes, rotation): (Volumes, Option<Rotation>),
        reducers: Vec<ReducerLink>,
        counters: Arc<Counters>,
    ) -> Self {
        let asked = config.reductions.clone();
        let event_bytes_max = config.event_bytes_max();
        Self {
            intake: volumes.intake(),
            shards,
            pool,
            streams: Vec::new(),
            by_id: BTreeMap::new(),
            volumes,
            rotation,
            reductions: Reductions::new(asked, reducers, event_bytes_max, Arc::clone(&counters)),
            counters,
            payloads: Combiner::new(),
            block_bytes: config.block_bytes,
            open_bytes: 0,
            tap: None,
            unflushed: Unflushed::new(config.unflushed_bytes_max() / config.intake_threads),
            opened: VecDeque::new(),
            touched: Vec::new(),
            reserved_for: None,
            shares: 0,
            failed: None,
            has_successor: config.assignment.is_some(),
            incidents: Incidents::default(),
        }
    }

    /// Counters of this intake.
    pub(super) fn figures(&self) -> &IntakeCounters {
        &self.counters.intakes[self.intake]
    }

    /// Adds a stream, stored on the volumes as `recorded`; returns its slot.
    pub(super) fn enter(&mut self, stream: Stream, recorded: &StreamInfo) -> usize {
        self.volumes.announce(recorded, stream.next_sequence);
        self.put(stream)
    }

    /// Puts a stream into the table; returns its slot.
    fn put(&mut self, mut stream: Stream) -> usize {
        let slot = self.streams.len();
        stream.stagger(slot);
        self.by_id.insert(stream.info.id, slot);
        self.streams.push(stream);
        slot
    }

    /// Checks that every stream can have a smallest block open, with its reduced form. `shares` counts one
    /// per stream, and more for reduced ones.
    ///
    /// # Errors
    /// The pool is too small; with the size that is not.
    fn check_shares(&self, streams: usize, shares: usize) -> Result<(), Cause> {
        let bytes = pool_bytes_needed(shares, self.block_bytes);
        if bytes <= self.pool.bytes() {
            return Ok(());
        }
        let (needed, has, intakes) = (bytes >> 20, self.pool.bytes() >> 20, self.shards.count());
        let part = if intakes > 1 { " for their intake thread" } else { "" };
        let what = format!(
            "cannot take {streams} streams: they need a pool of {needed} MiB{part}, this one has {has} MiB"
        );
        Err(Cause::new(what).with_hint(format!("keepup record --pool {}MiB", needed.saturating_mul(intakes))))
    }

    /// Size of a stream's next block, in bytes of messages: what it needs, as far as the memory for open
    /// blocks allows, which grows with the pages that exist.
    fn next_block_bytes(&self, slot: usize) -> usize {
        let rest = (self.pool.populated_bytes() / OPEN_DIVISOR).saturating_sub(self.open_bytes);
        let part = rest / self.shares.clamp(1, REST_DIVISOR_MAX);
        let space = part.saturating_sub(block_bytes_needed(0));
        let wanted = self.streams[slot].next_block_bytes.min(self.block_bytes);
        wanted.min(space).max(BLOCK_BYTES_MIN.min(self.block_bytes))
    }

    /// Memory that a stream's block of `bytes` takes, with that for its reduced form.
    fn charge(&self, slot: usize, bytes: usize) -> usize {
        bytes * self.streams[slot].shares.max(1)
    }

    /// Gets memory for an event in its stream's block.
    pub(super) fn begin(&mut self, slot: usize, head: &EventHead) -> Allocation {
        if !self.streams[slot].open_takes(head) {
            self.seal_as(slot, self.streams[slot].is_full_for(head.length));
            self.take_unused(slot);
            if self.reserved_for.is_some_and(|reserved| reserved != slot) {
                return Allocation::Wait;
            }
            let Some(lent) = self.lend_or_evict(slot, head.length) else {
                self.reserved_for = Some(slot);
                self.seal_for_memory();
                return Allocation::Wait;
            };
            self.reserved_for = None;
            let used = self.publish_pool();
            raise(&self.figures().pool_bytes_used_max, used);
            self.open(slot, lent);
        }
        self.streams[slot].begin(head);
        Allocation::Ready
    }

    /// Memory that is free or can be freed at once, in bytes.
    pub(super) fn bytes_available(&self) -> u64 {
        (self.pool.bytes_free() + self.unflushed.bytes()) as u64
    }

    /// Publishes how much of the pool is in use, and returns it. Memory of unflushed blocks
    /// counts as free.
    fn publish_pool(&self) -> u64 {
        let used = (self.pool.bytes() as u64).saturating_sub(self.bytes_available());
        self.figures().pool_bytes_used.store(used, Relaxed);
        used
    }

    /// Lends a block; if needed, gives up written blocks that are only kept until they are
    /// flushed.
    fn lend_or_evict(&mut self, slot: usize, length: u64) -> Option<Lent> {
        loop {
            let lent = self.lend(slot, length);
            if lent.is_some() || !self.unflushed.give_up_oldest(&mut self.pool) {
                return lent;
            }
        }
    }

    /// When nothing is in flight, only open blocks can hold the pool: sends some of them.
    fn seal_for_memory(&mut self) {
        if self.volumes.bytes_waiting() == 0 && self.reductions.is_idle() {
            let may_go = |stream: &Stream| stream.open.is_some() && stream.under_way.is_none();
            let open = (0..self.streams.len()).filter(|&slot| may_go(&self.streams[slot]));
            for slot in open.take(SEALED_MAX).collect::<Vec<_>>() {
                self.seal(slot);
                self.take_unused(slot);
            }
        }
    }

    /// Memory for the payload of the stream's current event.
    pub(super) fn payload(&mut self, slot: usize, length: u64) -> &mut [u8] {
        match &mut self.streams[slot].open {
            Some(open) => open.payload(length as usize),
            None => &mut [],
        }
    }

    /// Takes a complete event with the payload checksum `crc`.
    pub(super) fn complete(
        &mut self,
        slot: usize,
        head: &EventHead,
        crc: u32,
        now_ns: u64,
    ) -> Result<(), Gap> {
        self.streams[slot].under_way = None;
        if crc != head.crc {
            return self.skip(slot, head.sequence, LossCause::BadChecksum).map_or(Ok(()), Err);
        }
        let stream = &mut self.streams[slot];
        if let Some(gap) = stream.note_gap(head.sequence, stream.gap_cause) {
            self.note_missing(slot, gap);
        }
        if self.streams[slot].complete(head, &mut self.payloads) {
            self.opened.push_back((now_ns, slot, self.streams[slot].next_block));
        }
        if let Some(tap) = self.tap.as_mut().filter(|tap| tap.wants(slot)) {
            let stream = &self.streams[slot];
            let payload = stream.last_payload(head.length as usize);
            tap.offer(&stream.figures, (head.sequence, head.timestamp_ns), payload, now_ns);
        }
        if self.streams[slot].is_full() {
            self.seal(slot);
        }
        let figures = self.figures();
        add(&figures.received_events, 1);
        add(&figures.received_bytes, head.length);
        Ok(())
    }

    /// Enters an event that will not arrive; returns it as a gap.
    pub(super) fn skip(&mut self, slot: usize, sequence: u64, cause: LossCause) -> Option<Gap> {
        // The gap belongs behind the events that arrived before it.
        self.seal(slot);
        let stream = &mut self.streams[slot];
        let missing = stream.note_gap(sequence, stream.gap_cause);
        let skipped = stream.note_gap(sequence + 1, cause);
        missing.into_iter().chain(skipped).for_each(|gap| self.note_missing(slot, gap));
        skipped
    }

    /// Enters the events that arrived only in part, and that their clients did not send again.
    pub(super) fn skip_cut_off(&mut self) {
        // The next recorder may have received them.
        if self.has_successor {
            return;
        }
        for slot in 0..self.streams.len() {
            let stream = &mut self.streams[slot];
            let cut_off = stream.cut_off.take().filter(|&sequence| sequence >= stream.next_sequence);
            if let Some(sequence) = cut_off {
                self.skip(slot, sequence, LossCause::ConnectionLost);
            }
        }
    }

    /// Discards the event that is being received. The next one may have its sequence number.
    pub(super) fn discard(&mut self, slot: usize) {
        self.streams[slot].under_way = None;
    }

    /// Enters a source's final counts of one stream.
    pub(super) fn conclude(&mut self, slot: usize, last: &EndStream) {
        let (tail, explained) = self.streams[slot].conclude(last);
        if let Some(gap) = tail {
            self.note_missing(slot, gap);
        }
        if let Some((explained, events)) = explained {
            self.figures().explain_gap(explained.cause, events);
            if let Some(stream) = self.derived_id(slot) {
                self.volumes.note_explained(Explained { stream, ..explained });
            }
            self.volumes.note_explained(explained);
        }
        self.streams[slot].publish();
    }

    /// Enters events that a client declares as missing, and those that it skipped before them.
    pub(super) fn declare_missing(&mut self, slot: usize, gap: Gap) {
        // The gap belongs behind the events that arrived before it.
        self.seal(slot);
        let stream = &mut self.streams[slot];
        let skipped = stream.note_gap(gap.first_sequence, stream.gap_cause);
        stream.note_declared(gap);
        skipped.into_iter().for_each(|gap| self.note_missing(slot, gap));
        self.note_derived_gap(slot, gap);
        let entry = self.note_gap(gap);
        // They never arrived here, so none is an event that reached the recorder and is not stored.
        self.streams[slot].watermark.missing(0, entry);
        self.touch(slot);
        self.streams[slot].publish();
    }

    /// Enters the end of a detector's series of `events` events on one stream.
    pub(super) fn conclude_series(&mut self, slot: usize, events: u64) {
        if let Some(gap) = self.streams[slot].conclude_series(events) {
            self.note_missing(slot, gap);
        }
        self.streams[slot].publish();
    }

    /// Enters data of a source that are not recorded.
    pub(super) fn reject(&mut self, source: &str, rejection: &Rejection) {
        if let Some(row) = self.counters.reject(source, rejection) {
            self.volumes.note_rejected(&row);
        }
    }

    /// Enters a row of data that were rejected where a drain reads.
    pub(super) fn copy_rejected(&mut self, row: &Rejected) {
        if let Some(row) = self.counters.copy_rejected(row) {
            self.volumes.note_rejected(&row);
        }
    }

    /// Enters a gap into the journals; returns the number of the entry.
    fn note_gap(&mut self, gap: Gap) -> u64 {
        self.figures().add_gap(gap.cause, gap.events);
        self.volumes.note_gap(gap)
    }

    /// Whether the last event of a stream came with a gap, and too many gaps wait for the
    /// journals: only senders of gaps have to wait.
    pub(super) fn makes_gaps_too_fast(&self, slot: usize) -> bool {
        let last = self.streams[slot].watermark.last_entry();
        last == self.volumes.gaps_noted() && last > self.volumes.gaps_durable() + GAPS_WAITING_MAX
    }

    /// Enters missing events in front of the stream's next block.
    fn note_missing(&mut self, slot: usize, gap: Gap) {
        self.note_derived_gap(slot, gap);
        let entry = self.note_gap(gap);
        let damaged = if gap.cause == LossCause::BadChecksum { gap.events } else { 0 };
        self.streams[slot].watermark.missing(damaged, entry);
        self.touch(slot);
    }

    /// Enters received events that will never be durable.
    pub(super) fn lose(&mut self, slot: usize, gap: Gap) {
        let entry = self.note_gap(gap);
        self.streams[slot].block_lost(gap, entry);
        self.streams[slot].publish();
        self.touch(slot);
    }

    /// Enters all unsettled events as lost. Only valid when no writer is left.
    pub(super) fn lose_unsettled(&mut self) {
        for slot in 0..self.streams.len() {
            for open in self.streams[slot].watermark.take_unsettled() {
                let (stream, cause) = (self.streams[slot].info.id, LossCause::VolumeFailed);
                let (first_sequence, events) = (open.first_sequence, open.events);
                self.lose(slot, Gap { stream, first_sequence, events, cause });
            }
        }
    }

    /// Enters a stream in the list of those that the next answers may acknowledge.
    pub(super) fn touch(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.streams[slot].is_touched, true) {
            self.touched.push(slot);
        }
    }

    /// Advances the watermarks of the streams in the list. Puts those with something to acknowledge into
    /// `due`, with the connections that feed them; one without a connection waits until it has one.
    pub(super) fn advance_touched(&mut self, due: &mut Vec<(usize, usize)>) {
        let journalled = self.volumes.gaps_durable();
        for slot in std::mem::take(&mut self.touched) {
            self.advance(slot);
            let stream = &mut self.streams[slot];
            stream.is_touched = false;
            due.extend(stream.owner.filter(|_| stream.dirty).map(|owner| (owner, slot)));
            if stream.watermark.waits_for_journal(journalled) {
                self.touch(slot);
            }
        }
    }

    /// Advances the watermark of a stream as far as possible. In a fleet, not after all volumes have failed:
    /// what is lost with them would pass as acknowledged, and the client would not send it to the next
    /// recorder.
    pub(super) fn advance(&mut self, slot: usize) {
        if self.has_successor && self.volumes.all_failed() {
            return;
        }
        let journalled = self.volumes.gaps_durable();
        self.streams[slot].advance(journalled);
    }

    /// Releases a stream after its connection has ended; `cause` explains later gaps if the
    /// connection did not end in order.
    pub(super) fn release(&mut self, slot: usize, owner: usize, cause: Option<LossCause>) {
        let stream = &mut self.streams[slot];
        // Another connection may have taken over the stream.
        stream.owner = stream.owner.filter(|&current| current != owner);
        // The next event overwrites the bytes of an incomplete one.
        stream.under_way = None;
        stream.gap_cause = cause.unwrap_or(stream.gap_cause);
        stream.publish();
        if stream.open.as_ref().is_some_and(OpenBlock::is_empty) {
            self.take_unused(slot);
        }
        if self.reserved_for == Some(slot) {
            self.reserved_for = None;
        }
    }

    /// Waits for the client of a released stream to come back, unless another connection has the stream.
    pub(super) fn await_return(&mut self, slot: usize) {
        let stream = &mut self.streams[slot];
        if stream.owner.is_none() && !std::mem::replace(&mut stream.is_awaited, true) {
            self.shards.await_stream(&stream.info.name);
        }
    }

    /// Seals a stream's open block and sends it to a volume.
    pub(super) fn seal(&mut self, slot: usize) {
        self.seal_as(slot, self.streams[slot].is_full());
    }

    fn seal_as(&mut self, slot: usize, is_full: bool) {
        if let Some(sealed) = self.streams[slot].seal(slot, is_full) {
            self.open_bytes -= self.charge(slot, sealed.block.len());
            self.streams[slot].publish();
            self.send(sealed);
        }
    }

    /// Seals blocks whose first event is older than `age_ns`, the oldest first. Returns whether there are
    /// more of them.
    pub(super) fn seal_aged(&mut self, now_ns: u64, age_ns: u64) -> bool {
        let mut sealed = 0;
        let mut without_memory = Vec::new();
        while let Some(&oldest @ (opened_ns, slot, block)) = self.opened.front() {
            let is_open = self.streams[slot].has_open(block);
            let is_aged = now_ns.saturating_sub(opened_ns) >= age_ns;
            if is_open && (!is_aged || sealed == SEALED_MAX) {
                break;
            }
            self.opened.pop_front();
            if !is_open {
                continue;
            }
            let is_sent = match self.streams[slot].under_way {
                None => {
                    self.seal(slot);
                    true
                }
                Some(length) => self.part(slot, length),
            };
            match is_sent {
                true => sealed += 1,
                false => without_memory.push(oldest),
            }
        }
        // They are the oldest still.
        without_memory.into_iter().rev().for_each(|oldest| self.opened.push_front(oldest));
        sealed == SEALED_MAX
    }

    /// Sends the complete events of a block while another event is being received into it. They
    /// wait if there is no memory for a new block; returns whether there was.
    fn part(&mut self, slot: usize, length: u64) -> bool {
        let Some((fresh, target)) = self.lend(slot, length) else { return false };
        let opened = self.charge(slot, fresh.len());
        if let Some(sealed) = self.streams[slot].part(slot, fresh) {
            self.open_bytes += opened;
            self.open_bytes -= self.charge(slot, sealed.block.len());
            self.send(sealed);
            self.streams[slot].keep_target(target);
        }
        true
    }

    pub(super) fn place(&mut self, sealed: Sealed) {
        let Err((sealed, cause)) = self.volumes.place(sealed) else { return };
        let header = &sealed.meta.header;
        let gap = Gap {
            stream: header.stream,
            first_sequence: header.first_sequence,
            events: u64::from(header.event_count),
            cause,
        };
        self.lose(sealed.meta.slot, gap);
        self.pool.give_back(sealed.block);
        self.failed.get_or_insert_with(|| self.volumes.failures());
    }

    /// Handles the writers' reports.
    pub(super) fn absorb(&mut self) -> Absorbed {
        let mut absorbed = Absorbed::default();
        for volume in 0..self.volumes.len() {
            while let Some(report) = self.volumes.next_report(volume) {
                absorbed.durable |= matches!(report, FromWriter::Durable { .. });
                absorbed.freed |= self.absorb_one(volume, report);
            }
        }
        while let Some(volume) = self.volumes.next_abandoned() {
            self.shards.note_dead_writer();
            self.volume_failed(volume);
        }
        for stranded in self.volumes.serve_waiting() {
            self.place(stranded);
        }
        absorbed.freed |= self.absorb_reduced();
        if absorbed.freed {
            self.publish_pool();
        }
        absorbed
    }

    fn absorb_one(&mut self, volume: usize, report: FromWriter) -> bool {
        match report {
            FromWriter::Written { block, slot, stream_block, accounts_for, bytes } => {
                self.unflushed.keep(slot, stream_block, block, &mut self.pool);
                self.volumes.settle(volume, bytes as u64);
                self.streams[slot].ledger.written += accounts_for;
                return true;
            }
            FromWriter::Durable { slot, stream_block, accounts_for, stored } => {
                self.streams[slot].block_durable(stream_block, accounts_for, stored);
                self.streams[slot].publish();
                self.touch(slot);
                if let Some(block) = self.unflushed.take(slot, stream_block) {
                    self.pool.give_back(block);
                    return true;
                }
            }
            FromWriter::Returned(sealed) => {
                self.volumes.settle(volume, sealed.meta.bytes as u64);
                self.place(sealed);
                return true;
            }
            FromWriter::Lost { meta, was_written, cause } => self.rewrite(meta, was_written, cause),
            FromWriter::Failed => self.volume_failed(volume),
        }
        false
    }

    fn volume_failed(&mut self, volume: usize) {
        let failed = self.rotation.as_mut().and_then(|rotation| rotation.fail(volume));
        failed.into_iter().for_each(|what| self.incidents.push(what));
        if self.volumes.all_failed() {
            self.failed.get_or_insert_with(|| self.volumes.failures());
        }
    }

    /// Writes a block to another volume, if it is still in memory, because its volume failed
    /// before it was durable.
    fn rewrite(&mut self, meta: SealedMeta, was_written: bool, cause: LossCause) {
        let slot = meta.slot;
        if was_written {
            let written = &mut self.streams[slot].ledger.written;
            *written = *written - meta.accounts_for;
        }
        match self.unflushed.take(slot, meta.header.stream_block) {
            Some(block) => self.place(Sealed { block, meta }),
            None => {
                let header = &meta.header;
                let (stream, first_sequence) = (self.streams[slot].info.id, header.first_sequence);
                self.lose(slot, Gap { stream, first_sequence, events: header.event_count.into(), cause });
            }
        }
    }

    /// Copies events to `inlet` from now on.
    pub(super) fn tap(&mut self, inlet: TapInlet) {
        self.tap = Some(inlet);
    }

    /// Whether no more reports can come.
    pub(super) fn is_over(&self) -> bool {
        self.volumes.is_closed() && self.reductions.is_idle()
    }

    /// Whether no report waits to be handled.
    pub(super) fn is_silent(&self) -> bool {
        self.volumes.is_silent() && self.reductions.is_silent()
    }

    /// Checks for volumes that became slow or recovered, and for changed tap subscribers.
    pub(super) fn review(&mut self, now_ns: u64) {
        if let Some(tap) = &mut self.tap {
            tap.refresh(self.streams.iter().map(|stream| stream.info.id));
        }
        while let Some(incident) = self.rotation.as_mut().and_then(|rotation| rotation.review(now_ns)) {
            self.incidents.push(incident);
        }
    }

    /// Whether every event received is durable or known to be lost.
    pub(super) fn is_settled(&self) -> bool {
        self.streams.iter().all(Stream::is_settled)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
