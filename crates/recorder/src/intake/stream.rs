//! One stream inside the intake: its open block, its blocks in flight, and its account.
//!
//! Invariants: the events of a block have consecutive sequence numbers; the durable watermark
//! never passes an event that is not durable; an event counts as received only after it arrived
//! whole with a correct checksum.
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_error::Cause;
use keepup_measure::sum::Sums;
use keepup_recording::crc::{Combiner, Crc32};
use keepup_recording::layout::{
    BlockHeader, ChannelBytes, FLAG_GAP_BEFORE, MESSAGE_HEADER, block_bytes, put_block_tail,
    put_message_header,
};
use keepup_recording::seal::EventMark;
use keepup_stream::ledger::{Count, Explained, Gap, LossCause, StreamLedger};
use keepup_stream::wire::{EndStream, EventHead, SEQUENCE_END, StreamInfo};
use keepup_sys::pool::Block;
use keepup_sys::prefetch::prefetch;

use super::reduction::Reducing;
use super::watermark::Watermark;
use crate::counters::StreamCounters;
use crate::link::{MESSAGES_START, Sealed, SealedMeta};

/// Most sequence numbers that may be skipped at once without a declaration: three days at 10^9 events per
/// second. A larger jump is a damaged or wrong number.
const JUMP_MAX: u64 = 1 << 48;

/// Start of an event that is asked for; the processor sees by itself how it goes on.
const PREFETCHED_BYTES: usize = 512;

/// Size of a stream's first block, in bytes of messages: most streams are slow, and a fast one has large
/// blocks after a few.
const FIRST_BLOCK_BYTES: usize = 64 << 10;

/// The whole of something in parts that differ by stream.
const WHOLE: usize = 1024;

/// A block that still takes events.
#[derive(Debug)]
pub(super) struct OpenBlock {
    block: Block,
    /// Bytes that it may fill.
    limit: usize,
    /// End of the last complete event.
    used: usize,
    events: Vec<EventMark>,
    payload_bytes: u64,
    first_sequence: u64,
    first_timestamp_ns: u64,
    last_timestamp_ns: u64,
    chunk_crc: u32,
    flags: u32,
}

impl OpenBlock {
    /// An empty block that is sealed once it has `limit` bytes, or one event.
    pub(super) fn new(block: Block, limit: usize) -> Self {
        Self {
            block,
            limit,
            used: MESSAGES_START,
            events: Vec::new(),
            payload_bytes: 0,
            first_sequence: 0,
            first_timestamp_ns: u64::MAX,
            last_timestamp_ns: 0,
            chunk_crc: 0,
            flags: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn into_block(self) -> Block {
        self.block
    }

    fn next_sequence(&self) -> u64 {
        self.first_sequence + self.events.len() as u64
    }

    /// Whether an event of `payload_bytes` still fits.
    fn fits(&self, payload_bytes: u64) -> bool {
        let records = (self.used - MESSAGES_START + MESSAGE_HEADER) as u64 + payload_bytes;
        let limit = if self.is_empty() { self.block.len() } else { self.limit };
        block_bytes(records) <= limit as u64
    }

    /// Memory for the payload of the current event.
    pub(super) fn payload(&mut self, length: usize) -> &mut [u8] {
        let start = self.used + MESSAGE_HEADER;
        &mut self.block[start..start + length]
    }
}

/// A stream and its account.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) info: StreamInfo,
    channel: Arc<ChannelBytes>,
    channel_id: u16,
    pub(super) next_sequence: u64,
    pub(super) open: Option<OpenBlock>,
    /// Payload length of the event being received into the open block.
    pub(super) under_way: Option<u64>,
    /// Sequence number of the last event that arrived only in part. Its client may send it again.
    pub(super) cut_off: Option<u64>,
    /// Smallest event so far, in bytes.
    event_bytes_min: u64,
    /// A number below [`WHOLE`] that differs by stream, so that the blocks of streams of one rate are not
    /// all filled, and written, at the same time.
    spread: usize,
    /// Bytes that its next block need not exceed.
    pub(super) next_block_bytes: usize,
    /// Events in the last block; capacity reserved for the next one.
    events_per_block: usize,
    pub(super) next_block: u64,
    /// Acknowledgement position.
    pub(super) watermark: Watermark,
    /// Blocks sealed and neither durable nor lost.
    pub(super) unsettled: u64,
    gap_before: bool,
    /// Cause of the next missing events.
    pub(super) gap_cause: LossCause,
    pub(super) ledger: StreamLedger,
    /// The connection that feeds it, if any.
    pub(super) owner: Option<usize>,
    /// Its connection was lost before its end: the client may come back.
    pub(super) is_awaited: bool,
    /// Shares of the pool that it needs, with its reduced form.
    pub(super) shares: usize,
    /// It has moved to another intake; this place in the table is empty.
    pub(super) is_gone: bool,
    /// Whether there is something to acknowledge.
    pub(super) dirty: bool,
    /// Whether it is in the store's list of streams whose watermark may advance.
    pub(super) is_touched: bool,
    /// Reduction of the stream, if any.
    pub(super) reducing: Option<Reducing>,
    /// Counters for observers.
    pub(super) figures: Arc<StreamCounters>,
}

impl Stream {
    pub(super) fn new(info: StreamInfo, channel: ChannelBytes) -> Self {
        let figures = Arc::new(StreamCounters::new(info.clone()));
        Self::with_counters(info, Arc::new(channel), figures)
    }

    fn with_counters(info: StreamInfo, channel: Arc<ChannelBytes>, figures: Arc<StreamCounters>) -> Self {
        Self {
            channel_id: info.id as u16,
            figures,
            info,
            channel,
            next_sequence: 0,
            open: None,
            under_way: None,
            cut_off: None,
            event_bytes_min: u64::MAX,
            spread: 0,
            next_block_bytes: FIRST_BLOCK_BYTES,
            events_per_block: 0,
            next_block: 0,
            watermark: Watermark::new(),
            unsettled: 0,
            gap_before: false,
            gap_cause: LossCause::SequenceGap,
            ledger: StreamLedger::default(),
            owner: None,
            is_awaited: false,
            shares: 0,
            is_gone: false,
            dirty: false,
            is_touched: false,
            reducing: None,
        }
    }

    /// Takes the stream out of its place in the table, which stays empty. Only for a settled stream whose
    /// losses are in the journal.
    pub(super) fn leave(&mut self) -> Self {
        let (channel, figures) = (Arc::clone(&self.channel), Arc::clone(&self.figures));
        let empty = Self { is_gone: true, ..Self::with_counters(self.info.clone(), channel, figures) };
        let mut stream = std::mem::replace(self, Self { watermark: Watermark::unused(), ..empty });
        stream.owner = None;
        stream.is_touched = false;
        stream.watermark.forget_entries();
        stream
    }

    /// Keeps the memory for the reduced form of its open block.
    pub(super) fn keep_target(&mut self, target: Option<Block>) {
        if let Some(reducing) = &mut self.reducing {
            reducing.target = target;
        }
    }

    /// Whether the stream is derived from another one.
    pub(super) fn is_derived(&self) -> bool {
        self.ledger.reduced.is_some_and(|reduced| reduced.raw_kept)
    }

    /// Updates its counters for observers.
    pub(super) fn publish(&self) {
        let (figures, ledger) = (&self.figures, &self.ledger);
        figures.connected.store(self.owner.is_some(), Relaxed);
        figures.received_events.store(ledger.received.events, Relaxed);
        figures.received_bytes.store(ledger.received.bytes, Relaxed);
        figures.durable_events.store(ledger.durable.events, Relaxed);
        figures.durable_bytes.store(ledger.durable.bytes, Relaxed);
        figures.gap_events.store(ledger.gap_events.values().saturating_sum(), Relaxed);
        figures.next_sequence.store(self.next_sequence, Relaxed);
    }

    /// Makes it the stream with number `slot` of those that fill blocks at the same time.
    pub(super) fn stagger(&mut self, slot: usize) {
        // Bits in reverse: the first 2, 4, 8, … streams divide the whole evenly.
        self.spread = ((slot as u32).reverse_bits() >> 22) as usize;
    }

    /// Makes a block its open one.
    pub(super) fn open(&mut self, block: Block) {
        let part = if self.next_block == 0 { WHOLE - self.spread * 7 / 8 } else { WHOLE };
        let limit = block.len() / WHOLE * part;
        self.open = Some(OpenBlock::new(block, limit));
    }

    /// Whether `head` fits the open block, if any; otherwise the block must be sealed first.
    pub(super) fn open_takes(&self, head: &EventHead) -> bool {
        self.open.as_ref().is_some_and(|open| {
            let in_order = open.is_empty() || head.sequence == open.next_sequence();
            in_order && open.fits(head.length)
        })
    }

    /// Asks for those parts of the stream that every event uses.
    pub(super) fn prefetch(&self) {
        prefetch(std::ptr::from_ref(&self.open), size_of::<Option<OpenBlock>>());
        prefetch(std::ptr::from_ref(&self.next_sequence), size_of::<u64>());
        prefetch(std::ptr::from_ref(&self.ledger.received), size_of::<Count>());
    }

    /// Asks for the place of its next event.
    pub(super) fn prefetch_block(&self) {
        if let Some(open) = &self.open {
            prefetch(open.block[open.used..].as_ptr(), PREFETCHED_BYTES);
            prefetch(open.events.as_ptr_range().end, size_of::<EventMark>());
        }
    }

    /// Memory of its open block, in bytes.
    #[cfg(test)]
    pub(super) fn open_bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.block.len())
    }

    /// Whether this block is open and has events.
    pub(super) fn has_open(&self, block: u64) -> bool {
        self.next_block == block && self.open.as_ref().is_some_and(|open| !open.is_empty())
    }

    /// Writes the message header of `head` in front of the space for its payload.
    pub(super) fn begin(&mut self, head: &EventHead) {
        self.under_way = Some(head.length);
        if let Some(open) = &mut self.open {
            let at = open.used;
            put_message_header(
                &mut open.block[at..at + MESSAGE_HEADER],
                self.channel_id,
                head.sequence,
                head.timestamp_ns,
                head.length,
            );
        }
    }

    /// Takes a complete event, the next one that is due; returns whether it is the first one of its block.
    /// Combines the block's checksum with the payload's, which was computed on arrival.
    pub(super) fn complete(&mut self, head: &EventHead, payloads: &mut Combiner) -> bool {
        self.under_way = None;
        self.gap_cause = LossCause::SequenceGap;
        let Some(open) = &mut self.open else { return false };
        let is_first = open.is_empty();
        if is_first {
            open.first_sequence = head.sequence;
            open.events.reserve(self.events_per_block);
            open.flags = if self.gap_before { FLAG_GAP_BEFORE } else { 0 };
            self.gap_before = false;
        }
        let mut crc = Crc32::resume(open.chunk_crc);
        crc.update(&open.block[open.used..open.used + MESSAGE_HEADER]);
        open.chunk_crc = payloads.combine(crc.value(), head.crc, head.length);
        open.used += MESSAGE_HEADER + head.length as usize;
        open.events.push(EventMark { timestamp_ns: head.timestamp_ns, payload_bytes: head.length });
        open.payload_bytes += head.length;
        open.first_timestamp_ns = open.first_timestamp_ns.min(head.timestamp_ns);
        open.last_timestamp_ns = open.last_timestamp_ns.max(head.timestamp_ns);
        self.event_bytes_min = self.event_bytes_min.min(head.length);
        self.next_sequence = head.sequence + 1;
        self.ledger.received += Count::one(head.length);
        is_first
    }

    /// Whether an event of `payload_bytes` would not fit the open block.
    pub(super) fn is_full_for(&self, payload_bytes: u64) -> bool {
        self.open.as_ref().is_some_and(|open| !open.is_empty() && !open.fits(payload_bytes))
    }

    /// Whether not even the smallest event so far would fit the open block: sealing is cheaper
    /// now, while the block is in the cache, than at the stream's next event.
    pub(super) fn is_full(&self) -> bool {
        self.is_full_for(self.event_bytes_min)
    }

    /// Payload of the last complete event, of `length` bytes.
    pub(super) fn last_payload(&self, length: usize) -> &[u8] {
        self.open.as_ref().map_or(&[], |open| &open.block[open.used - length..open.used])
    }

    /// Enters everything from the next expected sequence number up to `sequence` as missing.
    #[inline]
    pub(super) fn note_gap(&mut self, sequence: u64, cause: LossCause) -> Option<Gap> {
        if sequence <= self.next_sequence {
            return None;
        }
        let first_sequence = self.next_sequence;
        let gap = Gap { stream: self.info.id, first_sequence, events: sequence - first_sequence, cause };
        self.ledger.add_gap(gap);
        self.pass(sequence);
        Some(gap)
    }

    /// Enters a gap that the client declares. Its numbers are due, or behind those that are.
    pub(super) fn note_declared(&mut self, gap: Gap) {
        self.ledger.add_declared(gap);
        self.pass(gap.first_sequence.saturating_add(gap.events));
        self.gap_cause = LossCause::SequenceGap;
    }

    /// Continues behind missing events.
    fn pass(&mut self, sequence: u64) {
        self.next_sequence = sequence;
        self.gap_before = true;
    }

    /// Checks that no detector needs `sequence` to follow the sequence numbers so far.
    ///
    /// # Errors
    /// More numbers are skipped than any detector skips.
    pub(super) fn check_jump(&self, sequence: u64) -> Result<(), Cause> {
        let skipped = sequence.saturating_sub(self.next_sequence);
        if skipped <= JUMP_MAX && sequence <= SEQUENCE_END {
            return Ok(());
        }
        let what = format!(
            "cannot continue stream {} at event {sequence}: event {} is due, and at most 2^48 numbers may be \
             skipped",
            self.info.id, self.next_sequence
        );
        let hint = "declare skipped numbers in a `missing` message; a stream that does not start at 0 states \
                    its start in `continued` of hello";
        Err(Cause::new(what).with_hint(hint))
    }

    /// Enters the source's final counts. Returns the gap at the end, if any, and the cause and number of
    /// skipped events, if the counts explain them.
    pub(super) fn conclude(&mut self, last: &EndStream) -> (Option<Gap>, Option<(Explained, u64)>) {
        self.figures.ended.store(true, Relaxed);
        let tail = self.note_gap(last.next_sequence, LossCause::SequenceGap);
        let ledger = &mut self.ledger;
        ledger.sent += Count { events: last.events, bytes: last.bytes };
        ledger.lost_at_source += Count { events: last.lost_events, bytes: last.lost_bytes };
        let (stream, end_sequence, cause) = (self.info.id, self.next_sequence, LossCause::Source);
        let explained = ledger.explain_skipped();
        (tail, explained.map(|events| (Explained { stream, end_sequence, cause }, events)))
    }

    /// Enters the end of a detector's series before the sequence number `next`. Returns the gap at the end,
    /// if any.
    pub(super) fn conclude_series(&mut self, next: u64) -> Option<Gap> {
        self.figures.ended.store(true, Relaxed);
        let tail = self.note_gap(next, self.gap_cause);
        self.gap_cause = LossCause::SequenceGap;
        self.ledger.conclude_by_sequence();
        tail
    }

    /// Moves the current event to the block `fresh`, so that the complete events need not wait
    /// for it.
    pub(super) fn part(&mut self, slot: usize, fresh: Block) -> Option<Sealed> {
        let (length, open) = (self.under_way? as usize, self.open.as_ref()?);
        let limit = fresh.len();
        let mut next = OpenBlock::new(fresh, limit);
        let message = open.used..open.used + MESSAGE_HEADER + length;
        let place = next.used..next.used + MESSAGE_HEADER + length;
        next.block[place].copy_from_slice(&open.block[message]);
        let sealed = self.seal(slot, false);
        self.open = Some(next);
        sealed
    }

    /// Closes the open block and prepares it for a volume; an empty block stays open. The next one need be
    /// 1.5 to 2.5 times as large as what this one held, or may hold where it `is_full`: blocks of a slow
    /// stream become small, and those of one whose rate rises grow with every block.
    pub(super) fn seal(&mut self, slot: usize, is_full: bool) -> Option<Sealed> {
        let mut open = self.open.take_if(|open| !open.is_empty())?;
        let held = if is_full { open.limit } else { open.used };
        self.next_block_bytes = held + held / 2 + held / WHOLE * self.spread;
        let records = (open.used - MESSAGES_START) as u64;
        let bytes = block_bytes(records) as usize;
        put_block_tail(&mut open.block[open.used..bytes]);
        let header = BlockHeader {
            stream: self.info.id,
            stream_block: self.next_block,
            first_sequence: open.first_sequence,
            event_count: open.events.len() as u32,
            first_timestamp_ns: open.first_timestamp_ns,
            last_timestamp_ns: open.last_timestamp_ns,
            chunk_records_bytes: records,
            payload_bytes: open.payload_bytes,
            chunk_crc: open.chunk_crc,
            flags: open.flags,
            ..BlockHeader::default()
        };
        self.next_block += 1;
        self.unsettled += 1;
        self.watermark.sealed(header.stream_block, header.first_sequence, header.event_count.into());
        self.events_per_block = open.events.len();
        let (channel, events) = (Arc::clone(&self.channel), Arc::new(open.events));
        let accounts_for = Count { events: u64::from(header.event_count), bytes: header.payload_bytes };
        // The intake is entered when the block is placed.
        let meta = SealedMeta { header, bytes, channel, intake: 0, slot, events, accounts_for };
        Some(Sealed { block: open.block, meta })
    }

    /// Enters that a block is on stable storage.
    pub(super) fn block_durable(&mut self, stream_block: u64, accounts_for: Count, stored: Count) {
        self.unsettled = self.unsettled.saturating_sub(1);
        self.ledger.durable += accounts_for;
        if let Some(reduced) = &mut self.ledger.reduced {
            reduced.durable += stored;
        }
        self.watermark.durable(stream_block);
    }

    /// Enters that a block will never be durable; `entry` is the number of its journal entry.
    pub(super) fn block_lost(&mut self, gap: Gap, entry: u64) {
        self.unsettled = self.unsettled.saturating_sub(1);
        if let Some(reduced) = &mut self.ledger.reduced {
            reduced.lost_events += gap.events;
        }
        self.ledger.add_gap(gap);
        self.watermark.lost(gap.first_sequence, entry);
    }

    /// Advances the watermark as far as possible; journal entries up to `journalled` are durable.
    pub(super) fn advance(&mut self, journalled: u64) {
        let idle = self.open.as_ref().is_none_or(OpenBlock::is_empty);
        self.dirty |= self.watermark.advance(idle.then_some(self.next_sequence), journalled);
    }

    /// Whether none of its blocks is unsettled.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled == 0 && self.open.as_ref().is_none_or(OpenBlock::is_empty)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
