//! Assembles the tail of a segment.
use std::io::{self, Write};

use super::index::SegmentIndex;
use super::lookup::{Locator, put_lookup};
use super::mcap::{Metadata, data_end, put_message_indexes, record, summary};
use super::view::{BASE, put_view};
use crate::hdf5::{HdfWriter, superblock};
use crate::layout::RECORD_HEADER;

const OP_HDF5: u8 = 0x83;
const OP_LOOKUP: u8 = 0x84;
const OP_LOCATOR: u8 = 0x85;

/// Result of writing a tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Its length.
    pub(crate) bytes: u64,
    /// Superblock that makes the file HDF5.
    pub(crate) superblock: Vec<u8>,
}

/// Writer that counts bytes.
struct CountingWriter<'a, W> {
    out: &'a mut W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the tail of a segment with the blocks of `index`, which end at `data_bytes`.
pub(crate) fn put_tail<W: Write>(index: &SegmentIndex, data_bytes: u64, out: &mut W) -> io::Result<Tail> {
    put_tail_with(index, None, data_bytes, out)
}

/// The same with a metadata record, for a file that is no segment.
pub(crate) fn put_tail_with<W: Write>(
    index: &SegmentIndex,
    metadata: Option<&Metadata>,
    data_bytes: u64,
    out: &mut W,
) -> io::Result<Tail> {
    let mut out = CountingWriter { out, bytes: 0 };
    let places = put_message_indexes(index, data_bytes, &mut out)?;
    // Channels of the others are in their blocks.
    for channel in index.channels_without_blocks() {
        out.write_all(channel.as_slice())?;
    }
    let metadata = metadata.map(|metadata| metadata.at(data_bytes + out.bytes));
    if let Some((metadata, _)) = &metadata {
        out.write_all(metadata)?;
    }
    let lookup = record(OP_LOOKUP, &put_lookup(index));
    let lookup_at = data_bytes + out.bytes + RECORD_HEADER as u64;
    out.write_all(&lookup)?;
    let view_at = data_bytes + out.bytes + RECORD_HEADER as u64;
    // A record starts with its length.
    let mut measure = HdfWriter::<io::Sink>::measure(view_at - BASE);
    put_view(index, data_bytes, &mut measure)?;
    let view_bytes = measure.at + BASE - view_at;
    out.write_all(&[OP_HDF5])?;
    out.write_all(&view_bytes.to_le_bytes())?;
    let root = put_view(index, data_bytes, &mut HdfWriter::new(&mut out, view_at - BASE))?;
    let lookup_bytes = (lookup.len() - RECORD_HEADER) as u64;
    let locator = Locator { data_bytes, lookup_at, lookup_bytes };
    out.write_all(&record(OP_LOCATOR, &locator.to_bytes()))?;
    out.write_all(&data_end())?;
    let metadata_index = metadata.map(|(_, index)| index);
    let summary = summary(index, &places, metadata_index.as_deref(), data_bytes + out.bytes);
    out.write_all(&summary)?;
    let bytes = out.bytes;
    Ok(Tail { bytes, superblock: superblock(BASE, root, data_bytes + bytes) })
}
