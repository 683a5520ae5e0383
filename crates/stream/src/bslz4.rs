//! Lossless compression: bitshuffle, then LZ4, in the layout of HDF5's filter 32008.
//!
//! Layout: size of the samples in bytes (64 bits) and of a block before compression (32 bits),
//! both big-endian; then the blocks, each preceded by its length (32 bits, big-endian). The last
//! block has the remaining samples in a multiple of eight; the fewer than eight that are left
//! follow uncompressed.
mod bitshuffle;

use bitshuffle::{GROUP, transpose};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

/// Bytes of one block for all sample types: the default of the library bitshuffle. Readers find
/// it in the header.
pub(crate) const BLOCK_BYTES: usize = 8192;
/// Length of the header.
pub(crate) const HEADER_BYTES: usize = 12;
const LENGTH_BYTES: usize = 4;

/// Largest compressed size of `bytes` of samples.
#[must_use]
pub fn bytes_max(bytes: usize, sample_bytes: usize) -> usize {
    let whole = bytes / BLOCK_BYTES;
    let rest = bytes % BLOCK_BYTES;
    let block = |bytes| LENGTH_BYTES + get_maximum_output_size(bytes);
    HEADER_BYTES + whole * block(BLOCK_BYTES) + block(rest) + GROUP * sample_bytes
}

/// Header of `bytes` of samples.
pub(crate) fn header(bytes: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&bytes.to_be_bytes());
    header[8..].copy_from_slice(&(BLOCK_BYTES as u32).to_be_bytes());
    header
}

/// Offset in an LZ4 block of the first `count` literals in a row that are among the first `within` bytes of
/// what it decompresses to, and that no match copies. Other bytes in their place change these bytes alone.
pub(crate) fn lone_literals(block: &[u8], count: usize, within: usize) -> Option<usize> {
    let (mut at, mut end) = (0, 0);
    // Place in the block of each literal that is decompressed.
    let mut places = vec![None; within];
    while at < block.len() {
        let token = *block.get(at)?;
        at += 1;
        let literals = length(block, &mut at, token >> 4)?;
        let to = places.get_mut(end..).unwrap_or_default();
        to.iter_mut().zip(at..at + literals).for_each(|(place, at)| *place = Some(at));
        (at, end) = (at + literals, end + literals);
        // The last sequence has no match.
        let Some(offset) = block.get(at..at + 2) else { break };
        let from = end.checked_sub(usize::from(u16::from_le_bytes([offset[0], offset[1]])))?;
        at += 2;
        let matched = length(block, &mut at, token & 15)? + 4;
        places.iter_mut().take((from + matched).min(end)).skip(from).for_each(|place| *place = None);
        end += matched;
    }
    let is_row = |row: &&[Option<usize>]| {
        row.first().is_some_and(|first| first.is_some() && row.iter().flatten().count() == count)
            && row.windows(2).all(|pair| pair[0].map(|at| at + 1) == pair[1])
    };
    places.windows(count).find(is_row)?.first().copied().flatten()
}

/// A length of which the token has `nibble`; 15 continues in the bytes at `at`, and so does 255.
fn length(block: &[u8], at: &mut usize, nibble: u8) -> Option<usize> {
    let mut length = usize::from(nibble);
    let mut continues = nibble == 15;
    while continues {
        let more = *block.get(*at)?;
        *at += 1;
        length += usize::from(more);
        continues = more == 255;
    }
    Some(length)
}

/// Compressor of events of one size.
pub struct Compressor {
    bytes: usize,
    sample_bytes: usize,
    shuffled: Vec<u8>,
    table: CompressTable,
}

impl Compressor {
    /// Prepares for events of `bytes` with samples of 1, 2, 4 or 8 bytes.
    #[must_use]
    pub fn new(bytes: usize, sample_bytes: usize) -> Self {
        Self { bytes, sample_bytes, shuffled: vec![0; BLOCK_BYTES], table: CompressTable::small() }
    }

    /// Compresses an event to the front of `output`, which needs [`bytes_max`]; returns the bytes used.
    /// `None` if the event has another size, or if the output is too small.
    pub fn compress(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        if event.len() != self.bytes {
            return None;
        }
        let (head, _) = output.split_at_mut_checked(HEADER_BYTES)?;
        head.copy_from_slice(&header(event.len() as u64));
        let mut at = HEADER_BYTES;
        let grouped = event.len() - event.len() % (GROUP * self.sample_bytes);
        for block in event[..grouped].chunks(BLOCK_BYTES) {
            at += self.block(block, output.get_mut(at..)?)?;
        }
        let rest = &event[grouped..];
        output.get_mut(at..at + rest.len())?.copy_from_slice(rest);
        Some(at + rest.len())
    }

    /// Compresses one block to the front of `output`; returns bytes used.
    fn block(&mut self, block: &[u8], output: &mut [u8]) -> Option<usize> {
        let shuffled = &mut self.shuffled[..block.len()];
        match self.sample_bytes {
            1 => transpose::<1>(block, shuffled),
            2 => transpose::<2>(block, shuffled),
            4 => transpose::<4>(block, shuffled),
            _ => transpose::<8>(block, shuffled),
        }
        let (length, output) = output.split_at_mut_checked(LENGTH_BYTES)?;
        let bytes = compress_into_with_table(shuffled, output, &mut self.table).ok()?;
        length.copy_from_slice(&(bytes as u32).to_be_bytes());
        Some(LENGTH_BYTES + bytes)
    }
}

#[cfg(test)]
#[path = "bslz4_tests.rs"]
pub(crate) mod tests;
