//! Lossless compression: bitshuffle, then LZ4, in the layout of HDF5's filter 32008.
//!
//! Layout: size of the samples in bytes (64 bits) and of a block before compression (32 bits),
//! both big-endian; then the blocks, each preceded by its length (32 bits, big-endian). The last
//! block has the remaining samples in a multiple of eight; the fewer than eight that are left
//! follow uncompressed.
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::Kernel;
use super::bitshuffle::{GROUP, transpose};

/// Bytes of one block for all sample types: the default of the library bitshuffle. Readers find
/// it in the header.
const BLOCK_BYTES: usize = 8192;
const HEADER_BYTES: usize = 12;
const LENGTH_BYTES: usize = 4;

/// Largest compressed size of `bytes` of samples.
pub(super) fn bytes_max(bytes: usize, sample_bytes: usize) -> usize {
    let whole = bytes / BLOCK_BYTES;
    let rest = bytes % BLOCK_BYTES;
    let block = |bytes| LENGTH_BYTES + get_maximum_output_size(bytes);
    HEADER_BYTES + whole * block(BLOCK_BYTES) + block(rest) + GROUP * sample_bytes
}

/// Step `lz4`.
pub(super) struct Compress {
    bytes: usize,
    sample_bytes: usize,
    shuffled: Vec<u8>,
    table: CompressTable,
}

impl Compress {
    /// Prepares for events of `bytes` with samples of 1, 2, 4 or 8 bytes.
    pub(super) fn new(bytes: usize, sample_bytes: usize) -> Self {
        Self { bytes, sample_bytes, shuffled: vec![0; BLOCK_BYTES], table: CompressTable::small() }
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

impl Kernel for Compress {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        if event.len() != self.bytes {
            return None;
        }
        let (header, _) = output.split_at_mut_checked(HEADER_BYTES)?;
        header[..8].copy_from_slice(&(event.len() as u64).to_be_bytes());
        header[8..].copy_from_slice(&(BLOCK_BYTES as u32).to_be_bytes());
        let mut at = HEADER_BYTES;
        let grouped = event.len() - event.len() % (GROUP * self.sample_bytes);
        for block in event[..grouped].chunks(BLOCK_BYTES) {
            at += self.block(block, output.get_mut(at..)?)?;
        }
        let rest = &event[grouped..];
        output.get_mut(at..at + rest.len())?.copy_from_slice(rest);
        Some(at + rest.len())
    }
}

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
