//! Blocks of a recording in an order in which every stream's come one after the other, from several volumes.
//!
//! A volume's blocks of one stream are in order but for those that were placed again after another volume
//! failed or was slow; of these the place is remembered, and they are read again when it is their turn.
//! Memory is bounded by one block per volume and [`ASIDE_MAX`] places.
use std::collections::BTreeMap;
use std::path::PathBuf;

use keepup_recording::error::RecordingError;
use keepup_recording::follow::Follower;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::{Block, Events, SegmentReader};
use keepup_recording::retention::Drained;
use keepup_stream::wire::{SentRecording, StreamInfo};

use crate::RecorderError;

/// Blocks set aside at a time; beyond that the missing ones are taken as lost.
const ASIDE_MAX: usize = 4096;
/// Largest block that a drain takes into memory, in bytes.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// A block in memory.
struct Held {
    info: StreamInfo,
    header: BlockHeader,
    records: Vec<u8>,
    place: Place,
}

/// Where a block lies.
#[derive(Clone, Copy)]
struct Place {
    volume: usize,
    segment: u32,
    offset: u64,
}

/// Where one volume is being read.
#[derive(Default)]
struct Cursor {
    segment: u32,
    reader: Option<SegmentReader>,
    offset: u64,
    head: Option<Held>,
}

impl Cursor {
    fn begin(&mut self, segment: u32) {
        *self = Self { segment, head: self.head.take(), ..Self::default() };
    }
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
    /// Places of blocks, by stream and number within it.
    aside: BTreeMap<(u32, u64), Place>,
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

    /// What the other side is told of the recording; nothing where its manifest says what no hello may carry.
    pub(super) fn sent_recording(&self) -> Option<SentRecording> {
        let manifest = self.follower.volumes().first()?.manifest();
        Some(manifest.sent()).filter(SentRecording::is_valid)
    }

    /// Every stream that the journals declare so far, by id.
    pub(super) fn streams(&self) -> impl Iterator<Item = &StreamInfo> {
        self.follower.volumes().iter().flat_map(|volume| volume.streams().values())
    }

    /// Enters on every volume up to which event each stream is durable elsewhere; only for a recording of
    /// which the recorder waits for that.
    pub(super) fn mark_drained(&self, ends: &BTreeMap<u32, u64>) -> Result<(), RecordingError> {
        for volume in self.follower.volumes() {
            let manifest = volume.manifest();
            if manifest.keep.is_some_and(|keep| !keep.disposable) {
                Drained::enter(volume.dir(), manifest.recording, ends)?;
            }
        }
        Ok(())
    }

    /// Durable bytes that were not read yet.
    pub(super) fn behind_bytes(&self) -> u64 {
        let volumes = self.follower.volumes().iter().zip(&self.cursors);
        volumes
            .map(|(volume, cursor)| {
                let unread = volume.segments().iter().filter(|segment| segment.index >= cursor.segment);
                let ahead = unread.map(|segment| segment.readable_bytes()).sum::<u64>();
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
        let due = self.aside.keys().copied().find(|key| self.is_turn(*key));
        if let Some(place) = due.and_then(|key| self.aside.remove(&key)) {
            return self.hand_over_aside(place, deliver);
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
                    self.aside.insert((head.header.stream, head.header.stream_block), head.place);
                }
            }
            return Ok(Step::SetAside);
        }
        match self.aside.pop_first() {
            Some((_, place)) => self.hand_over_aside(place, deliver),
            None => Ok(Step::Ended),
        }
    }

    fn is_due(&self, header: &BlockHeader) -> bool {
        self.is_turn((header.stream, header.stream_block))
    }

    fn is_turn(&self, (stream, block): (u32, u64)) -> bool {
        block == self.expected.get(&stream).copied().unwrap_or(0)
    }

    fn hand_over_aside(&mut self, place: Place, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        let volume = &self.follower.volumes()[place.volume];
        // What was removed in the meantime is missing.
        let Some(segment) = volume.segment(place.segment) else { return Ok(Step::SetAside) };
        let mut reader = SegmentReader::open(volume, segment, BLOCK_BYTES_MAX)?;
        let held = hold(&reader.block_at(place.offset, segment.readable_bytes())?, place)?;
        self.hand_over(&held, deliver)
    }

    fn hand_over(&mut self, held: &Held, deliver: &mut Deliver<'_>) -> Result<Step, RecorderError> {
        let header = &held.header;
        self.expected.insert(header.stream, header.stream_block + 1);
        let until_ns = deliver(&held.info, header, Events::new(header.first_sequence, &held.records))?;
        Ok(Step::Sent { until_ns })
    }

    /// Reads the volume's next block into its head; says whether there was one.
    fn load(&mut self, volume: usize) -> Result<bool, RecorderError> {
        loop {
            match self.load_present(volume) {
                Err(RecorderError::Recording(_)) if self.was_removed(volume)? => {}
                outcome => return outcome,
            }
        }
    }

    /// Whether the segment that is to be read next was removed since the journal was read.
    fn was_removed(&mut self, volume: usize) -> Result<bool, RecorderError> {
        self.follower.poll()?;
        Ok(self.cursors[volume].segment < self.follower.volumes()[volume].removed().first_segment)
    }

    fn load_present(&mut self, volume: usize) -> Result<bool, RecorderError> {
        let source = &self.follower.volumes()[volume];
        let cursor = &mut self.cursors[volume];
        if cursor.segment < source.removed().first_segment {
            // The rest of it is missing, unless another drain has it.
            cursor.begin(source.removed().first_segment);
        }
        while let Some(segment) = source.segment(cursor.segment) {
            if cursor.reader.is_none() {
                if segment.readable_blocks() == 0 && !segment.is_ended() {
                    return Ok(false);
                }
                cursor.reader = Some(SegmentReader::open(source, segment, BLOCK_BYTES_MAX)?);
            }
            let Some(reader) = &mut cursor.reader else { return Ok(false) };
            if let Some(block) = reader.next_block(segment.readable_bytes())? {
                let place = Place { volume, segment: segment.index, offset: block.offset };
                cursor.head = Some(hold(&block, place)?);
                cursor.offset = reader.offset();
                return Ok(true);
            }
            if !segment.is_ended() {
                return Ok(false);
            }
            cursor.begin(cursor.segment + 1);
        }
        Ok(false)
    }
}

fn hold(block: &Block<'_>, place: Place) -> Result<Held, RecorderError> {
    let info = block.stream_info().map_err(|e| RecorderError::Config { what: e.to_string() })?;
    Ok(Held { info, header: block.header, records: block.records().to_vec(), place })
}
