//! HDF5 view of a segment: one group per stream, with datasets in place inside the blocks.
use std::io::{self, Write};

use keepup_measure::sum::Sums;
use keepup_stream::detector_map::is_map;
use keepup_stream::wire::{Compression, ElementType, StreamInfo};

use super::index::{BlockMark, SegmentIndex};
use super::names::link_names;
use crate::hdf5::{
    Attribute, ChunkEntry, Dataset, ElementKind, Filter, Filtered, HdfWriter, Links, Storage, can_be_chunk,
};
use crate::layout::{SECTOR, SUPERBLOCK_SPACE, parse_channel};

/// File offset of the superblock: base of all HDF5 addresses.
pub(super) const BASE: u64 = SUPERBLOCK_SPACE.start as u64;
/// Name of a map without the dimension of the events; see `keepup_stream::detector_map`.
pub(crate) const MAP_DATASET: &str = "map";
/// File offset of the dataset `bytes`.
const BYTES_AT: u64 = SECTOR as u64;

/// Writes the view of a segment with blocks up to `data_bytes`; returns the address of the root
/// group.
pub(super) fn put_view<W: Write>(
    index: &SegmentIndex,
    data_bytes: u64,
    place: &mut HdfWriter<'_, W>,
) -> io::Result<u64> {
    let streams = index.streams();
    let names = link_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())));
    let mut root = Links::default();
    let mut bytes = None;
    let by_stream = index.by_stream();
    for (id, stream) in &streams {
        let Some(name) = names.get(id) else { continue };
        let blocks = by_stream.get(id).map(Vec::as_slice).unwrap_or_default();
        let view = StreamView { index, stream, blocks };
        root.add(name, view.put(place, data_bytes, &mut bytes)?);
    }
    if let Some(bytes) = bytes {
        root.add("bytes", bytes);
    }
    place.put_group(root, &[])
}

struct StreamView<'a> {
    index: &'a SegmentIndex,
    stream: &'a StreamInfo,
    blocks: &'a [&'a BlockMark],
}

impl StreamView<'_> {
    /// Writes the stream's group; returns its address. `bytes` is the dataset of all bytes, once
    /// it exists.
    fn put<W: Write>(
        &self,
        place: &mut HdfWriter<'_, W>,
        data_bytes: u64,
        bytes: &mut Option<u64>,
    ) -> io::Result<u64> {
        let count: u64 = self.blocks.iter().map(|block| u64::from(block.events)).saturating_sum();
        let mut links = Links::default();
        let sequences =
            self.blocks.iter().flat_map(|b| b.first_sequence..b.first_sequence + u64::from(b.events));
        let address = place.put_numbers(count, sequences)?;
        links.add("sequence", place.put_dataset(&numbers(count, address, Vec::new()))?);
        let address = place.put_numbers(count, self.events().map(|(_, event)| event.timestamp_ns))?;
        let unit = Attribute::Text("units", "ns since 1970-01-01T00:00:00Z".into());
        links.add("timestamp", place.put_dataset(&numbers(count, address, vec![unit]))?);
        let valid = Dataset {
            element: ElementKind::U8,
            dimensions: vec![count],
            storage: Storage::Nowhere,
            fill: vec![1],
            attributes: Vec::new(),
        };
        links.add("valid", place.put_dataset(&valid)?);
        let signal = match arrangement(self.stream, self.blocks.iter().copied()) {
            Some(arrangement) => {
                if is_map(&self.stream.name) && count == 1 {
                    links.add(MAP_DATASET, self.put_map(place, &arrangement)?);
                }
                links.add("data", self.put_data(place, count, arrangement)?);
                "data"
            }
            None => {
                if bytes.is_none() {
                    *bytes = Some(place.put_dataset(&all_bytes(data_bytes))?);
                }
                let address = place.put_numbers(count, self.events().map(|(at, _)| at - BYTES_AT))?;
                links.add("offset", place.put_dataset(&numbers(count, address, Vec::new()))?);
                let address =
                    place.put_numbers(count, self.events().map(|(_, event)| event.payload_bytes))?;
                links.add("length", place.put_dataset(&numbers(count, address, Vec::new()))?);
                "length"
            }
        };
        place.put_group(links, &attributes(self.stream, Some(signal)))
    }

    fn events(&self) -> impl Iterator<Item = (u64, super::index::EventMark)> {
        self.blocks.iter().flat_map(|block| self.index.payloads(block))
    }

    /// Writes the only event as a dataset of its own shape.
    fn put_map<W: Write>(
        &self,
        place: &mut HdfWriter<'_, W>,
        Arrangement { shape, filter }: &Arrangement<'_>,
    ) -> io::Result<u64> {
        let chunk = |(at, event): (u64, super::index::EventMark)| ChunkEntry {
            address: at - BASE,
            bytes: event.payload_bytes,
        };
        let (filter, filtered) = filter.clone().unzip();
        let index = place.put_chunks(1, self.events().map(chunk), filtered)?;
        place.put_dataset(&Dataset {
            element: ElementKind::of(self.stream.element),
            dimensions: shape.to_vec(),
            storage: Storage::Chunked { chunk: shape.to_vec(), index, filter },
            fill: Vec::new(),
            attributes: Vec::new(),
        })
    }

    fn put_data<W: Write>(
        &self,
        place: &mut HdfWriter<'_, W>,
        count: u64,
        Arrangement { shape, filter }: Arrangement<'_>,
    ) -> io::Result<u64> {
        let chunk = |(at, event): (u64, super::index::EventMark)| ChunkEntry {
            address: at - BASE,
            bytes: event.payload_bytes,
        };
        let (filter, filtered) = filter.unzip();
        let with_first = |first: u64| std::iter::once(first).chain(shape.iter().copied()).collect();
        let storage = match count {
            // HDF5 has no index of zero chunks.
            0 => Storage::Nowhere,
            _ => {
                let index = place.put_chunks(count, self.events().map(chunk), filtered)?;
                Storage::Chunked { chunk: with_first(1), index, filter }
            }
        };
        place.put_dataset(&Dataset {
            element: ElementKind::of(self.stream.element),
            dimensions: with_first(count),
            storage,
            fill: Vec::new(),
            attributes: Vec::new(),
        })
    }
}

/// Whether all events of a stream can be the rows of one dataset.
pub(super) fn is_array(index: &SegmentIndex, stream: u32) -> bool {
    let Some(Ok(info)) = index.channels().get(&stream).map(|c| parse_channel(c.as_slice())) else {
        return false;
    };
    let blocks = index.in_order().iter().filter(|block| block.stream == stream);
    arrangement(&info, blocks).is_some()
}

/// Arrangement of events as chunks.
struct Arrangement<'a> {
    shape: &'a [u64],
    filter: Option<(Filter, Filtered)>,
}

/// Shape and filter, if the events of these blocks can each be a chunk of one dataset.
fn arrangement<'a, 'b>(
    stream: &'a StreamInfo,
    mut blocks: impl Iterator<Item = &'b BlockMark>,
) -> Option<Arrangement<'a>> {
    let (shape, element) = (stream.shape.as_slice(), stream.element);
    let bytes = stream.event_bytes()?;
    if !can_be_chunk(ElementKind::of(element), shape) {
        return None;
    }
    match stream.compression {
        None => {
            let fits = blocks.all(|block| block.event_bytes == (bytes, bytes));
            fits.then_some(Arrangement { shape, filter: None })
        }
        Some(compression) => {
            let filtered = Filtered::new(bytes);
            let range = 1..=filtered.chunk_bytes_max();
            let fits = blocks.all(|b| range.contains(&b.event_bytes.0) && range.contains(&b.event_bytes.1));
            fits.then(|| Arrangement { shape, filter: Some((filter(compression, element), filtered)) })
        }
    }
}

/// Attributes of a stream's group, in segments and in the master.
pub(crate) fn attributes(stream: &StreamInfo, signal: Option<&str>) -> Vec<Attribute> {
    // Programs take the first NXdata for the images.
    let class = if is_map(&stream.name) || signal.is_none() { "NXcollection" } else { "NXdata" };
    let mut attributes = vec![Attribute::Text("NX_class", class.into())];
    attributes.extend(signal.map(|signal| Attribute::Text("signal", signal.into())));
    attributes.push(Attribute::Text("stream_name", stream.name.clone()));
    attributes.push(Attribute::Number("stream_id", stream.id.into()));
    attributes
}

/// HDF5 filter that decompresses what the detector's electronics compressed.
pub(crate) fn filter(compression: Compression, element: ElementType) -> Filter {
    match compression {
        // Version of the plugin, size of an element, size of its blocks (in the data), 2 = LZ4.
        Compression::BitshuffleLz4 => Filter {
            id: 32008,
            name: "bitshuffle; see https://github.com/kiyo-masui/bitshuffle",
            parameters: vec![0, 5, element.bytes() as u32, 0, 2],
        },
        // Size of its blocks (in the data).
        Compression::Lz4 => Filter { id: 32004, name: "lz4", parameters: vec![0] },
    }
}

fn numbers(count: u64, address: u64, attributes: Vec<Attribute>) -> Dataset {
    let storage = if count == 0 { Storage::Nowhere } else { Storage::Contiguous { address } };
    Dataset { element: ElementKind::U64, dimensions: vec![count], storage, fill: Vec::new(), attributes }
}

fn all_bytes(data_bytes: u64) -> Dataset {
    Dataset {
        element: ElementKind::U8,
        dimensions: vec![data_bytes - BYTES_AT],
        storage: Storage::Contiguous { address: BYTES_AT - BASE },
        fill: Vec::new(),
        attributes: Vec::new(),
    }
}
