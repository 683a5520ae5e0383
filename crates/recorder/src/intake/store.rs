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

use super::reduction::{Prepared, Reductions};
use super::stream::{OpenBlock, Stream};
use super::volumes::Volumes;
use crate::config::{BLOCK_BYTES_MIN, RecorderConfig, block_room};
use crate::counters::{Counters, add, raise};
use crate::link::{FromWriter, Sealed};
use crate::reduce::worker::ReducerLink;
use crate::report::Incidents;
use crate::tap::TapInlet;

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
    /// Shares of the pool that all streams need.
    shares: usize,
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
            shares: 0,
            failed: None,
            incidents: Incidents::default(),
        }
    }

    /// Takes the streams of a new connection; all or none. Returns their slots in the order declared.
    pub(super) fn adopt(&mut self, declared: &[StreamInfo], owner: usize) -> Result<Vec<usize>, String> {
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
                if stream.owner.is_some() {
                    return Err(format!("stream {} is fed by another connection", info.id));
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
            self.streams[slot].dirty = false;
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
            let Some(lent) = self.lend(slot, head.length) else {
                self.relieve();
                return Room::Wait;
            };
            let used = (self.pool.bytes() - self.pool.bytes_free()) as u64;
            self.counters.intake.pool_bytes_used.store(used, Relaxed);
            raise(&self.counters.intake.pool_bytes_used_max, used);
            self.open(slot, lent);
        }
        self.streams[slot].begin(head);
        Room::Ready
    }

    /// With nothing on its way to disk, only open blocks can hold the pool: send them.
    fn relieve(&mut self) {
        if self.volumes.bytes_waiting() == 0 && self.reductions.is_idle() {
            for slot in 0..self.streams.len() {
                if self.streams[slot].under_way.is_none() {
                    self.seal(slot);
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
            let missing = stream.note_gap(head.sequence, LossCause::SequenceGap);
            let damaged = stream.note_gap(head.sequence + 1, LossCause::BadChecksum);
            self.seal(slot);
            missing.into_iter().chain(damaged).for_each(|gap| self.note_gap(gap));
            return damaged.map_or(Ok(()), Err);
        }
        if let Some(gap) = stream.complete(head, &mut self.payloads, now_ns) {
            self.note_gap(gap);
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
            self.note_gap(gap);
        }
        for gap in explained {
            self.counters.intake.explain_gap(gap.cause, gap.events);
            self.volumes.note_gap(gap);
        }
        self.streams[slot].publish();
    }

    fn note_gap(&self, gap: Gap) {
        self.volumes.note_gap(gap);
        self.counters.intake.add_gap(gap.cause, gap.events);
    }

    /// Enters events that will never be durable, though they were received.
    pub(super) fn lose(&mut self, slot: usize, gap: Gap) {
        self.streams[slot].block_lost(gap);
        self.streams[slot].publish();
        self.note_gap(gap);
    }

    /// Lets go of a stream whose connection has ended; `cause` is why what does not come is missing, where
    /// the connection did not end in order.
    pub(super) fn release(&mut self, slot: usize, cause: Option<LossCause>) {
        let stream = &mut self.streams[slot];
        stream.owner = None;
        // What had arrived of an event is overwritten by the next one.
        stream.under_way = None;
        stream.gap_cause = cause.unwrap_or(stream.gap_cause);
        stream.publish();
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
        absorbed.freed |= self.absorb_reduced();
        if absorbed.freed {
            let used = (self.pool.bytes() - self.pool.bytes_free()) as u64;
            self.counters.intake.pool_bytes_used.store(used, Relaxed);
        }
        absorbed
    }

    fn absorb_one(&mut self, volume: usize, report: FromWriter) -> bool {
        match report {
            FromWriter::Written { block, slot, accounts_for, bytes } => {
                self.pool.give_back(block);
                self.volumes.settle(volume, bytes as u64);
                self.streams[slot].ledger.written += accounts_for;
                return true;
            }
            FromWriter::Durable { slot, stream_block, accounts_for, stored } => {
                self.streams[slot].block_durable(stream_block, accounts_for, stored);
                self.streams[slot].publish();
            }
            FromWriter::Returned(sealed) => {
                self.volumes.settle(volume, sealed.meta.bytes as u64);
                self.place(sealed);
                return true;
            }
            FromWriter::Lost { slot, first_sequence, events, cause } => {
                let gap = Gap { stream: self.streams[slot].info.id, first_sequence, events, cause };
                self.lose(slot, gap);
            }
            FromWriter::Failed { why, cause } => {
                self.incidents.push(format!("{}: {why}", self.volumes.label(volume)));
                self.volumes.fail(volume, why, cause);
                if self.volumes.all_failed() {
                    self.failed.get_or_insert_with(|| self.volumes.failures());
                }
            }
        }
        false
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
