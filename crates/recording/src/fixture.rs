//! Builds segments in memory with the layout functions, for tests and fuzzing.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keepup_measure::sum::Sums;
use keepup_stream::wire::{ElementType, StreamInfo};

use crate::crc::crc32;
use crate::error::RecordingError;
use crate::id::Id;
use crate::journal::{Journal, JournalRecord};
use crate::layout::{
    BlockHeader, ChannelBytes, FORMAT_VERSION, LayoutError, MESSAGE_HEADER, SECTOR, SUPERBLOCK_SPACE,
    SegmentIdentity, block_bytes, put_block_sector, put_block_tail, put_message_header, segment_file_name,
    segment_preamble,
};
use crate::manifest::{Manifest, Placement};
use crate::seal::{EventMark, SegmentIndex, put_tail};

/// A segment that grows block by block.
#[derive(Clone, Debug)]
pub struct SegmentBuilder {
    identity: SegmentIdentity,
    bytes: Vec<u8>,
    blocks: u64,
    previous_header_crc: u32,
    index: SegmentIndex,
}

/// Properties of a block, besides its events.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockPlan {
    /// Number of the block within its stream.
    pub stream_block: u64,
    /// Sequence number of its first event.
    pub first_sequence: u64,
    /// [`FLAG_GAP_BEFORE`](crate::layout::FLAG_GAP_BEFORE) or 0.
    pub flags: u32,
}

impl SegmentBuilder {
    /// A segment with its preamble.
    pub fn new(identity: SegmentIdentity) -> SegmentBuilder {
        let bytes = segment_preamble(&identity).to_vec();
        SegmentBuilder { identity, bytes, blocks: 0, previous_header_crc: 0, index: SegmentIndex::default() }
    }

    /// Appends a block of `events`, each a time in ns and a payload; returns its position.
    ///
    /// # Errors
    /// The stream's description is too long.
    pub fn block(
        &mut self,
        stream: &StreamInfo,
        plan: BlockPlan,
        events: &[(u64, &[u8])],
    ) -> Result<Range<usize>, LayoutError> {
        let channel = ChannelBytes::new(stream)?;
        let mut records = Vec::new();
        for (sequence, &(timestamp_ns, payload)) in (plan.first_sequence..).zip(events) {
            let mut head = [0; MESSAGE_HEADER];
            put_message_header(&mut head, stream.id as u16, sequence, timestamp_ns, payload.len() as u64);
            records.extend_from_slice(&head);
            records.extend_from_slice(payload);
        }
        let times = || events.iter().map(|&(timestamp_ns, _)| timestamp_ns);
        let header = BlockHeader {
            recording: self.identity.recording,
            segment: self.identity.segment,
            segment_index: self.identity.segment_index,
            stream: stream.id,
            stream_block: plan.stream_block,
            segment_block: self.blocks,
            first_sequence: plan.first_sequence,
            event_count: events.len() as u32,
            first_timestamp_ns: times().min().unwrap_or(0),
            last_timestamp_ns: times().max().unwrap_or(0),
            chunk_records_bytes: records.len() as u64,
            payload_bytes: events.iter().map(|(_, payload)| payload.len() as u64).saturating_sum(),
            chunk_crc: crc32(&records),
            previous_header_crc: self.previous_header_crc,
            flags: plan.flags,
        };
        let start = self.bytes.len();
        let chunk = start + SECTOR - MESSAGE_HEADER;
        self.bytes.resize(start + block_bytes(records.len() as u64) as usize, 0xAA);
        self.bytes[chunk..chunk + records.len()].copy_from_slice(&records);
        put_block_tail(&mut self.bytes[chunk + records.len()..]);
        self.previous_header_crc = put_block_sector(&mut self.bytes[start..], &header, &channel);
        let marks = events
            .iter()
            .map(|&(timestamp_ns, payload)| EventMark { timestamp_ns, payload_bytes: payload.len() as u64 });
        self.index.push(start as u64, &header, &Arc::new(channel), marks);
        self.blocks += 1;
        Ok(start..self.bytes.len())
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Preamble and blocks.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The complete sealed segment.
    pub fn finish(mut self) -> Vec<u8> {
        let data_bytes = self.bytes.len() as u64;
        if let Ok(tail) = put_tail(&self.index, data_bytes, &mut self.bytes) {
            self.bytes[SUPERBLOCK_SPACE].copy_from_slice(&tail.superblock);
        }
        self.bytes
    }
}

const RECORDING: Id = Id([7; 16]);
const SEGMENT: Id = Id([9; 16]);
/// Stream id in the segment of [`scene`].
pub const SCENE_STREAM: u32 = 3;

/// Stream of the segments of [`scene`].
pub fn scene_stream() -> StreamInfo {
    let (name, element) = ("left".to_owned(), ElementType::U16);
    StreamInfo { id: SCENE_STREAM, name, element, shape: vec![], compression: None }
}

/// A sealed segment with this many blocks of three small events, as in the recording of
/// [`scene`].
///
/// # Errors
/// None, as long as the layout accepts the stream.
pub fn scene_segment(blocks: u64) -> Result<Vec<u8>, LayoutError> {
    Ok(scene_segment_of(SEGMENT, 0, blocks)?.finish())
}

/// Segment `segment`, number `index` of the recording of [`scene`], with this many blocks of three small
/// events.
///
/// # Errors
/// None, as long as the layout accepts the stream.
pub fn scene_segment_of(segment: Id, index: u32, blocks: u64) -> Result<SegmentBuilder, LayoutError> {
    let recording = RECORDING;
    let identity = SegmentIdentity {
        recording,
        segment,
        segment_index: index,
        created_unix_ns: 1,
        ..Default::default()
    };
    let mut builder = SegmentBuilder::new(identity);
    let events: [(u64, &[u8]); 3] = [(10, b"first"), (20, b"second event"), (15, b"")];
    let first = u64::from(index) * blocks;
    for block in first..first + blocks {
        let plan = BlockPlan { stream_block: block, first_sequence: block * 3, flags: 0 };
        builder.block(&scene_stream(), plan, &events)?;
    }
    Ok(builder)
}

/// A manifest of volume `volume_index` of a recording on `volumes`.
pub fn manifest(volumes: Vec<PathBuf>, volume_index: u32) -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION,
        name: "run".to_owned(),
        recording: RECORDING,
        volume: Id([volume_index as u8 + 1; 16]),
        volume_index,
        volumes,
        placement: Placement::Free,
        created_unix_ns: 1,
        tool_version: "0.0.0".to_owned(),
        keep: None,
        run: None,
        metadata: Default::default(),
        reductions: Vec::new(),
        origin: None,
    }
}

/// Creates an interrupted recording on the volume `root`, with one unsealed segment with these
/// bytes; returns the recording's directory.
///
/// # Errors
/// The system refuses.
pub fn scene(root: &Path, segment: &[u8]) -> Result<PathBuf, RecordingError> {
    let manifest = manifest(vec![root.to_owned()], 0);
    let dir = manifest.create(root)?;
    let mut journal = Journal::create(&dir, &manifest)?;
    let file = segment_file_name(0);
    let path = dir.join(&file);
    fs::write(&path, segment).map_err(RecordingError::io("write", &path))?;
    journal.append(&JournalRecord::Stream(scene_stream()))?;
    journal.append(&JournalRecord::Segment { index: 0, id: SEGMENT, file, preallocated_bytes: 1 << 20 })?;
    Ok(dir)
}

/// Edits bytes for fuzzing: each five bytes of `edits` are an offset (modulo the length) and a
/// value to XOR.
pub fn edit(bytes: &mut [u8], edits: &[u8]) {
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= edit[4];
        }
    }
}
