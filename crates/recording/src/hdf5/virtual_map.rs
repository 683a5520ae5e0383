//! Maps of virtual datasets, stored in global heaps.
use std::io::{self, Write};

use super::checksum::sealed;
use super::selection::Selection;
use super::{HdfWriter, UNDEFINED};

/// Smallest global heap collection.
const COLLECTION_BYTES_MIN: u64 = 4096;
/// A usual mapping.
const MAPPING_BYTES: usize = 256;
/// Bytes of objects from which on a collection takes no more.
const COLLECTION_BYTES: usize = 64 << 10;
const COLLECTION_HEADER: u64 = 16;
const OBJECT_HEADER: u64 = 16;

/// Rows of a dataset in another file, and their rows in the virtual dataset.
#[derive(Clone, Debug)]
pub(crate) struct Mapping<'a> {
    /// The other file, relative to the directory of the file with the map.
    pub(crate) file: &'a str,
    /// Dataset in that file.
    pub(crate) dataset: &'a str,
    /// Source rows.
    pub(crate) from: Selection<'a>,
    /// Destination rows, equally many.
    pub(crate) to: Selection<'a>,
}

/// Maps of virtual datasets that share a global heap: it has a smallest size, and many maps are far below it.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    /// Objects of the heap, each with its header.
    objects: Vec<u8>,
    count: u16,
}

impl Maps {
    /// Adds a map; returns the number of its object.
    pub(crate) fn add<'m>(&mut self, maps: impl ExactSizeIterator<Item = Mapping<'m>>) -> u16 {
        // Version 0, then the number of mappings.
        let mut block = Vec::with_capacity(maps.len() * MAPPING_BYTES);
        block.push(0);
        block.extend_from_slice(&(maps.len() as u64).to_le_bytes());
        for map in maps {
            for name in [map.file, map.dataset] {
                block.extend_from_slice(source_name(name).as_bytes());
                block.push(0);
            }
            map.from.put(&mut block);
            map.to.put(&mut block);
        }
        let block = sealed(block);
        let padding = block.len().next_multiple_of(8) - block.len();
        self.count += 1;
        self.objects.extend_from_slice(&object_header(self.count, 1, block.len() as u64));
        self.objects.extend_from_slice(&block);
        self.objects.extend_from_slice(&[0; 8][..padding]);
        self.count
    }

    /// Whether its heap is large enough: a reader of one map reads it whole.
    pub(crate) fn is_full(&self) -> bool {
        self.objects.len() >= COLLECTION_BYTES || self.count >= u16::MAX / 2
    }
}

impl<W: Write> HdfWriter<'_, W> {
    /// Writes a global heap with these maps, if there are any; returns its address.
    pub(crate) fn put_maps(&mut self, maps: &Maps) -> io::Result<u64> {
        if maps.count == 0 {
            return Ok(UNDEFINED);
        }
        let used = COLLECTION_HEADER + maps.objects.len() as u64;
        let total = (used + OBJECT_HEADER).max(COLLECTION_BYTES_MIN);
        let mut opening = b"GCOL\x01\0\0\0".to_vec();
        opening.extend_from_slice(&total.to_le_bytes());
        let at = self.put(&opening)?;
        self.put(&maps.objects)?;
        // Object 0 is the free space, including its own header.
        self.put(&object_header(0, 0, total - used))?;
        let free = (total - used - OBJECT_HEADER) as usize;
        self.put(&vec![0; free])?;
        Ok(at)
    }
}

/// A name as the source of a virtual dataset: HDF5 replaces `%b` by a number there, and `%%` by `%`.
fn source_name(name: &str) -> String {
    name.replace('%', "%%")
}

fn object_header(index: u16, references: u16, bytes: u64) -> Vec<u8> {
    let mut out = index.to_le_bytes().to_vec();
    out.extend_from_slice(&references.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&bytes.to_le_bytes());
    out
}
