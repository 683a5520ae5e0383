//! Map of a virtual dataset, stored in a global heap.
use std::io::{self, Write};

use super::HdfWriter;
use super::checksum::sealed;
use super::selection::Selection;

/// Smallest global heap collection.
const COLLECTION_BYTES_MIN: u64 = 4096;
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

impl<W: Write> HdfWriter<'_, W> {
    /// Writes a global heap with the map as its only object; returns its address.
    pub(crate) fn put_map<'m>(
        &mut self,
        count: u64,
        maps: impl Iterator<Item = Mapping<'m>>,
    ) -> io::Result<u64> {
        // Version 0, then the number of mappings.
        let mut block = vec![0];
        block.extend_from_slice(&count.to_le_bytes());
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
        let used = COLLECTION_HEADER + OBJECT_HEADER + (block.len() + padding) as u64;
        let total = (used + OBJECT_HEADER).max(COLLECTION_BYTES_MIN);
        let mut opening = b"GCOL\x01\0\0\0".to_vec();
        opening.extend_from_slice(&total.to_le_bytes());
        opening.extend_from_slice(&object_header(1, 1, block.len() as u64));
        let at = self.put(&opening)?;
        self.put(&block)?;
        self.put(&[0; 8][..padding])?;
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
