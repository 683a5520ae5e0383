//! Writer: one thread per volume that takes sealed blocks, assigns their place in a segment,
//! writes several at a time and makes them durable.
//!
//! It owns the volume's segments and the order of its blocks. When anything on the volume fails,
//! it reports that at once, returns every block that is not in flight for another volume, and
//! saves what it can. Invariant: after a failed flush nothing more becomes durable on this
//! volume, whatever other flushes return, including those in flight: the kernel reports such an
//! error once and may have dropped the affected data.
mod inlets;
mod order;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_measure::histogram::Latency;
use keepup_recording::id::Id;
use keepup_recording::layout::{SECTOR, put_block_sector};
use keepup_recording::seal::{SEGMENT_EVENTS_MAX, SegmentIndex, put_end_mark};
use keepup_stream::ledger::{Count, LossCause};
use keepup_sys::engine::{BlockEngine, Completion, FileSlot};
use keepup_sys::error::is_out_of_space;
use keepup_sys::pool::Block;
use keepup_sys::waker::Waker;

pub(crate) use self::inlets::Inlet;
use self::inlets::Inlets;
use self::order::{Covered, Order};
use crate::counters::{VolumeCounters, add, raise};
use crate::keeper::{FromKeeper, Prepared, ToKeeper};
use crate::link::{Failure, FromWriter, Sealed, SealedMeta, WriterSignals};

const SYNC_TOKEN: u64 = 1 << 63;
const MARK_TOKEN: u64 = 1 << 62;
const IDLE: Duration = Duration::from_millis(100);
/// Pause after an engine error, and number of consecutive errors after which the engine is given
/// up.
const ENGINE_PAUSE_NS: u64 = 10_000_000;
const ENGINE_ERRORS_MAX: u32 = 500;

/// Limits of the data in flight: at least this many blocks and at least this many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) blocks: usize,
    pub(crate) bytes: usize,
}

/// Parts of a writer.
pub(crate) struct WriterParts {
    pub(crate) recording: Id,
    pub(crate) limits: Limits,
    pub(crate) sync_every: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Links to the intakes, in their order.
    pub(crate) inlets: Vec<Inlet>,
    /// Wakes the writer itself.
    pub(crate) waker: Waker,
    pub(crate) signals: Arc<WriterSignals>,
    pub(crate) to_keeper: Sender<ToKeeper>,
    pub(crate) from_keeper: Receiver<FromKeeper>,
    pub(crate) volume: usize,
    pub(crate) counters: Arc<crate::counters::Counters>,
    pub(crate) engine: Box<dyn BlockEngine>,
}

/// Result of a writer.
pub(crate) struct WriterOutcome {
    pub(crate) write_latency: Latency,
    pub(crate) failure: Option<String>,
}

struct Segment {
    index: u32,
    id: Id,
    slot: FileSlot,
    /// Stays open until the segment is sealed: the kernel reports a failed write only to open
    /// descriptors.
    file: Arc<OwnedFd>,
    next_offset: u64,
    end_offset: u64,
    /// Events of the blocks placed in it so far.
    events: SegmentIndex,
    previous_crc: u32,
    under_way: usize,
}

struct Syncing {
    covered: Covered,
    started_ns: u64,
}

/// An end mark that is being written. No block is written beside it: the next one takes its place.
struct Marking {
    segment: u32,
    started_ns: u64,
}

/// State of the writer thread.
pub(crate) struct Writer {
    parts: WriterParts,
    inlets: Inlets,
    current: Option<Segment>,
    next: Option<Prepared>,
    preparing: bool,
    /// Full segments with blocks in flight, and those being finished by the keeper.
    finishing: Vec<Segment>,
    with_keeper: usize,
    order: Order,
    held: Option<Sealed>,
    syncing: Option<Syncing>,
    /// Until it is being written.
    end_mark: Option<Block>,
    marking: Option<Marking>,
    last_sync_ns: u64,
    /// Blocks before this token are to be flushed without waiting for the interval.
    flush_token: u64,
    writes_under_way: usize,
    bytes_under_way: usize,
    failure: Option<(String, LossCause)>,
    flush_failed: bool,
    /// Engine errors since its last success.
    engine_errors: u32,
    write_latency: Latency,
    waiting_for_segment_since_ns: Option<u64>,
}

impl Writer {
    /// `end_mark` has at least a sector; it need not be of the engine's pool.
    pub(crate) fn new(mut parts: WriterParts, mut end_mark: Block) -> Self {
        let last_sync_ns = parts.clock.now_ns();
        put_end_mark(&mut end_mark);
        Self {
            inlets: Inlets::new(std::mem::take(&mut parts.inlets)),
            parts,
            current: None,
            next: None,
            preparing: false,
            finishing: Vec::new(),
            with_keeper: 0,
            order: Order::new(),
            held: None,
            syncing: None,
            end_mark: Some(end_mark),
            marking: None,
            last_sync_ns,
            flush_token: 0,
            writes_under_way: 0,
            bytes_under_way: 0,
            failure: None,
            flush_failed: false,
            engine_errors: 0,
            write_latency: Latency::new(),
            waiting_for_segment_since_ns: None,
        }
    }

    fn counters(&self) -> &VolumeCounters {
        &self.parts.counters.volumes[self.parts.volume]
    }

    /// Enters a panic of this thread as the failure of the volume. Dropping the writer then tells the intakes
    /// that nothing more comes from it.
    pub(crate) fn panicked(&mut self, why: String) -> WriterOutcome {
        let cause = LossCause::VolumeFailed;
        let _ = self.counters().failure.set(why.clone());
        let _ = self.parts.signals.failure.set(Failure { why: why.clone(), cause });
        WriterOutcome { write_latency: std::mem::take(&mut self.write_latency), failure: Some(why) }
    }

    /// Runs until it is asked to close and everything is finished.
    pub(crate) fn run(&mut self) -> WriterOutcome {
        let mut ended = Vec::with_capacity(64);
        self.request_segment();
        while !self.is_done() {
            self.handle_keeper_answers();
            let mut now_ns = self.parts.clock.now_ns();
            self.take_blocks(now_ns);
            self.start_sync(now_ns);
            let timeout = self.arm_wakeup(self.timeout(now_ns));
            match self.parts.engine.wait(timeout, &mut ended) {
                Ok(()) => self.engine_errors = 0,
                Err(e) => self.engine_failed(&e.to_string()),
            }
            let after_ns = self.parts.clock.now_ns();
            self.account(after_ns.saturating_sub(now_ns));
            now_ns = after_ns;
            for completion in ended.drain(..) {
                self.take_completion(completion, now_ns);
            }
            self.report_written();
            self.settle();
            self.publish_oldest();
            self.report_durable();
            self.inlets.send_reports();
        }
        self.conclude()
    }

    fn conclude(&mut self) -> WriterOutcome {
        if let Some(unused) = self.next.take() {
            let _ = self.parts.to_keeper.send(ToKeeper::Discard { index: unused.index });
        }
        let _ = self.parts.to_keeper.send(ToKeeper::Close);
        WriterOutcome {
            write_latency: std::mem::take(&mut self.write_latency),
            failure: self.failure.take().map(|(why, _)| why),
        }
    }

    fn is_done(&self) -> bool {
        self.parts.signals.close.load(Ordering::Acquire)
            && self.inlets.is_empty()
            && self.held.is_none()
            && !self.preparing
            && self.writes_under_way == 0
            && self.syncing.is_none()
            && self.current.is_none()
            && self.finishing.is_empty()
            && self.with_keeper == 0
            && self.order.is_empty()
            && self.inlets.is_silent()
    }

    fn request_segment(&mut self) {
        if !self.preparing && self.next.is_none() && self.failure.is_none() {
            self.preparing = self.parts.to_keeper.send(ToKeeper::Prepare).is_ok();
        }
    }

    fn handle_keeper_answers(&mut self) {
        loop {
            match self.parts.from_keeper.try_recv() {
                Ok(message) => self.handle_keeper(message),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    (self.preparing, self.with_keeper) = (false, 0);
                    return self.flush_fails("its keeper thread ended early".into());
                }
            }
        }
    }

    fn handle_keeper(&mut self, message: FromKeeper) {
        match message {
            FromKeeper::Prepared(prepared) => {
                self.preparing = false;
                self.next = Some(prepared);
            }
            FromKeeper::NotPrepared { why, cause } => {
                self.preparing = false;
                // The current segment may still have space: another one is requested when a block
                // needs it, not when no more blocks come.
                let is_closing = self.parts.signals.close.load(Ordering::Acquire);
                if self.held.is_some() || (self.current.is_none() && !is_closing) {
                    self.fail(why, cause);
                }
            }
            FromKeeper::Finished { index, result } => {
                self.with_keeper -= 1;
                match result {
                    Ok(()) if self.flush_failed => {}
                    Ok(()) => self.order.finished(index),
                    Err(why) => self.flush_fails(why),
                }
            }
            FromKeeper::JournalFailed { why } => self.flush_fails(why),
        }
    }

    /// Handles a failure of the engine itself, which reports nothing about the writes in flight.
    fn engine_failed(&mut self, why: &str) {
        self.fail(why.to_owned(), LossCause::VolumeFailed);
        self.engine_errors += 1;
        if self.engine_errors >= ENGINE_ERRORS_MAX {
            self.flush_failed = true;
            (self.writes_under_way, self.bytes_under_way, self.syncing) = (0, 0, None);
            self.marking = None;
            for segment in self.finishing.iter_mut().chain(&mut self.current) {
                segment.under_way = 0;
            }
        } else {
            self.parts.clock.sleep_until_ns(self.parts.clock.now_ns() + ENGINE_PAUSE_NS);
        }
    }

    fn is_resting(&self) -> bool {
        self.parts.signals.rest.load(Ordering::Acquire)
    }

    /// Publishes the start time of the oldest outstanding operation.
    fn publish_oldest(&self) {
        let flush = self.syncing.as_ref().map(|syncing| syncing.started_ns);
        let mark = self.marking.as_ref().map(|marking| marking.started_ns);
        let waits = [self.order.oldest_unwritten_ns(), flush, mark, self.waiting_for_segment_since_ns];
        let oldest_ns = waits.into_iter().flatten().min().unwrap_or(0);
        self.counters().oldest_ns.store(oldest_ns, Ordering::Relaxed);
    }

    fn give_back_queue(&mut self) {
        self.waiting_for_segment_since_ns = None;
        while let Some(sealed) = self.next_block() {
            self.give_back(sealed);
        }
    }

    fn give_back(&mut self, sealed: Sealed) {
        self.inlets.report(sealed.meta.intake, FromWriter::Returned(sealed));
    }

    /// The block that was held back, or the next one of an intake.
    fn next_block(&mut self) -> Option<Sealed> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let (sealed, is_awaited) = self.inlets.take()?;
        if is_awaited {
            self.flush_token = self.order.next_token() + 1;
        }
        Some(sealed)
    }

    fn take_blocks(&mut self, now_ns: u64) {
        if self.is_resting() || self.failure.is_some() {
            return self.give_back_queue();
        }
        while self.failure.is_none() && self.takes_blocks() {
            let Some(sealed) = self.next_block() else { return };
            if !self.has_room(&sealed) && !self.rotate(now_ns) {
                self.held = Some(sealed);
                self.waiting_for_segment_since_ns.get_or_insert(now_ns);
                return;
            }
            self.submit(sealed, now_ns);
        }
    }

    fn has_room(&self, sealed: &Sealed) -> bool {
        let events = sealed.meta.events.len();
        self.current.as_ref().is_some_and(|segment| {
            let with_tail = sealed.meta.bytes as u64 + segment.events.tail_bytes_max(events as u64);
            let is_first = segment.events.blocks() == 0;
            let has_bytes = segment.next_offset + with_tail <= segment.end_offset;
            (is_first || segment.events.events() + events <= SEGMENT_EVENTS_MAX) && has_bytes
        })
    }

    /// Switches to the prepared segment, if there is one.
    fn rotate(&mut self, now_ns: u64) -> bool {
        let Some(prepared) = self.next.take() else {
            self.request_segment();
            return false;
        };
        let slot = match self.parts.engine.add_file(Arc::clone(&prepared.file)) {
            Ok(slot) => slot,
            Err(e) => {
                self.fail(e.to_string(), LossCause::VolumeFailed);
                return false;
            }
        };
        if let Some(since_ns) = self.waiting_for_segment_since_ns.take() {
            let waited_ns = now_ns.saturating_sub(since_ns);
            add(&self.counters().segment_wait_ns, waited_ns);
            raise(&self.counters().segment_wait_ns_max, waited_ns);
        }
        let before = self.current.as_ref().map(|segment| (segment.next_offset, segment.end_offset));
        let (index, bytes) = (prepared.index, prepared.bytes);
        let _ = self.parts.to_keeper.send(ToKeeper::Activate { index, bytes, before });
        add(&self.counters().segments, 1);
        let full = self.current.replace(Segment {
            index: prepared.index,
            id: prepared.id,
            slot,
            file: prepared.file,
            next_offset: SECTOR as u64,
            end_offset: prepared.bytes,
            events: SegmentIndex::default(),
            previous_crc: 0,
            under_way: 0,
        });
        self.finishing.extend(full);
        self.request_segment();
        true
    }

    fn submit(&mut self, mut sealed: Sealed, now_ns: u64) {
        let Some(segment) = &mut self.current else { return };
        let header = &mut sealed.meta.header;
        header.recording = self.parts.recording;
        header.segment = segment.id;
        header.segment_index = segment.index;
        header.segment_block = segment.events.blocks() as u64;
        header.previous_header_crc = segment.previous_crc;
        segment.previous_crc = put_block_sector(&mut sealed.block[..SECTOR], header, &sealed.meta.channel);
        let (offset, bytes) = (segment.next_offset, sealed.meta.bytes);
        let meta = &sealed.meta;
        segment.events.push(offset, &meta.header, &meta.channel, meta.events.iter().copied());
        segment.next_offset += bytes as u64;
        segment.under_way += 1;
        let token = self.order.begin(sealed.meta, segment.index, segment.next_offset, now_ns);
        let slot = segment.slot;
        self.writes_under_way += 1;
        self.bytes_under_way += bytes;
        // Before the call: a synchronous engine returns only after the write.
        self.publish_oldest();
        self.parts.engine.write(slot, offset, sealed.block, bytes, token);
    }

    /// Whether the limit of data in flight is reached: in blocks, or in bytes for small blocks.
    fn is_at_depth(&self) -> bool {
        let Limits { blocks, bytes } = self.parts.limits;
        self.writes_under_way >= blocks && self.bytes_under_way >= bytes
    }

    fn takes_blocks(&self) -> bool {
        self.marking.is_none() && !self.is_at_depth()
    }

    fn start_sync(&mut self, now_ns: u64) {
        if self.parts.signals.flush.swap(false, Ordering::AcqRel) {
            self.inlets.request_flush();
            self.flush_token = self.order.next_token() + u64::from(self.held.is_some());
        }
        let flush = self.order.covered_token() < self.flush_token;
        let due = now_ns.saturating_sub(self.last_sync_ns) >= self.parts.sync_every.as_nanos() as u64;
        if self.syncing.is_some() || self.failure.is_some() || !(due || flush) {
            return;
        }
        let Some(segment) = &self.current else { return };
        let Some(covered) = self.order.coverable(segment.index) else { return };
        self.last_sync_ns = now_ns;
        let slot = segment.slot;
        self.syncing = Some(Syncing { covered, started_ns: now_ns });
        self.publish_oldest();
        self.parts.engine.sync(slot, SYNC_TOKEN);
    }

    fn timeout(&self, now_ns: u64) -> Duration {
        if !self.inlets.is_silent() {
            return Duration::from_millis(1);
        }
        let unsynced = self.current.as_ref().is_some_and(|s| self.order.coverable(s.index).is_some());
        if unsynced && self.syncing.is_none() && self.failure.is_none() {
            let due_ns = self.last_sync_ns + self.parts.sync_every.as_nanos() as u64;
            return IDLE.min(Duration::from_nanos(due_ns.saturating_sub(now_ns)));
        }
        IDLE
    }

    /// Requests a wake-up for the next block if one could be taken; returns a zero timeout if one
    /// is waiting.
    fn arm_wakeup(&self, timeout: Duration) -> Duration {
        let able = self.takes_blocks() && self.held.is_none();
        let wanted = self.failure.is_some() || able || self.is_resting();
        self.parts.waker.want_nudge(wanted);
        if wanted && !self.inlets.is_empty() { Duration::ZERO } else { timeout }
    }

    fn account(&self, elapsed_ns: u64) {
        if self.writes_under_way > 0 {
            add(&self.counters().busy_ns, elapsed_ns);
        }
        if self.is_at_depth() {
            add(&self.counters().full_ns, elapsed_ns);
        }
    }

    fn take_completion(&mut self, completion: Completion, now_ns: u64) {
        let Some(block) = completion.block else { return self.synced(completion.result, now_ns) };
        self.writes_under_way -= 1;
        let confirmed = completion.result.is_ok();
        if completion.token == MARK_TOKEN {
            self.end_mark = Some(block);
            if let Some(marking) = self.marking.take() {
                self.left_segment(marking.segment);
                // No block is written meanwhile. It says nothing of the latency of blocks, which are larger.
                raise(&self.counters().write_ns_max, now_ns.saturating_sub(marking.started_ns));
            }
        } else if let Some(landing) = self.order.landed(completion.token, block, confirmed) {
            self.bytes_under_way -= landing.bytes;
            self.left_segment(landing.segment);
            let took_ns = now_ns.saturating_sub(landing.started_ns);
            self.write_latency.record_ns(took_ns);
            raise(&self.counters().write_ns_max, took_ns);
        }
        if let Err(e) = completion.result {
            let full = is_out_of_space(&e);
            let cause = if full { LossCause::SpaceExhausted } else { LossCause::VolumeFailed };
            self.fail(format!("writing failed: {e}"), cause);
        }
    }

    fn report_written(&mut self) {
        while let Some(sealed) = self.order.next_written() {
            let accounts_for = sealed.meta.accounts_for;
            let counters = &self.parts.counters.volumes[self.parts.volume];
            add(&counters.written_bytes, sealed.meta.bytes as u64);
            add(&counters.written_events, accounts_for.events);
            add(&counters.written_payload_bytes, accounts_for.bytes);
            let (slot, bytes) = (sealed.meta.slot, sealed.meta.bytes);
            let stream_block = sealed.meta.header.stream_block;
            let block = sealed.block;
            let written = FromWriter::Written { block, slot, stream_block, accounts_for, bytes };
            self.inlets.report(sealed.meta.intake, written);
        }
    }

    fn left_segment(&mut self, index: u32) {
        for segment in self.finishing.iter_mut().chain(&mut self.current) {
            if segment.index == index {
                segment.under_way -= 1;
            }
        }
    }

    fn synced(&mut self, result: std::io::Result<()>, now_ns: u64) {
        let Some(syncing) = self.syncing.take() else { return };
        raise(&self.counters().sync_ns_max, now_ns.saturating_sub(syncing.started_ns));
        add(&self.counters().syncs, 1);
        match result {
            Ok(()) if self.flush_failed => {}
            Ok(()) => {
                let Covered { segment, end_offset, blocks, .. } = syncing.covered;
                self.order.covered(syncing.covered);
                let _ = self.parts.to_keeper.send(ToKeeper::Watermark { segment, end_offset, blocks });
                self.mark_end(end_offset, now_ns);
            }
            Err(e) => self.flush_fails(format!("flushing to stable storage failed: {e}")),
        }
    }

    /// Marks the end of the current segment if all of it, `end_offset` bytes, is flushed and nothing follows
    /// at the moment. At most once per flush, so that it costs a fast recording nothing.
    fn mark_end(&mut self, end_offset: u64, now_ns: u64) {
        let is_idle = self.inlets.is_empty() && self.held.is_none() && self.failure.is_none();
        if !is_idle || self.parts.signals.close.load(Ordering::Acquire) {
            return;
        }
        let Some(segment) = &mut self.current else { return };
        let has_room = end_offset + SECTOR as u64 <= segment.end_offset;
        if segment.under_way > 0 || segment.next_offset != end_offset || !has_room {
            return;
        }
        let Some(block) = self.end_mark.take() else { return };
        segment.under_way += 1;
        self.writes_under_way += 1;
        self.marking = Some(Marking { segment: segment.index, started_ns: now_ns });
        self.parts.engine.write(segment.slot, end_offset, block, SECTOR, MARK_TOKEN);
    }

    fn flush_fails(&mut self, why: String) {
        self.flush_failed = true;
        self.fail(why, LossCause::VolumeFailed);
    }

    /// Hands complete segments to the keeper; ends the volume's work after a failure.
    fn settle(&mut self) {
        let closing =
            self.parts.signals.close.load(Ordering::Acquire) && self.inlets.is_empty() && self.held.is_none();
        let failing = self.failure.is_some() && self.writes_under_way == 0;
        if (closing || failing) && self.syncing.is_none() {
            self.finishing.extend(self.current.take());
        }
        // In order: the contiguous part of a segment is known only when all blocks before it have
        // completed.
        while let Some(first) = self.finishing.first() {
            let syncing = self.syncing.as_ref().is_some_and(|s| s.covered.segment == first.index);
            if first.under_way > 0 || syncing {
                break;
            }
            let done = self.finishing.remove(0);
            self.parts.engine.remove_file(done.slot);
            if self.flush_failed {
                continue;
            }
            let blocks = done.events.blocks() as u64;
            let (data_bytes, blocks) = self.order.written_end(done.index, done.next_offset, blocks);
            let mut events = done.events;
            events.truncate(blocks as usize);
            let message = ToKeeper::Finish { index: done.index, data_bytes, events, file: done.file };
            if self.parts.to_keeper.send(message).is_ok() {
                self.with_keeper += 1;
            }
        }
        if failing {
            for (meta, block) in self.order.take_unwritten() {
                match block {
                    Some(block) => self.give_back(Sealed { block, meta }),
                    None => self.push_lost(meta, false),
                }
            }
        }
        if failing && self.current.is_none() && self.finishing.is_empty() && self.with_keeper == 0 {
            self.write_off();
        }
    }

    /// Reports the remaining blocks of a failed volume as not durable.
    fn write_off(&mut self) {
        self.report_durable();
        for meta in self.order.take_undurable() {
            self.push_lost(meta, true);
        }
    }

    fn push_lost(&mut self, meta: SealedMeta, was_written: bool) {
        let cause = self.failure.as_ref().map_or(LossCause::VolumeFailed, |(_, cause)| *cause);
        self.inlets.report(meta.intake, FromWriter::Lost { meta, was_written, cause });
    }

    fn push_durable(&mut self, meta: &SealedMeta) {
        let (header, accounts_for) = (&meta.header, meta.accounts_for);
        add(&self.counters().durable_events, accounts_for.events);
        add(&self.counters().durable_payload_bytes, accounts_for.bytes);
        add(&self.counters().stored_payload_bytes, header.payload_bytes);
        let (slot, stream_block) = (meta.slot, header.stream_block);
        let stored = Count { events: u64::from(header.event_count), bytes: header.payload_bytes };
        self.inlets.report(meta.intake, FromWriter::Durable { slot, stream_block, accounts_for, stored });
    }

    fn report_durable(&mut self) {
        while let Some(meta) = self.order.next_durable() {
            self.push_durable(&meta);
        }
    }

    /// Takes no more blocks, reports the failure, and returns the blocks that are not in flight.
    fn fail(&mut self, why: String, cause: LossCause) {
        if self.failure.is_none() {
            self.failure = Some((why.clone(), cause));
            // First, so that no intake places a block here that comes back.
            let _ = self.counters().failure.set(why.clone());
            let _ = self.parts.signals.failure.set(Failure { why, cause });
            self.inlets.report(0, FromWriter::Failed);
            self.give_back_queue();
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
