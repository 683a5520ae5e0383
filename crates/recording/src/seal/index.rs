//! Index of a segment's blocks and events for sealing, built while they are written or read.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use keepup_measure::sum::Sums;
use keepup_stream::wire::StreamInfo;

use crate::layout::{BlockHeader, ChannelBytes, MESSAGE_HEADER, SECTOR, block_bytes, parse_channel};
use crate::retention::RemovedStream;

/// Most events of a segment, whatever its free space: bounds the index (16 bytes per event in
/// memory and about 40 in the file) and the sealing time.
pub const SEGMENT_EVENTS_MAX: usize = 1 << 21;

/// Most tail bytes per event: message index 16, chunk 20 with the page's checksum, sequence
/// number and time 8 each.
const EVENT_BYTES_MAX: u64 = 53;
/// Most tail bytes per block: message index record, chunk index record, entry of the lookup.
const BLOCK_BYTES_MAX: u64 = 160;
/// Most tail bytes per stream: channel record, object headers, names.
const STREAM_BYTES_MAX: u64 = 8192;
const CONSTANT_BYTES_MAX: u64 = 8192;

/// Index entry of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMark {
    /// Its time, ns since the Unix epoch.
    pub timestamp_ns: u64,
    /// Length of its payload, in bytes.
    pub payload_bytes: u64,
}

/// Index entry of a block.
#[derive(Clone, Debug)]
pub(super) struct BlockMark {
    pub(super) offset: u64,
    pub(super) stream: u32,
    pub(super) first_sequence: u64,
    pub(super) events: u32,
    pub(super) first_timestamp_ns: u64,
    pub(super) last_timestamp_ns: u64,
    pub(super) records_bytes: u64,
    pub(super) payload_bytes: u64,
    /// Shortest and longest payload of an event, bytes.
    pub(super) event_bytes: (u64, u64),
    first_event: usize,
}

/// Consecutive events of a block, which become a block of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPart {
    /// Offset of the whole block, bytes.
    pub(crate) offset: u64,
    /// Bytes of the message records before the part.
    pub(crate) skipped_bytes: u64,
    /// Sequence number of its first event.
    pub(crate) first_sequence: u64,
    /// Its events.
    pub(crate) events: u32,
    /// Earliest time, ns since the Unix epoch.
    pub(crate) first_timestamp_ns: u64,
    /// Latest time.
    pub(crate) last_timestamp_ns: u64,
    /// Bytes of its message records.
    pub(crate) records_bytes: u64,
    /// Payload bytes of those.
    pub(crate) payload_bytes: u64,
}

/// All blocks of a segment, in file order.
#[derive(Clone, Debug, Default)]
pub struct SegmentIndex {
    blocks: Vec<BlockMark>,
    events: Vec<EventMark>,
    channels: BTreeMap<u32, Arc<ChannelBytes>>,
}

impl SegmentIndex {
    /// Adds the block at `offset` with its events; `events` has as many as the header says.
    pub fn push(
        &mut self,
        offset: u64,
        header: &BlockHeader,
        channel: &Arc<ChannelBytes>,
        events: impl IntoIterator<Item = EventMark>,
    ) {
        self.channels.entry(header.stream).or_insert_with(|| Arc::clone(channel));
        let first_event = self.events.len();
        self.events.extend(events);
        let lengths = self.events[first_event..].iter().map(|event| event.payload_bytes);
        let event_bytes = lengths.fold((u64::MAX, 0), |(min, max), bytes| (bytes.min(min), bytes.max(max)));
        self.blocks.push(BlockMark {
            offset,
            stream: header.stream,
            first_sequence: header.first_sequence,
            events: header.event_count,
            first_timestamp_ns: header.first_timestamp_ns,
            last_timestamp_ns: header.last_timestamp_ns,
            records_bytes: header.chunk_records_bytes,
            payload_bytes: header.payload_bytes,
            event_bytes,
            first_event,
        });
    }

    /// Adds a stream, which may have no block.
    pub(crate) fn declare(&mut self, stream: u32, channel: ChannelBytes) {
        self.channels.entry(stream).or_insert_with(|| Arc::new(channel));
    }

    /// Adds those blocks of another index that `wants` accepts by stream and offset,
    /// consecutively from the offset `at` on. Returns the new offset and the length of each.
    pub(crate) fn take_from(
        &mut self,
        other: &SegmentIndex,
        wants: impl Fn(u32, u64) -> bool,
        at: &mut u64,
    ) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        for block in other.blocks.iter().filter(|block| wants(block.stream, block.offset)) {
            if let Some(channel) = other.channels.get(&block.stream) {
                self.channels.entry(block.stream).or_insert_with(|| Arc::clone(channel));
            }
            let bytes = block_bytes(block.records_bytes);
            taken.push((block.offset, bytes));
            self.blocks.push(BlockMark { offset: *at, first_event: self.events.len(), ..block.clone() });
            self.events.extend_from_slice(other.events_of(block));
            *at += bytes;
        }
        taken
    }

    /// Adds the events `events` of the block of another index at `offset` as a block of its own, at the
    /// offset `at`, which moves behind it. `None` if there is no such block, or it does not have all of them.
    pub(crate) fn take_part(
        &mut self,
        other: &SegmentIndex,
        offset: u64,
        events: Range<u64>,
        at: &mut u64,
    ) -> Option<BlockPart> {
        let found = other.blocks.binary_search_by_key(&offset, |block| block.offset).ok()?;
        let block = other.blocks.get(found)?;
        let marks = other.events_of(block);
        let skipped = usize::try_from(events.start.checked_sub(block.first_sequence)?).ok()?;
        let count = usize::try_from(events.end.checked_sub(events.start)?).ok()?;
        let (before, taken) = (marks.get(..skipped)?, marks.get(skipped..)?.get(..count)?);
        let record = |mark: &EventMark| mark.payload_bytes + MESSAGE_HEADER as u64;
        let part = BlockPart {
            offset,
            skipped_bytes: before.iter().map(record).saturating_sum(),
            first_sequence: events.start,
            events: taken.len() as u32,
            first_timestamp_ns: taken.iter().map(|mark| mark.timestamp_ns).min()?,
            last_timestamp_ns: taken.iter().map(|mark| mark.timestamp_ns).max()?,
            records_bytes: taken.iter().map(record).saturating_sum(),
            payload_bytes: taken.iter().map(|mark| mark.payload_bytes).saturating_sum(),
        };
        if let Some(channel) = other.channels.get(&block.stream) {
            self.channels.entry(block.stream).or_insert_with(|| Arc::clone(channel));
        }
        let lengths = || taken.iter().map(|mark| mark.payload_bytes);
        self.blocks.push(BlockMark {
            offset: *at,
            stream: block.stream,
            first_sequence: part.first_sequence,
            events: part.events,
            first_timestamp_ns: part.first_timestamp_ns,
            last_timestamp_ns: part.last_timestamp_ns,
            records_bytes: part.records_bytes,
            payload_bytes: part.payload_bytes,
            event_bytes: (lengths().min()?, lengths().max()?),
            first_event: self.events.len(),
        });
        self.events.extend_from_slice(taken);
        *at += block_bytes(part.records_bytes);
        Some(part)
    }

    /// Stream, offset and sequence numbers of each block, in file order.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (u32, u64, Range<u64>)> {
        self.blocks.iter().map(|block| {
            let end = block.first_sequence.saturating_add(block.events.into());
            (block.stream, block.offset, block.first_sequence..end)
        })
    }

    /// Counts of each stream, for the entry when the segment is removed.
    pub fn per_stream(&self) -> Vec<(u32, RemovedStream)> {
        let mut streams: BTreeMap<u32, RemovedStream> = BTreeMap::new();
        for block in &self.blocks {
            streams.entry(block.stream).or_default().add(&RemovedStream {
                events: block.events.into(),
                bytes: block.payload_bytes,
                end_sequence: block.first_sequence.saturating_add(block.events.into()),
            });
        }
        streams.into_iter().collect()
    }

    /// Ids of the streams.
    pub(crate) fn stream_ids(&self) -> impl ExactSizeIterator<Item = u32> {
        self.channels.keys().copied()
    }

    /// Payload bytes of all events.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.payload_bytes).saturating_sum()
    }

    /// Offset of a block, bytes.
    pub(crate) fn offset_of(&self, block: usize) -> Option<u64> {
        self.blocks.get(block).map(|block| block.offset)
    }

    /// Keeps only the first `blocks` blocks.
    pub fn truncate(&mut self, blocks: usize) {
        if let Some(first) = self.blocks.get(blocks) {
            self.events.truncate(first.first_event);
            self.blocks.truncate(blocks);
            let left = &self.blocks;
            self.channels.retain(|id, _| left.iter().any(|block| block.stream == *id));
        }
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Most bytes of the tail after adding one block of a new stream with `events` events.
    pub fn tail_bytes_max(&self, events: u64) -> u64 {
        (self.events.len() as u64 + events) * EVENT_BYTES_MAX
            + (self.blocks.len() as u64 + 1) * BLOCK_BYTES_MAX
            + (self.channels.len() as u64 + 1) * STREAM_BYTES_MAX
            + CONSTANT_BYTES_MAX
    }

    pub(super) fn in_order(&self) -> &[BlockMark] {
        &self.blocks
    }

    pub(super) fn channels(&self) -> &BTreeMap<u32, Arc<ChannelBytes>> {
        &self.channels
    }

    /// Channels of the declared streams that have no block.
    pub(super) fn channels_without_blocks(&self) -> impl Iterator<Item = &ChannelBytes> {
        let with_blocks: BTreeSet<u32> = self.blocks.iter().map(|block| block.stream).collect();
        self.channels.iter().filter(move |(id, _)| !with_blocks.contains(id)).map(|(_, channel)| &**channel)
    }

    /// Streams that have a block or were declared, by id.
    pub(super) fn streams(&self) -> BTreeMap<u32, StreamInfo> {
        let parsed =
            |(&id, channel): (&u32, &Arc<ChannelBytes>)| Some((id, parse_channel(channel.as_slice()).ok()?));
        self.channels.iter().filter_map(parsed).collect()
    }

    /// Blocks by stream, and within a stream by sequence number.
    pub(super) fn by_stream(&self) -> BTreeMap<u32, Vec<&BlockMark>> {
        let mut streams: BTreeMap<u32, Vec<&BlockMark>> = BTreeMap::new();
        for block in &self.blocks {
            streams.entry(block.stream).or_default().push(block);
        }
        streams.values_mut().for_each(|blocks| blocks.sort_by_key(|block| block.first_sequence));
        streams
    }

    /// Events of a block.
    pub(super) fn events_of(&self, block: &BlockMark) -> &[EventMark] {
        let end = block.first_event + block.events as usize;
        self.events.get(block.first_event..end).unwrap_or_default()
    }

    /// Events of a block with the offsets of their payloads in the file.
    pub(super) fn payloads<'a>(
        &'a self,
        block: &'a BlockMark,
    ) -> impl Iterator<Item = (u64, EventMark)> + 'a {
        let mut at = block.offset + SECTOR as u64;
        self.events_of(block).iter().map(move |event| {
            let here = at;
            at += event.payload_bytes + MESSAGE_HEADER as u64;
            (here, *event)
        })
    }
}
