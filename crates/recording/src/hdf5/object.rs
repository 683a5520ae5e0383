//! Object headers: datasets and groups.
use std::io::{self, Write};

use super::checksum::sealed;
use super::chunks::{ChunkEntry, Filtered, PAGE_BITS, put_index};
use super::message::{
    ATTRIBUTE, Attribute, DATASPACE, DATATYPE, ElementKind, FILL_VALUE, FILTERS, Filter, LAYOUT, Links,
    MESSAGE_BYTES_MAX, REFERENCE_COUNT, attribute, dataspace, fill_value, filters,
};
use super::{HdfWriter, UNDEFINED};

/// A message that cannot change.
const CONSTANT: u8 = 1;
/// A chunk is shorter than this, in bytes.
const CHUNK_BYTES_LIMIT: u64 = 1 << 32;
/// Most dimensions of a dataset.
const RANK_MAX: usize = 32;

/// Description of a dataset, without its name.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    pub(crate) element: ElementKind,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) storage: Storage,
    /// Value of unallocated elements; zero when empty.
    pub(crate) fill: Vec<u8>,
    pub(crate) attributes: Vec<Attribute>,
}

/// Location of a dataset's bytes.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// Consecutive elements at one address.
    Contiguous { address: u64 },
    /// Not allocated: every element has the fill value.
    Nowhere,
    /// In chunks of the given dimensions, located by an index.
    Chunked { chunk: Vec<u64>, index: u64, filter: Option<Filter> },
    /// In other datasets; the map is this object of the global heap at the address.
    Virtual { heap: u64, object: u16 },
}

/// Whether events of this shape can be chunks of a dataset.
pub(crate) fn can_be_chunk(element: ElementKind, shape: &[u64]) -> bool {
    let bytes = shape.iter().try_fold(u64::from(element.bytes), |bytes, &d| bytes.checked_mul(d));
    shape.len() < RANK_MAX && bytes.is_some_and(|bytes| (1..CHUNK_BYTES_LIMIT).contains(&bytes))
}

impl<W: Write> HdfWriter<'_, W> {
    /// Writes the index of `count` chunks; returns its address.
    pub(crate) fn put_chunks(
        &mut self,
        count: u64,
        chunks: impl Iterator<Item = ChunkEntry>,
        filtered: Option<Filtered>,
    ) -> io::Result<u64> {
        put_index(self, count, chunks, filtered)
    }

    /// Writes a dataset's object header; returns its address.
    pub(crate) fn put_dataset(&mut self, dataset: &Dataset) -> io::Result<u64> {
        self.put_linked_dataset(dataset, 1)
    }

    /// Like [`Self::put_dataset`], for a dataset that this number of links lead to.
    pub(crate) fn put_linked_dataset(&mut self, dataset: &Dataset, links: u32) -> io::Result<u64> {
        let mut messages = vec![
            (DATASPACE, 0, dataspace(&dataset.dimensions)),
            (DATATYPE, CONSTANT, dataset.element.message()),
            (FILL_VALUE, CONSTANT, fill_value((!dataset.fill.is_empty()).then_some(&dataset.fill))),
        ];
        if let Storage::Chunked { filter: Some(filter), .. } = &dataset.storage {
            messages.push((FILTERS, CONSTANT, filters(filter)));
        }
        messages.push((LAYOUT, 0, layout(dataset)));
        messages.extend(dataset.attributes.iter().map(|a| (ATTRIBUTE, 0, attribute(a))));
        if links != 1 {
            // Version 0.
            let count = [&[0], &links.to_le_bytes()[..]].concat();
            messages.push((REFERENCE_COUNT, 0, count));
        }
        self.put_object(messages)
    }

    /// Writes a group's object header; returns its address.
    pub(crate) fn put_group(&mut self, links: Links, attributes: &[Attribute]) -> io::Result<u64> {
        let links = links.messages().map(|(kind, body)| (kind, 0, body));
        let attributes = attributes.iter().map(|a| (ATTRIBUTE, 0, attribute(a)));
        self.put_object(links.chain(attributes).collect())
    }

    fn put_object(&mut self, messages: Vec<(u8, u8, Vec<u8>)>) -> io::Result<u64> {
        let mut body = Vec::new();
        for (kind, flags, message) in messages {
            let length = u16::try_from(message.len())
                .map_err(|_| io::Error::other(format!("a message of more than {MESSAGE_BYTES_MAX} bytes")))?;
            body.push(kind);
            body.extend_from_slice(&length.to_le_bytes());
            body.push(flags);
            body.extend_from_slice(&message);
        }
        // Version 2; the length of the messages takes four bytes.
        let mut out = b"OHDR\x02\x02".to_vec();
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&body);
        self.put(&sealed(out))
    }
}

/// Layout message, version 4.
fn layout(dataset: &Dataset) -> Vec<u8> {
    let contiguous = |address: u64| {
        let element = u64::from(dataset.element.bytes);
        let bytes = dataset.dimensions.iter().fold(element, |bytes, size| bytes.saturating_mul(*size));
        let mut out = vec![4, 1];
        out.extend_from_slice(&address.to_le_bytes());
        out.extend_from_slice(&bytes.to_le_bytes());
        out
    };
    match &dataset.storage {
        Storage::Contiguous { address } => contiguous(*address),
        Storage::Nowhere => contiguous(UNDEFINED),
        Storage::Chunked { chunk, index, .. } => {
            let sizes: Vec<u64> = chunk.iter().copied().chain([dataset.element.bytes.into()]).collect();
            // The library refuses size fields that are wider than necessary.
            let largest = sizes.iter().copied().max().unwrap_or(1);
            let width = (largest.max(1).ilog2() / 8 + 1) as u8;
            let mut out = vec![4, 2, 0, sizes.len() as u8, width];
            for size in sizes {
                out.extend_from_slice(&size.to_le_bytes()[..usize::from(width)]);
            }
            // Index type 3: fixed array.
            out.extend_from_slice(&[3, PAGE_BITS]);
            out.extend_from_slice(&index.to_le_bytes());
            out
        }
        Storage::Virtual { heap, object } => {
            let mut out = vec![4, 3];
            out.extend_from_slice(&heap.to_le_bytes());
            out.extend_from_slice(&u32::from(*object).to_le_bytes());
            out
        }
    }
}
