//! Random access to the events of a stream, by sequence number or by time, over all volumes, also
//! while recording (up to the durable end).
//!
//! Memory is some dozen bytes per segment and open stream, and otherwise independent of the recording's
//! length: blocks are found through the segments' indexes. In an unsealed segment, the block headers are
//! walked instead.
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::ops::ControlFlow;

use keepup_measure::sum::Sums;
use keepup_stream::wire::StreamInfo;

use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::layout::{SECTOR, block_bytes, parse_block_sector};
use crate::merged::MergedRecording;
use crate::reader::{Event, Recording, SegmentReader};
use crate::seal::{IndexedBlock, SegmentLookup, StreamSummary};
use crate::volume::{Segment, Volume};

/// Longest block that is read: the largest event with its frame.
const BLOCK_BYTES_MAX: u64 = 2 << 30;

/// Segments with their block list cached: one or two for each of a few volumes.
const SEGMENTS_KEPT: usize = 32;

/// Streams whose segments are opened together.
const STREAMS_TOGETHER: usize = 64;

/// Start position of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// First event with this sequence number or a later one.
    Sequence(u64),
    /// First event, in sequence order, with this time or a later one; ns since the Unix epoch.
    Time(u64),
}

/// Reader of the events of one stream.
#[derive(Debug)]
pub struct StreamReader<'a> {
    stream: &'a StreamInfo,
    /// In the order of the recordings: the first that has an event has precedence.
    parts: Vec<Part<'a>>,
    /// Block lists of the parts used last.
    loaded: VecDeque<(usize, Vec<IndexedBlock>)>,
    /// Reader of the part used last.
    reader: Option<(usize, SegmentReader)>,
}

/// The stream's part in one segment.
#[derive(Debug)]
struct Part<'a> {
    volume: &'a Volume,
    segment: &'a Segment,
    summary: StreamSummary,
    /// Position of the index of blocks in a sealed segment.
    blocks_at: u64,
}

/// The next block to read.
struct Taken {
    part: usize,
    block: IndexedBlock,
    /// Events from here on are taken from other blocks.
    end: u64,
}

impl<'a> StreamReader<'a> {
    /// Opens a stream of a recording. `None` when the recording has no such stream.
    ///
    /// # Errors
    /// A segment cannot be read, or its index is damaged.
    pub fn open(recording: &'a Recording, stream: u32) -> Result<Option<Self>, RecordingError> {
        Self::open_merged(&recording.into(), stream)
    }

    /// The same for a stream of several recordings. Each event is read once, from the first one that has it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_merged(
        recordings: &MergedRecording<'a>,
        stream: u32,
    ) -> Result<Option<Self>, RecordingError> {
        Ok(Self::open_several(recordings, &[stream])?.pop())
    }

    /// Opens these streams one after another, without those that no recording has. Their segments are opened
    /// once for many streams.
    ///
    /// # Errors
    /// As [`open`](Self::open), by each item.
    pub fn open_each<'s>(
        recordings: &'s MergedRecording<'a>,
        streams: &'s [u32],
    ) -> impl Iterator<Item = Result<Self, RecordingError>> + use<'a, 's> {
        let open = |streams: &[u32]| match Self::open_several(recordings, streams) {
            Ok(readers) => readers.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        };
        streams.chunks(STREAMS_TOGETHER).flat_map(open)
    }

    fn open_several(recordings: &MergedRecording<'a>, streams: &[u32]) -> Result<Vec<Self>, RecordingError> {
        let mut parts: BTreeMap<u32, Vec<Part<'a>>> = streams.iter().map(|&id| (id, Vec::new())).collect();
        for (volume, segment) in recordings.segments().filter(|(_, segment)| segment.readable_blocks() > 0) {
            let (summaries, blocks_at) = match segment.is_ended() {
                true => {
                    let lookup = SegmentLookup::open(segment)?;
                    (lookup.streams, lookup.blocks_at)
                }
                false => {
                    let found = walked(volume, segment, streams)?;
                    (found.iter().filter_map(|(&id, blocks)| summary_of(id, blocks)).collect(), 0)
                }
            };
            for summary in summaries {
                if let Some(parts) = parts.get_mut(&summary.stream) {
                    parts.push(Part { volume, segment, summary, blocks_at });
                }
            }
        }
        let known = recordings.streams();
        let reader = |id: &u32| {
            let (stream, parts) = (known.get(id).copied()?, parts.remove(id)?);
            Some(Self { stream, parts, loaded: VecDeque::new(), reader: None })
        };
        Ok(streams.iter().filter_map(reader).collect())
    }

    /// Declaration of the stream.
    pub fn info(&self) -> &StreamInfo {
        self.stream
    }

    /// Passes events to `sink` in order, starting at `from`, until the stream ends or `sink`
    /// stops. Returns the number passed. Missing events are skipped; their sequence numbers are
    /// absent.
    ///
    /// # Errors
    /// A segment cannot be read, or a block is damaged.
    pub fn read(
        &mut self,
        from: From,
        sink: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<u64, RecordingError> {
        let mut next = match from {
            From::Sequence(sequence) => sequence,
            From::Time(time_ns) => match self.first_block_from(time_ns)? {
                Some(sequence) => sequence,
                None => return Ok(0),
            },
        };
        let wanted = |event: &Event<'_>| match from {
            From::Sequence(_) => true,
            From::Time(time_ns) => event.timestamp_ns >= time_ns,
        };
        let (mut count, mut begun) = (0, false);
        while let Some(Taken { part, block, end }) = self.block_from(next)? {
            let Part { volume, segment, .. } = &self.parts[part];
            let reader = match &mut self.reader {
                Some((at, reader)) if *at == part => reader,
                other => {
                    let opened = SegmentReader::open(volume, segment, BLOCK_BYTES_MAX)?;
                    &mut other.insert((part, opened)).1
                }
            };
            let found = reader.block_at(block.offset, segment.readable_bytes())?;
            if (found.header.stream, IndexedBlock::new(block.offset, &found.header))
                != (self.stream.id, block)
            {
                let what = "the block here is another than the segment's index says".into();
                let (path, offset) = (segment.path.clone(), block.offset);
                return Err(RecordingError::Segment { path, offset, what });
            }
            for event in found.events().filter(|event| (next..end).contains(&event.sequence)) {
                // After the first match all events follow, whatever their times.
                begun |= wanted(&event);
                if begun {
                    count += 1;
                    if sink(event).is_break() {
                        return Ok(count);
                    }
                }
            }
            next = end;
        }
        Ok(count)
    }

    /// Lowest sequence number among the blocks that extend to `time_ns`.
    fn first_block_from(&mut self, time_ns: u64) -> Result<Option<u64>, RecordingError> {
        let mut first = None;
        for part in 0..self.parts.len() {
            let summary = self.parts[part].summary;
            if summary.last_timestamp_ns < time_ns || first.is_some_and(|f| f <= summary.first_sequence) {
                continue;
            }
            let blocks = self.blocks(part)?;
            let found = blocks.iter().find(|block| block.last_timestamp_ns >= time_ns);
            let sequence = found.map(|block| block.first_sequence);
            first = first.into_iter().chain(sequence).min();
        }
        Ok(first)
    }

    /// Block with the first event of `sequence` or later, from the first part that has this event.
    fn block_from(&mut self, sequence: u64) -> Result<Option<Taken>, RecordingError> {
        let start = |block: &IndexedBlock| block.first_sequence.max(sequence);
        let mut best: Option<Taken> = None;
        for part in 0..self.parts.len() {
            let StreamSummary { first_sequence, last_sequence, .. } = self.parts[part].summary;
            let is_later = |best: &Taken| start(&best.block) <= first_sequence.max(sequence);
            if last_sequence < sequence || best.as_ref().is_some_and(is_later) {
                continue;
            }
            let blocks = self.blocks(part)?;
            let at = blocks.partition_point(|block| block.end() <= sequence);
            let Some(&block) = blocks.get(at) else { continue };
            // Where the block of an earlier part starts, that one has precedence.
            let end = best.as_ref().map_or(u64::MAX, |best| start(&best.block));
            if start(&block) < end {
                best = Some(Taken { part, block, end: end.min(block.end()) });
            }
        }
        Ok(best)
    }

    /// Blocks of the stream in one segment, by sequence number.
    fn blocks(&mut self, part: usize) -> Result<&[IndexedBlock], RecordingError> {
        let known = self.loaded.iter().position(|(loaded, _)| *loaded == part);
        let entry = match known.and_then(|at| self.loaded.remove(at)) {
            Some(entry) => entry,
            None => {
                let Part { volume, segment, summary, blocks_at } = &self.parts[part];
                let blocks = match segment.is_ended() {
                    true => SegmentLookup::reopen(segment, *blocks_at)?.blocks_of(summary, segment)?,
                    false => walked(volume, segment, &[summary.stream])?
                        .remove(&summary.stream)
                        .unwrap_or_default(),
                };
                (part, blocks)
            }
        };
        self.loaded.push_front(entry);
        self.loaded.truncate(SEGMENTS_KEPT);
        Ok(self.loaded.front().map(|(_, blocks)| blocks.as_slice()).unwrap_or_default())
    }
}

/// Blocks of streams in an unsealed segment, by sequence number, from their headers.
fn walked(
    volume: &Volume,
    segment: &Segment,
    streams: &[u32],
) -> Result<BTreeMap<u32, Vec<IndexedBlock>>, RecordingError> {
    let mut found: BTreeMap<u32, Vec<IndexedBlock>> = streams.iter().map(|&id| (id, Vec::new())).collect();
    walk(volume, segment, &mut |of, block| {
        if let Some(blocks) = found.get_mut(&of) {
            blocks.push(block);
        }
    })?;
    for (stream, blocks) in &mut found {
        blocks.sort_by_key(|block| block.first_sequence);
        let overlaps = |pair: &[IndexedBlock]| pair[1].first_sequence < pair[0].end();
        if let Some(pair) = blocks.windows(2).find(|pair| overlaps(pair)) {
            let what = format!("the block has event {} of stream {stream} again", pair[1].first_sequence);
            let (path, offset) = (segment.path.clone(), pair[1].offset);
            return Err(RecordingError::Segment { path, offset, what: what.into() });
        }
    }
    Ok(found)
}

/// Reads the headers of all durable blocks of a segment: stream and location of each.
pub(crate) fn walk(
    volume: &Volume,
    segment: &Segment,
    sink: &mut dyn FnMut(u32, IndexedBlock),
) -> Result<(), RecordingError> {
    let path = &segment.path;
    let fault =
        |offset, what: &str| RecordingError::Segment { path: path.clone(), offset, what: what.into() };
    let (mut offset, limit) = (SECTOR as u64, segment.readable_bytes());
    if limit <= offset {
        return Ok(());
    }
    let file: File = open_regular(path).map_err(RecordingError::open("open the segment", path))?;
    let expected = volume.identity(segment.index, segment.id);
    let mut place = (0, 0);
    let mut sector = [0; SECTOR];
    while offset < limit {
        let read = read_fully_at(&file, &mut sector, offset).map_err(RecordingError::io("read", path))?;
        let parsed = parse_block_sector(&sector[..read]).map_err(RecordingError::layout(path, offset))?;
        let header = parsed.header;
        let ids = (header.recording, header.segment, header.segment_index);
        if ids != (expected.recording, expected.segment, expected.segment_index) {
            return Err(fault(offset, "the block is of another segment"));
        } else if (header.segment_block, header.previous_header_crc) != place {
            return Err(fault(offset, "the block does not follow the one before"));
        } else if block_bytes(header.chunk_records_bytes) > limit - offset {
            return Err(fault(offset, "the block reaches beyond what is durable"));
        }
        place = (header.segment_block + 1, parsed.header_crc);
        sink(header.stream, IndexedBlock::new(offset, &header));
        offset += block_bytes(header.chunk_records_bytes);
    }
    Ok(())
}

/// Summary of these blocks; only the ranges of sequence numbers and times are used.
fn summary_of(stream: u32, blocks: &[IndexedBlock]) -> Option<StreamSummary> {
    let (first, last) = (blocks.first()?, blocks.last()?);
    Some(StreamSummary {
        stream,
        events: blocks.iter().map(|block| u64::from(block.events)).saturating_sum(),
        blocks: blocks.len() as u32,
        first_sequence: first.first_sequence,
        last_sequence: last.end() - 1,
        first_timestamp_ns: blocks.iter().map(|block| block.first_timestamp_ns).min()?,
        last_timestamp_ns: blocks.iter().map(|block| block.last_timestamp_ns).max()?,
        ..StreamSummary::default()
    })
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
