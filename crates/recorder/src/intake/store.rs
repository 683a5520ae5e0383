//! Streams, blocks and volumes of the intake: everything but the sockets.
//!
//! Owned by the intake thread alone. Events come in (begin, complete, abort), blocks go out to writers, and
//! what writers report is absorbed; after warm-up nothing here allocates or locks.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_recording::crc::Combiner;
use keepup_stream::ledger::{Gap, LossCause};
use keepup_stream::wire::{EndStream, EventHead, StreamInfo};
use keepup_sys::pool::Pool;

use super::reduction::{Lent, Prepared, Reductions};
use super::stream::{OpenBlock, Stream};
use super::unflushed::Unflushed;
use super::volumes::Volumes;
use crate::config::{BLOCK_BYTES_MIN, RecorderConfig, block_room};
use crate::counters::{Counters, add, raise};
use crate::link::{FromWriter, Sealed, SealedMeta};
use crate::reduce::worker::ReducerLink;
use crate::report::Incidents;
use crate::tap::TapInlet;

/// Gaps that may wait for the journals before those who make them have to wait.
const GAPS_WAITING_MAX: u64 = 10_000;

/// Whether an event's place is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Its payload may be received.
    Ready,
    /// The pool is empty: wait until a writer gives a block back.
    Wait,
}

/// What a round of reports brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Absorbed {
    /// Memory came free.
    pub(super) freed: bool,
    /// Something became durable.
    pub(super) durable: bool,
}

/// All streams with the pool they share and the volumes they go to.
pub(super) struct Store {
    pub(super) pool: Pool,
    pub(super) streams: Vec<Stream>,
    by_id: BTreeMap<u32, usize>,
    pub(super) volumes: Volumes,
    pub(super) reductions: Reductions,
    pub(super) counters: Arc<Counters>,
    payloads: Combiner,
    pub(super) block_bytes: usize,
    block_bytes_wanted: usize,
    tap: Option<TapInlet>,
    unflushed: Unflushed,
    /// Stream of the event that has waited longest for memory: new blocks are lent for it alone.
    pub(super) reserved_for: Option<usize>,
    /// Shares of the pool that all streams need.
    shares: usize,
    /// Writers whose threads ended though nobody asked them to.
    pub(super) dead_writers: usize,
    /// Set when no volume takes blocks any more.
    pub(super) failed: Option<String>,
    /// What went wrong on the way, for the report.
    pub(super) incidents: Incidents,
}

impl Store {
    pub(super) fn new(
        config: &RecorderConfig,
        pool: Pool,
        volumes: Volumes,
        reducers: Vec<ReducerLink>,
        counters: Arc<Counters>,
    ) -> Self {
        let asked = config.reductions.clone();
        let event_bytes_max = config.event_bytes_max();
        Self {
            pool,
            streams: Vec::new(),
            by_id: BTreeMap::new(),
            volumes,
            reductions: Reductions::new(asked, reducers, event_bytes_max, Arc::clone(&counters)),
            counters,
            payloads: Combiner::new(),
            block_bytes: config.block_bytes,
            block_bytes_wanted: config.block_bytes,
            tap: None,
            unflushed: Unflushed::new(config.unflushed_bytes_max()),
            reserved_for: None,
            shares: 0,
            dead_writers: 0,
            failed: None,
            incidents: Incidents::default(),
        }
    }

    /// The connections that feed streams with these ids.
    pub(super) fn owners<'a>(
        &'a self,
        declared: &'a [StreamInfo],
    ) -> impl Iterator<Item = (u32, usize)> + 'a {
        declared.iter().filter_map(|info| {
            let owner = self.by_id.get(&info.id).and_then(|&slot| self.streams[slot].owner);
            Some((info.id, owner?))
        })
    }

    /// Takes the streams of a new connection; all or none. Streams of the connections `replaced` are free.
    /// Returns their slots in the order declared.
    pub(super) fn adopt(
        &mut self,
        declared: &[StreamInfo],
        owner: usize,
        replaced: &[usize],
    ) -> Result<Vec<usize>, String> {
        let known = |info: &StreamInfo| self.by_id.get(&info.id).map(|&slot| &self.streams[slot]);
        for info in declared {
            if let Some(stream) = known(info) {
                if stream.is_derived() {
                    let (id, name) = (info.id, &stream.info.name);
                    return Err(format!(
                        "stream {id} is taken by \"{name}\", which this recording makes itself\n\
                         hint: another stream id"
                    ));
                }
                if stream.owner.is_some_and(|owner| !replaced.contains(&owner)) {
                    return Err(format!(
                        "stream {} is fed by another connection\n\
                         hint: end that client; one that is silent is replaced after --peer-timeout",
                        info.id
                    ));
                }
                if stream.info != *info {
                    let id = info.id;
                    return Err(format!("stream {id} was declared before, with another name or shape"));
                }
            }
        }
        let new: Vec<&StreamInfo> = declared.iter().filter(|info| known(info).is_none()).collect();
        let made = self.prepare(&new)?;
        let shares = self.shares + made.iter().map(Prepared::shares).sum::<usize>();
        let streams = self.streams.len() + made.len();
        (self.block_bytes, self.shares) = (self.block_bytes_for(streams, shares)?, shares);
        for prepared in made {
            self.take_in(prepared)?;
        }
        let slots: Vec<usize> =
            declared.iter().filter_map(|info| self.by_id.get(&info.id).copied()).collect();
        for &slot in &slots {
            self.streams[slot].owner = Some(owner);
            // What became durable while nobody was connected is acknowledged now.
            self.streams[slot].dirty = true;
            self.streams[slot].figures.ended.store(false, Relaxed);
            self.streams[slot].publish();
        }
        Ok(slots)
    }

    /// Enters a stream, which lies on the volumes as `recorded`; returns its slot.
    pub(super) fn enter(&mut self, stream: Stream, recorded: &StreamInfo) -> usize {
        let slot = self.streams.len();
        self.volumes.announce(recorded);
        self.by_id.insert(recorded.id, slot);
        self.streams.push(stream);
        slot
    }

    /// Whether there is a stream with this id.
    pub(super) fn knows(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Block size that lets every stream have one block open and one on its way in half the pool, with what
    /// becomes of them: `shares` of it, one for each stream and more for those that are reduced.
    fn block_bytes_for(&self, streams: usize, shares: usize) -> Result<usize, String> {
        let share = self.pool.bytes() / (4 * shares.max(1));
        let smallest = BLOCK_BYTES_MIN.min(self.block_bytes_wanted);
        if share < block_room(smallest) {
            return Err(format!(
                "{streams} streams need a pool of {} MiB, this one has {} MiB\n\
                 hint: keepup record --pool {}MiB",
                (4 * shares * block_room(smallest)) >> 20,
                self.pool.bytes() >> 20,
                ((4 * shares * block_room(smallest)) >> 20) + 1
            ));
        }
        let room = share.saturating_sub(block_room(0));
        Ok(self.block_bytes_wanted.min(room).max(smallest))
    }

    /// Makes room for an event in its stream's block.
    pub(super) fn begin(&mut self, slot: usize, head: &EventHead) -> Room {
        if !self.streams[slot].open_takes(head) {
            self.seal(slot);
            self.take_unused(slot);
            if self.reserved_for.is_some_and(|reserved| reserved != slot) {
                return Room::Wait;
            }
            let Some(lent) = self.lend_at_any_cost(slot, head.length) else {
                self.reserved_for = Some(slot);
                self.relieve();
                return Room::Wait;
            };
            self.reserved_for = None;
            raise(&self.counters.intake.pool_bytes_used_max, self.publish_pool());
            self.open(slot, lent);
        }
        self.streams[slot].begin(head);
        Room::Ready
    }

    /// Memory that is free, or would be at once, in bytes.
    pub(super) fn bytes_available(&self) -> u64 {
        (self.pool.bytes_free() + self.unflushed.bytes()) as u64
    }

    /// Publishes how much of the pool is in use, and returns it. Memory that is given up when needed is free.
    fn publish_pool(&self) -> u64 {
        let used = (self.pool.bytes() as u64).saturating_sub(self.bytes_available());
        self.counters.intake.pool_bytes_used.store(used, Relaxed);
        used
    }

    /// Lends a block; gives up blocks that are only kept until they are flushed when it has to.
    fn lend_at_any_cost(&mut self, slot: usize, length: u64) -> Option<Lent> {
        loop {
            let lent = self.lend(slot, length);
            if lent.is_some() || !self.unflushed.give_up_oldest(&mut self.pool) {
                return lent;
            }
        }
    }

    /// With nothing on its way to disk, only open blocks can hold the pool: send them.
    fn relieve(&mut self) {
        if self.volumes.bytes_waiting() == 0 && self.reductions.is_idle() {
            for slot in 0..self.streams.len() {
                if self.streams[slot].under_way.is_none() {
                    self.seal(slot);
                    self.take_unused(slot);
                }
            }
        }
    }

    /// Memory for the payload of the event begun last on this stream.
    pub(super) fn payload(&mut self, slot: usize, length: u64) -> &mut [u8] {
        match &mut self.streams[slot].open {
            Some(open) => open.payload(length as usize),
            None => &mut [],
        }
    }

    /// Takes an event whose payload arrived whole and has the checksum `crc`.
    pub(super) fn complete(
        &mut self,
        slot: usize,
        head: &EventHead,
        crc: u32,
        now_ns: u64,
    ) -> Result<(), Gap> {
        let stream = &mut self.streams[slot];
        stream.under_way = None;
        if crc != head.crc {
            // The gap belongs behind what arrived before it.
            self.seal(slot);
            let stream = &mut self.streams[slot];
            let missing = stream.note_gap(head.sequence, stream.gap_cause);
            let damaged = stream.note_gap(head.sequence + 1, LossCause::BadChecksum);
            missing.into_iter().chain(damaged).for_each(|gap| self.note_missing(slot, gap));
            return damaged.map_or(Ok(()), Err);
        }
        if let Some(gap) = stream.complete(head, &mut self.payloads, now_ns) {
            self.note_missing(slot, gap);
        }
        if let Some(tap) = self.tap.as_mut().filter(|tap| tap.wants(slot)) {
            let stream = &self.streams[slot];
            let payload = stream.last_payload(head.length as usize);
            tap.offer(&stream.figures, (head.sequence, head.timestamp_ns), payload, now_ns);
        }
        if self.streams[slot].is_full() {
            self.seal(slot);
        }
        add(&self.counters.intake.received_events, 1);
        add(&self.counters.intake.received_bytes, head.length);
        Ok(())
    }

    /// Enters what a source says at the end of its run about one stream.
    pub(super) fn conclude(&mut self, slot: usize, last: &EndStream) {
        let (tail, explained) = self.streams[slot].conclude(last);
        if let Some(gap) = tail {
            self.note_missing(slot, gap);
        }
        for gap in explained {
            self.counters.intake.explain_gap(gap.cause, gap.events);
            self.volumes.note_gap(gap);
        }
        self.streams[slot].publish();
    }

    /// Enters a gap into the journals; returns the number of that entry.
    fn note_gap(&mut self, gap: Gap) -> u64 {
        self.counters.intake.add_gap(gap.cause, gap.events);
        self.volumes.note_gap(gap)
    }

    /// Whether the last event of a stream came with a gap, and more gaps than can be kept in mind wait for
    /// the journals: its sender must wait too, so that nobody else does.
    pub(super) fn makes_gaps_too_fast(&self, slot: usize) -> bool {
        let last = self.streams[slot].watermark.last_entry();
        last == self.volumes.gaps_noted() && last > self.volumes.gaps_durable() + GAPS_WAITING_MAX
    }

    /// Enters events that are missing in front of the stream's next block.
    fn note_missing(&mut self, slot: usize, gap: Gap) {
        let entry = self.note_gap(gap);
        let damaged = if gap.cause == LossCause::BadChecksum { gap.events } else { 0 };
        self.streams[slot].watermark.missing(damaged, entry);
    }

    /// Enters events that will never be durable, though they were received.
    pub(super) fn lose(&mut self, slot: usize, gap: Gap) {
        let entry = self.note_gap(gap);
        self.streams[slot].block_lost(gap, entry);
        self.streams[slot].publish();
    }

    /// Enters everything as lost whose fate is open. Only when no writer is left.
    pub(super) fn lose_unsettled(&mut self) {
        for slot in 0..self.streams.len() {
            for open in self.streams[slot].watermark.take_unsettled() {
                let (stream, cause) = (self.streams[slot].info.id, LossCause::VolumeFailed);
                let (first_sequence, events) = (open.first_sequence, open.events);
                self.lose(slot, Gap { stream, first_sequence, events, cause });
            }
        }
    }

    /// Moves the watermark of a stream as far as that is possible.
    pub(super) fn advance(&mut self, slot: usize) {
        let journalled = self.volumes.gaps_durable();
        self.streams[slot].advance(journalled);
    }

    /// Lets go of a stream whose connection has ended; `cause` is why what does not come is missing, where
    /// the connection did not end in order.
    pub(super) fn release(&mut self, slot: usize, owner: usize, cause: Option<LossCause>) {
        let stream = &mut self.streams[slot];
        // Another connection may have taken it over.
        stream.owner = stream.owner.filter(|&current| current != owner);
        // What had arrived of an event is overwritten by the next one.
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

    /// Sends a stream's open block to a volume.
    pub(super) fn seal(&mut self, slot: usize) {
        if let Some(sealed) = self.streams[slot].seal(slot) {
            self.streams[slot].publish();
            self.send(sealed);
        }
    }

    /// Sends every block whose first event waited longer than `age_ns`; gives unused ones back.
    pub(super) fn seal_aged(&mut self, now_ns: u64, age_ns: u64) {
        for slot in 0..self.streams.len() {
            let aged = |open: &OpenBlock| !open.is_empty() && now_ns.saturating_sub(open.opened_ns) >= age_ns;
            let stream = &self.streams[slot];
            if !stream.open.as_ref().is_some_and(aged) {
                continue;
            }
            match stream.under_way {
                None => self.seal(slot),
                Some(length) => self.part(slot, length),
            }
        }
    }

    /// Sends the complete events of a block into which another is just being received. Without room they
    /// wait.
    fn part(&mut self, slot: usize, length: u64) {
        let Some((fresh, target)) = self.lend(slot, length) else { return };
        if let Some(sealed) = self.streams[slot].part(slot, fresh) {
            self.send(sealed);
            self.streams[slot].keep_target(target);
        }
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

    /// Takes what the writers report.
    pub(super) fn absorb(&mut self) -> Absorbed {
        let mut absorbed = Absorbed::default();
        for volume in 0..self.volumes.len() {
            while let Some(report) = self.volumes.next_report(volume) {
                absorbed.durable |= matches!(report, FromWriter::Durable { .. });
                absorbed.freed |= self.absorb_one(volume, report);
            }
        }
        while let Some(volume) = self.volumes.next_abandoned() {
            self.dead_writers += 1;
            self.volume_failed(volume, "its writer thread ended early".into(), LossCause::VolumeFailed);
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
                self.advance(slot);
                self.streams[slot].publish();
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
            FromWriter::Failed { why, cause } => self.volume_failed(volume, why, cause),
        }
        false
    }

    fn volume_failed(&mut self, volume: usize, why: String, cause: LossCause) {
        self.incidents.push(format!("{}: {why}", self.volumes.label(volume)));
        self.volumes.fail(volume, why, cause);
        if self.volumes.all_failed() {
            self.failed.get_or_insert_with(|| self.volumes.failures());
        }
    }

    /// A volume failed before a block was durable there: writes it to another one when it is still in memory.
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

    /// Copies events from now on for those who ask for them.
    pub(super) fn tap(&mut self, inlet: TapInlet) {
        self.tap = Some(inlet);
    }

    /// Whether nothing will come back any more.
    pub(super) fn is_over(&self) -> bool {
        self.volumes.is_closed() && self.reductions.is_idle()
    }

    /// Whether nothing has come back that was not looked at.
    pub(super) fn is_silent(&self) -> bool {
        self.volumes.is_silent() && self.reductions.is_silent()
    }

    /// Looks after volumes that have become slow, or quick again, and at who wants copies of events.
    pub(super) fn review(&mut self, now_ns: u64) {
        if let Some(tap) = &mut self.tap {
            tap.look(self.streams.iter().map(|stream| stream.info.id));
        }
        while let Some(incident) = self.volumes.review(now_ns) {
            self.incidents.push(incident);
        }
    }

    /// Whether every event received is durable or known to be lost.
    pub(super) fn is_settled(&self) -> bool {
        self.streams.iter().all(Stream::is_settled)
    }
}
