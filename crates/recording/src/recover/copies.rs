//! Blocks at the end of an unsealed segment that are also on another volume: their writes were
//! reported failed, the recorder gave them to the other volume, and the writes reached the disk
//! after all.
//!
//! Invariant: a block is dropped only if a copy with the same checksum stays.
use std::collections::{BTreeMap, BTreeSet};

use super::volume::OpenVolume;
use crate::duplicates::{Copy, blocks_of, failed};
use crate::scan::ScanResult;
use crate::seal::summaries;
use crate::volume::Segment;

/// Identity of a block.
type Key = (u32, u64, u32);

/// A block of a scanned segment.
struct ScannedBlock {
    key: Key,
    offset: u64,
    /// Whether it is above the journal's last watermark.
    is_behind: bool,
}

/// A scanned segment: index of its volume, and its blocks in file order.
type Scanned = (usize, Segment, Vec<ScannedBlock>);

fn scanned_blocks(volumes: &[OpenVolume]) -> Vec<Scanned> {
    let segments = volumes
        .iter()
        .enumerate()
        .flat_map(|(at, open)| open.scanned.iter().map(move |(segment, found)| (at, segment.clone(), found)));
    let blocks_of = |(at, segment, found): (usize, Segment, &ScanResult)| {
        let mut blocks: Vec<(Key, u64)> = summaries(&found.index)
            .into_iter()
            .flat_map(|(summary, blocks)| {
                blocks.into_iter().map(move |b| ((summary.stream, b.first_sequence, b.events), b.offset))
            })
            .collect();
        blocks.sort_by_key(|(_, offset)| *offset);
        let behind = blocks.len().saturating_sub(found.blocks_behind as usize);
        let blocks = blocks.into_iter().enumerate();
        let scanned = blocks.map(|(n, (key, offset))| ScannedBlock { key, offset, is_behind: n >= behind });
        (at, segment, scanned.collect())
    };
    segments.map(blocks_of).collect()
}

/// Number of blocks at the end of each unsealed segment that are copies, by index of the volume
/// in `volumes` and number of the segment.
pub(super) fn trailing_copies(volumes: &[OpenVolume]) -> BTreeMap<(usize, u32), usize> {
    let scanned = scanned_blocks(volumes);
    let mut copies: BTreeMap<Key, Vec<Copy<'_>>> = BTreeMap::new();
    for block in scanned.iter().flat_map(|(.., blocks)| blocks).filter(|block| block.is_behind) {
        copies.entry(block.key).or_default();
    }
    let number = |at: usize| volumes[at].volume.manifest().volume_index;
    for (at, segment, blocks) in &scanned {
        for ScannedBlock { key, offset, .. } in blocks {
            if let Some(known) = copies.get_mut(key) {
                known.push(Copy { volume: number(*at), segment, offset: *offset });
            }
        }
    }
    for volume in volumes.iter().map(|open| &open.volume) {
        for segment in volume.segments().iter().filter(|segment| segment.is_ended()) {
            // An unreadable segment does not prevent sealing.
            for (stream, block) in blocks_of(volume, segment).unwrap_or_default() {
                if let Some(known) = copies.get_mut(&(stream, block.first_sequence, block.events)) {
                    known.push(Copy {
                        volume: volume.manifest().volume_index,
                        segment,
                        offset: block.offset,
                    });
                }
            }
        }
    }
    let failed = failed(volumes.iter().map(|open| &open.volume));
    let mut order: Vec<_> = scanned.iter().collect();
    order.sort_by_key(|(at, segment, _)| {
        (!failed.contains(&number(*at)), std::cmp::Reverse((*at, segment.index)))
    });
    let mut gone: BTreeSet<(u32, u32, u64)> = BTreeSet::new();
    let mut counts = BTreeMap::new();
    for (at, segment, blocks) in order {
        let volume = number(*at);
        let has_copy = |ScannedBlock { key, offset, is_behind }: &&ScannedBlock| {
            let own = Copy { volume, segment, offset: *offset };
            let stays = |copy: &&Copy<'_>| {
                copy.volume != volume && !gone.contains(&(copy.volume, copy.segment.index, copy.offset))
            };
            *is_behind
                && copies.get(key).into_iter().flatten().filter(stays).any(|copy| own.same_as(copy).is_some())
        };
        let trailing: Vec<u64> = blocks.iter().rev().take_while(has_copy).map(|block| block.offset).collect();
        if !trailing.is_empty() {
            counts.insert((*at, segment.index), trailing.len());
        }
        gone.extend(trailing.into_iter().map(|offset| (volume, segment.index, offset)));
    }
    counts
}
