//! Duplicate blocks on two volumes: a write that was reported failed reached the disk after all,
//! after its block had been given to another volume.
//!
//! Invariants: two blocks are copies only when stream, number, events and checksum agree; exactly
//! one copy counts.
use std::collections::{BTreeMap, BTreeSet};

use keepup_stream::ledger::Count;

use crate::access::walk;
use crate::contents::contents;
use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::journal::RotationState;
use crate::layout::{BlockHeader, SECTOR, parse_block_sector};
use crate::seal::IndexedBlock;
use crate::volume::{Segment, Volume};

/// A block that is also on another volume and counts there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicate {
    /// Its stream.
    pub(crate) stream: u32,
    /// Offset in its segment, bytes.
    pub(crate) offset: u64,
    /// Number and size of its events.
    pub(crate) count: Count,
}

/// Duplicates by volume number and segment number.
pub(crate) type Duplicates = BTreeMap<(u32, u32), Vec<Duplicate>>;

/// Location of a block.
#[derive(Clone, Copy)]
pub(crate) struct Copy<'a> {
    /// Number of the volume.
    pub(crate) volume: u32,
    /// The segment.
    pub(crate) segment: &'a Segment,
    /// Offset in the segment, bytes.
    pub(crate) offset: u64,
}

impl Copy<'_> {
    /// Its header, if that is intact.
    fn header(&self) -> Option<BlockHeader> {
        let mut sector = [0; SECTOR];
        let file = open_regular(&self.segment.path).ok()?;
        let read = read_fully_at(&file, &mut sector, self.offset).ok()?;
        parse_block_sector(&sector[..read]).ok().map(|parsed| parsed.header)
    }

    /// Header of this block if `other` is a copy of it.
    pub(crate) fn same_as(&self, other: &Copy<'_>) -> Option<BlockHeader> {
        let content = |h: &BlockHeader| {
            let place = (h.recording, h.stream, h.stream_block, h.first_sequence, h.event_count);
            (place, h.chunk_records_bytes, h.payload_bytes, h.chunk_crc)
        };
        let header = self.header()?;
        (content(&header) == content(&other.header()?)).then_some(header)
    }
}

/// Volumes that failed while others worked: only their blocks were also given to others.
pub(crate) fn failed<'a>(volumes: impl Iterator<Item = &'a Volume>) -> BTreeSet<u32> {
    let rotations = volumes.flat_map(Volume::rotations);
    rotations
        .filter(|rotation| rotation.state == RotationState::Failed)
        .map(|rotation| rotation.volume)
        .collect()
}

/// Streams and locations of a segment's blocks.
pub(crate) fn blocks_of(
    volume: &Volume,
    segment: &Segment,
) -> Result<Vec<(u32, IndexedBlock)>, RecordingError> {
    let mut all = Vec::new();
    if segment.is_ended() {
        for (summary, blocks) in contents(volume, segment)?.streams {
            all.extend(blocks.into_iter().map(|block| (summary.stream, block)));
        }
    } else {
        walk(volume, segment, &mut |stream, block| all.push((stream, block)))?;
    }
    Ok(all)
}

/// Finds the blocks that are on two of the volumes. Unreadable segments are skipped; other checks
/// report them.
pub(crate) fn duplicates<'a>(volumes: impl Iterator<Item = &'a Volume> + Clone) -> Duplicates {
    let failed = failed(volumes.clone());
    let mut found = Duplicates::new();
    if failed.is_empty() {
        return found;
    }
    let copies = || {
        let segments = volumes.clone().flat_map(|volume| volume.segments().iter().map(move |s| (volume, s)));
        segments.flat_map(|(volume, segment)| {
            let blocks = blocks_of(volume, segment).unwrap_or_default();
            let number = volume.manifest().volume_index;
            blocks.into_iter().map(move |(stream, block)| {
                (
                    (stream, block.first_sequence, block.events),
                    Copy { volume: number, segment, offset: block.offset },
                )
            })
        })
    };
    let mut candidates: BTreeMap<_, Vec<Copy<'_>>> = BTreeMap::new();
    for (key, copy) in copies().filter(|(_, copy)| failed.contains(&copy.volume)) {
        candidates.entry(key).or_default().push(copy);
    }
    for (key, other) in copies() {
        let Some(known) = candidates.get_mut(&key) else { continue };
        known.retain(|copy| {
            // If both volumes failed, the copy on the lower-numbered one counts.
            let counts = !failed.contains(&other.volume) || other.volume < copy.volume;
            let header = (counts && other.volume != copy.volume).then(|| copy.same_as(&other)).flatten();
            if let Some(header) = header {
                found.entry((copy.volume, copy.segment.index)).or_default().push(Duplicate {
                    stream: header.stream,
                    offset: copy.offset,
                    count: Count { events: header.event_count.into(), bytes: header.payload_bytes },
                });
            }
            header.is_none()
        });
    }
    found
}
