//! Index of a chunked dataset: a paged fixed array, so that readers load only the pages they
//! need.
use std::io::{self, Write};

use super::HdfWriter;
use super::checksum::sealed;

/// Entries of a page: 2^10, as the HDF5 library chooses. With more entries than that the array is paged.
pub(super) const PAGE_BITS: u8 = 10;
const PAGE_ENTRIES: u64 = 1 << PAGE_BITS;
/// Signature, version, client, entry size, page bits, number of entries, address of the data block,
/// checksum.
const HEADER_BYTES: u64 = 28;
const CHECKSUM_BYTES: u64 = 4;

/// Location of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    /// Its address.
    pub(crate) address: u64,
    /// Length in the file; used only for filtered chunks.
    pub(crate) bytes: u64,
}

/// Encoding of chunks that went through a filter and have individual lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filtered {
    /// Size of a chunk's length field in the index, bytes.
    length_bytes: usize,
}

impl Filtered {
    /// For chunks of `chunk_bytes` before the filter.
    pub(crate) fn new(chunk_bytes: u64) -> Self {
        // As H5D_FARRAY_FILT_COMPUTE_CHUNK_SIZE_LEN in the library: reserves space for a filter
        // that makes chunks longer.
        let log = chunk_bytes.max(1).ilog2() as usize;
        Self { length_bytes: (1 + (log + 8) / 8).min(8) }
    }

    /// Longest chunk that the index can describe, in bytes.
    pub(crate) fn chunk_bytes_max(self) -> u64 {
        u64::MAX >> (64 - 8 * self.length_bytes)
    }
}

/// Writes the index of `count` chunks; returns its address.
pub(super) fn put_index<W: Write>(
    place: &mut HdfWriter<'_, W>,
    count: u64,
    mut chunks: impl Iterator<Item = ChunkEntry>,
    filtered: Option<Filtered>,
) -> io::Result<u64> {
    let (client, entry_bytes) = filtered.map_or((0, 8), |f| (1, 8 + f.length_bytes as u8 + 4));
    let header_at = place.at;
    let mut header = b"FAHD".to_vec();
    header.extend_from_slice(&[0, client, entry_bytes, PAGE_BITS]);
    header.extend_from_slice(&count.to_le_bytes());
    header.extend_from_slice(&(header_at + HEADER_BYTES).to_le_bytes());
    place.put(&sealed(header))?;
    let mut block = b"FADB".to_vec();
    block.extend_from_slice(&[0, client]);
    block.extend_from_slice(&header_at.to_le_bytes());
    if count <= PAGE_ENTRIES {
        chunks.for_each(|chunk| put_entry(&mut block, chunk, filtered));
        place.put(&sealed(block))?;
        return Ok(header_at);
    }
    let pages = count.div_ceil(PAGE_ENTRIES);
    block.extend_from_slice(&pages_in_use(pages));
    place.put(&sealed(block))?;
    if place.skip(count * u64::from(entry_bytes) + pages * CHECKSUM_BYTES) {
        return Ok(header_at);
    }
    let page_bytes = PAGE_ENTRIES as usize * usize::from(entry_bytes);
    let mut page = Vec::with_capacity(page_bytes + CHECKSUM_BYTES as usize);
    chunks.try_for_each(|chunk| {
        put_entry(&mut page, chunk, filtered);
        if page.len() < page_bytes { Ok(()) } else { put_page(place, &mut page) }
    })?;
    if !page.is_empty() {
        put_page(place, &mut page)?;
    }
    Ok(header_at)
}

/// Writes a page with its checksum, and empties it.
fn put_page<W: Write>(place: &mut HdfWriter<'_, W>, page: &mut Vec<u8>) -> io::Result<()> {
    *page = sealed(std::mem::take(page));
    place.put(page)?;
    page.clear();
    Ok(())
}

/// One bit for each page; the first page is the highest bit of the first byte.
fn pages_in_use(pages: u64) -> Vec<u8> {
    let mut bits = vec![0xFF; (pages / 8) as usize];
    if !pages.is_multiple_of(8) {
        bits.push(0xFF << (8 - pages % 8));
    }
    bits
}

fn put_entry(out: &mut Vec<u8>, chunk: ChunkEntry, filtered: Option<Filtered>) {
    out.extend_from_slice(&chunk.address.to_le_bytes());
    if let Some(Filtered { length_bytes }) = filtered {
        out.extend_from_slice(&chunk.bytes.to_le_bytes()[..length_bytes]);
        // Filter mask: no filter was skipped.
        out.extend_from_slice(&[0; 4]);
    }
}
