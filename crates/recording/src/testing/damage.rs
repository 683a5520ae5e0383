//! For tests: alters a sealed segment and recomputes the checksums, like a forger.
use std::ops::Range;

use crate::crc::crc32;
use crate::layout::{u32_at, u64_at};

/// Size of the lookup's header, from `docs/recording-format.md`.
const HEADER: usize = 24;
const STREAM: usize = 72;
const BLOCK: usize = 40;
const FOOTER: usize = 37;

/// Offset of the locator's body in a sealed segment.
pub(crate) fn locator_at(bytes: &[u8]) -> usize {
    u64_at(bytes, bytes.len() - FOOTER + 9) as usize - 13 - 40
}

/// Range of the lookup's body.
pub(crate) fn lookup(bytes: &[u8]) -> Range<usize> {
    let locator = locator_at(bytes);
    let at = u64_at(bytes, locator + 16) as usize;
    at..at.saturating_add(u64_at(bytes, locator + 24) as usize)
}

/// Offset of the stream entry number `index`.
pub(crate) fn stream_at(bytes: &[u8], index: usize) -> usize {
    lookup(bytes).start + HEADER + index * STREAM
}

/// Offset of the block entry number `index`, over all streams.
pub(crate) fn block_at(bytes: &[u8], index: usize) -> usize {
    let at = lookup(bytes).start;
    at + HEADER + u32_at(bytes, at + 8) as usize * STREAM + 4 + index * BLOCK
}

/// Recomputes the checksums of the lookup and of its locator.
pub(crate) fn forge_lookup(bytes: &mut [u8], streams: usize) {
    let Range { start, end } = lookup(bytes);
    let table_end = start + HEADER + streams * STREAM;
    for index in 0..streams {
        let at = start + HEADER + index * STREAM;
        let first = table_end + 4 + (u64_at(bytes, at + 8) as usize).min(1 << 20) * BLOCK;
        let last = first + u32_at(bytes, at + 4) as usize * BLOCK;
        if last <= end {
            let crc = crc32(&bytes[first..last]);
            bytes[at + 68..at + 72].copy_from_slice(&crc.to_le_bytes());
        }
    }
    let crc = crc32(&bytes[start..table_end]);
    bytes[table_end..table_end + 4].copy_from_slice(&crc.to_le_bytes());
    let locator = locator_at(bytes);
    let crc = crc32(&bytes[locator..locator + 32]);
    bytes[locator + 32..locator + 36].copy_from_slice(&crc.to_le_bytes());
}
