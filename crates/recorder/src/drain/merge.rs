//! Blocks of a recording in an order in which every stream's come one after the other, from several volumes.
//!
//! A volume's blocks of one stream are in order but for those that were placed again after another volume
//! failed; these few are set aside until it is their turn. Memory is bounded by [`ASIDE_MAX`] blocks and
//! one per volume.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_recording::error::RecordingError;
use keepup_recording::follow::Follower;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::{Events, SegmentReader};
use keepup_stream::wire::StreamInfo;

use crate::RecorderError;

/// Blocks set aside at a time; beyond that the missing ones are taken as lost.
const ASIDE_MAX: usize = 64;
/// Largest block that a drain takes into memory, in bytes.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// A block in memory.
struct Held {
    info: StreamInfo,
    header: BlockHeader,
    records: Vec<u8>,
}

/// Where one volume is being read.
#[derive(Default)]
struct Cursor {
    segment: usize,
    reader: Option<SegmentReader>,
    offset: u64,
    head: Option<Held>,
}

/// What a step did.
pub(super) enum Step {
    /// A block was handed over.
    Sent { until_ns: u64 },
    /// A block was set aside; go on.
    SetAside,
    /// Nothing more is readable now.
    Nothing,
    /// The recording has ended and everything was handed over.
    Ended,
}

type Deliver<'a> = dyn FnMut(&StreamInfo, &BlockHeader, Events<'_>) -> Result<u64, RecorderError> + 'a;

/// All volumes of a recording, merged.
pub(super) struct Merge {
    follower: Follower,
    cursors: Vec<Cursor>,
    aside: BTreeMap<(u32, u64), Held>,
    expected: BTreeMap<u32, u64>,
}

impl Merge {
    pub(super) fn open(directories: &[PathBuf]) -> Result<Self, RecordingError> {
        let follower = Follower::open(directories)?;
        let cursors = follower.volumes().iter().map(|_| Cursor::default()).collect();
        Ok(Self { follower, cursors, aside: BTreeMap::new(), expected: BTreeMap::new() })
    }

    /// Takes in what the journals have gained.
    pub(super) fn poll(&mut self) -> Result<(), RecordingError> {
        self.follower.poll().map(|_| ())
    }

    /// Every stream that the journals declare so far, by id.
    pub(super) fn streams(&self) -> impl Iterator<Item = &StreamInfo> {
        self.follower.volumes().iter().flat_map(|volume| volume.streams().values())
    }

    /// Durable bytes that were not read yet.
    pub(super) fn behind_bytes(&self) -> u64 {
        let volumes = self.follower.volumes().iter().zip(&self.cursors);
        volumes
            .map(|(volume, cursor)| {
                let ahead =
                    volume.segments().iter().skip(cursor.segment).map(|s| s.readable_bytes()).sum::<u64>();
                ahead.saturating_sub(cursor.offset)
            })
            .sum()
    }

    /// Hands the next block over, if there is one whose turn it is.
    pub(super) fn step(&mut self, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        let mut exhausted = 0;
        for volume in 0..self.cursors.len() {
            if self.cursors[volume].head.is_none() && !self.load(volume)? {
                exhausted += usize::from(self.follower.is_ended());
            }
        }
        let next = self.cursors.iter().position(|c| c.head.as_ref().is_some_and(|h| self.is_due(&h.header)));
        if let Some(head) = next.and_then(|volume| self.cursors[volume].head.take()) {
            return self.hand_over(&head, deliver);
        }
        let due = self.aside.iter().find(|(_, held)| self.is_due(&held.header)).map(|(key, _)| *key);
        if let Some(held) = due.and_then(|key| self.aside.remove(&key)) {
            return self.hand_over(&held, deliver);
        }
        let heads = self.cursors.iter().filter(|c| c.head.is_some()).count();
        if heads + exhausted < self.cursors.len() {
            return Ok(Step::Nothing);
        }
        self.skip_or_end(heads, deliver)
    }

    /// Every volume shows a block out of turn or has nothing more: look further, or take what is missing as
    /// lost.
    fn skip_or_end(&mut self, heads: usize, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        if heads > 0 && self.aside.len() < ASIDE_MAX {
            for cursor in &mut self.cursors {
                if let Some(head) = cursor.head.take() {
                    self.aside.insert((head.header.stream, head.header.stream_block), head);
                }
            }
            return Ok(Step::SetAside);
        }
        match self.aside.pop_first() {
            Some((_, held)) => self.hand_over(&held, deliver),
            None => Ok(Step::Ended),
        }
    }

    fn is_due(&self, header: &BlockHeader) -> bool {
        header.stream_block == self.expected.get(&header.stream).copied().unwrap_or(0)
    }

    fn hand_over(&mut self, held: &Held, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        let header = &held.header;
        self.expected.insert(header.stream, header.stream_block + 1);
        let until_ns = deliver(&held.info, header, Events::new(header.first_sequence, &held.records))?;
        Ok(Step::Sent { until_ns })
    }

    /// Reads the volume's next block into its head; says whether there was one.
    fn load(&mut self, volume: usize) -> Result<bool, RecorderError> {
        let source = &self.follower.volumes()[volume];
        let cursor = &mut self.cursors[volume];
        loop {
            let Some(segment) = source.segments().get(cursor.segment) else { return Ok(false) };
            if cursor.reader.is_none() {
                if segment.readable_blocks() == 0 && !segment.is_ended() {
                    return Ok(false);
                }
                cursor.reader = Some(SegmentReader::open(source, segment, BLOCK_BYTES_MAX)?);
                cursor.offset = 0;
            }
            let Some(reader) = &mut cursor.reader else { return Ok(false) };
            if let Some(block) = reader.next_block(segment.readable_bytes())? {
                let info = block.stream_info().map_err(|e| RecorderError::Config { what: e.to_string() })?;
                let held = Held { info, header: block.header, records: block.records().to_vec() };
                cursor.offset = reader.offset();
                cursor.head = Some(held);
                return Ok(true);
            }
            if !segment.is_ended() {
                return Ok(false);
            }
            cursor.segment += 1;
            cursor.reader = None;
            cursor.offset = 0;
        }
    }
}
