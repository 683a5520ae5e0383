//! Encoder for the part of HDF5 that sealing needs: a version 3 superblock, version 2 object
//! headers, contiguous, chunked and virtual datasets, groups and attributes. It does not read
//! HDF5.
//!
//! Source: HDF5 File Format Specification Version 3.0 (The HDF Group). Everything is little
//! endian, addresses and lengths take 8 bytes. Invariant: everything refers only to earlier
//! addresses or to known distances, so a file of any size is written in one pass with bounded
//! memory.
mod checksum;
mod chunks;
mod message;
mod object;
mod selection;
mod virtual_map;

use std::io::{self, Write};

pub(crate) use self::chunks::{ChunkEntry, Filtered};
pub(crate) use self::message::{Attribute, ElementKind, Filter, Links};
pub(crate) use self::object::{Dataset, Storage, can_be_chunk};
pub(crate) use self::selection::Selection;
pub(crate) use self::virtual_map::{Mapping, Maps};

use self::checksum::sealed;

/// Length of a version 3 superblock, bytes.
pub(crate) const SUPERBLOCK_BYTES: usize = 48;
/// "Undefined address".
const UNDEFINED: u64 = u64::MAX;
/// Bytes of numbers that are written together.
const NUMBERS_BYTES: usize = 8192;

/// Output with its current address relative to the superblock.
pub(crate) struct HdfWriter<'a, W> {
    /// `None` if only the length is wanted.
    out: Option<&'a mut W>,
    /// Address of the next byte.
    pub(crate) at: u64,
}

impl<'a, W: Write> HdfWriter<'a, W> {
    /// Writes to `out`; `at` is the address of the next byte (the file offset minus the
    /// superblock's).
    pub(crate) fn new(out: &'a mut W, at: u64) -> Self {
        Self { out: Some(out), at }
    }

    /// A writer that discards everything and only advances its address.
    pub(crate) fn measure(at: u64) -> Self {
        Self { out: None, at }
    }

    /// Writes raw bytes; returns their address.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.at;
        if let Some(out) = &mut self.out {
            out.write_all(bytes)?;
        }
        self.at += bytes.len() as u64;
        Ok(at)
    }

    /// Skips `bytes` if only the length is wanted; whether it did.
    fn skip(&mut self, bytes: u64) -> bool {
        let is_measured = self.out.is_none();
        self.at += if is_measured { bytes } else { 0 };
        is_measured
    }

    /// Writes `count` consecutive 64-bit numbers; returns their address.
    pub(crate) fn put_numbers(
        &mut self,
        count: u64,
        mut numbers: impl Iterator<Item = u64>,
    ) -> io::Result<u64> {
        let at = self.at;
        if self.skip(count * 8) {
            return Ok(at);
        }
        let mut piece = Vec::with_capacity(NUMBERS_BYTES);
        // Nested iterators are much faster from inside than by `next`.
        numbers.try_for_each(|number| {
            piece.extend_from_slice(&number.to_le_bytes());
            if piece.len() < NUMBERS_BYTES {
                return Ok(());
            }
            let written = self.put(&piece).map(drop);
            piece.clear();
            written
        })?;
        self.put(&piece)?;
        Ok(at)
    }
}

/// Superblock at file offset `offset`, with the root group's header at the address `root`, for a
/// file of `file_bytes`.
pub(crate) fn superblock(offset: u64, root: u64, file_bytes: u64) -> Vec<u8> {
    let mut out = b"\x89HDF\r\n\x1a\n".to_vec();
    // Version 3, 8-byte offsets and lengths, no consistency flags.
    out.extend_from_slice(&[3, 8, 8, 0]);
    for number in [offset, UNDEFINED, file_bytes, root] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    sealed(out)
}

/// Whether `bytes` is a superblock at file offset `offset`, of any root and file length.
pub(crate) fn is_superblock(bytes: &[u8], offset: u64) -> bool {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    match (number(FILE_BYTES_AT), number(FILE_BYTES_AT + 8)) {
        (Some(file_bytes), Some(root)) => bytes == superblock(offset, root, file_bytes),
        _ => false,
    }
}

/// Position of the file length in a superblock, followed by the root's address: after the signature, version,
/// sizes and flags, the base address and the extension's.
const FILE_BYTES_AT: usize = 28;

#[cfg(test)]
#[path = "hdf5_tests.rs"]
mod tests;
