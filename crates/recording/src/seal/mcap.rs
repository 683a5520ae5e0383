//! MCAP records of a segment's tail: message indexes, and the summary that gives readers chunks,
//! topics and times without reading the file (<https://mcap.dev/spec>).
use std::collections::BTreeMap;
use std::io::{self, Write};

use super::index::{BlockMark, SegmentIndex};
use crate::crc::Crc32;
use crate::layout::{CHUNK_AT, CHUNK_START, MCAP_MAGIC, MESSAGE_HEADER, RECORD_HEADER};

const OP_FOOTER: u8 = 0x02;
const OP_MESSAGE_INDEX: u8 = 0x07;
const OP_CHUNK_INDEX: u8 = 0x08;
const OP_STATISTICS: u8 = 0x0B;
const OP_METADATA: u8 = 0x0C;
const OP_METADATA_INDEX: u8 = 0x0D;
const OP_DATA_END: u8 = 0x0F;

/// Length of the data end record.
pub(super) const DATA_END_BYTES: usize = RECORD_HEADER + 4;
/// Length of the footer record and the final magic.
pub(super) const FOOTER_BYTES: usize = RECORD_HEADER + 20 + 8;

/// Location of a block's message index.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexLocation {
    offset: u64,
    bytes: u64,
}

/// A metadata record.
#[derive(Debug)]
pub(crate) struct Metadata {
    name: &'static str,
    record: Vec<u8>,
}

impl Metadata {
    /// Texts by key.
    ///
    /// # Errors
    /// They take more than 4 GiB.
    pub(crate) fn new(name: &'static str, texts: &BTreeMap<String, String>) -> io::Result<Self> {
        let mut map = Vec::new();
        for (key, text) in texts {
            put_text(&mut map, key)?;
            put_text(&mut map, text)?;
        }
        let mut body = Vec::new();
        put_text(&mut body, name)?;
        body.extend_from_slice(&length(&map)?);
        body.extend_from_slice(&map);
        Ok(Self { name, record: record(OP_METADATA, &body) })
    }

    /// The record, and its index record for the summary if it is at the file offset `at`.
    pub(super) fn at(&self, at: u64) -> (&[u8], Vec<u8>) {
        let mut body = at.to_le_bytes().to_vec();
        body.extend_from_slice(&(self.record.len() as u64).to_le_bytes());
        body.extend_from_slice(&(self.name.len() as u32).to_le_bytes());
        body.extend_from_slice(self.name.as_bytes());
        (&self.record, record(OP_METADATA_INDEX, &body))
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    out.extend_from_slice(&length(text.as_bytes())?);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Length of a text or map, as in a record.
fn length(bytes: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(bytes.len());
    Ok(length.map_err(|_| io::Error::other("metadata of more than 4 GiB"))?.to_le_bytes())
}

/// An MCAP record.
pub(super) fn record(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![opcode];
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// Writes the message indexes of all blocks, from the file offset `at` on.
pub(super) fn put_message_indexes<W: Write>(
    index: &SegmentIndex,
    mut at: u64,
    out: &mut W,
) -> io::Result<Vec<IndexLocation>> {
    let mut places = Vec::with_capacity(index.blocks());
    let mut record = Vec::new();
    for block in index.in_order() {
        let entries_bytes = block.events * 16;
        record.clear();
        record.push(OP_MESSAGE_INDEX);
        record.extend_from_slice(&(2 + 4 + u64::from(entries_bytes)).to_le_bytes());
        record.extend_from_slice(&(block.stream as u16).to_le_bytes());
        record.extend_from_slice(&entries_bytes.to_le_bytes());
        // Offsets are relative to the first message record of the chunk.
        let mut within: u64 = 0;
        record.reserve(entries_bytes as usize);
        for event in index.events_of(block) {
            let mut entry = [0; 16];
            entry[..8].copy_from_slice(&event.timestamp_ns.to_le_bytes());
            entry[8..].copy_from_slice(&within.to_le_bytes());
            record.extend_from_slice(&entry);
            within += event.payload_bytes + MESSAGE_HEADER as u64;
        }
        out.write_all(&record)?;
        let bytes = record.len() as u64;
        places.push(IndexLocation { offset: at, bytes });
        at += bytes;
    }
    Ok(places)
}

/// The data end record without a checksum, since every block has one.
pub(super) fn data_end() -> Vec<u8> {
    record(OP_DATA_END, &[0; 4])
}

/// End of an MCAP file without a summary.
pub(super) fn end_without_summary() -> Vec<u8> {
    [data_end(), record(OP_FOOTER, &[0; 20]), MCAP_MAGIC.to_vec()].concat()
}

/// Summary section at the file offset `at`, followed by the footer and the magic. `metadata_index` is the
/// index record of a metadata record.
pub(super) fn summary(
    index: &SegmentIndex,
    places: &[IndexLocation],
    metadata_index: Option<&[u8]>,
    at: u64,
) -> Vec<u8> {
    let mut out = Vec::new();
    for channel in index.channels().values() {
        out.extend_from_slice(channel.as_slice());
    }
    out.extend_from_slice(&record(OP_STATISTICS, &statistics(index, metadata_index.is_some().into())));
    for (block, place) in index.in_order().iter().zip(places) {
        out.extend_from_slice(&record(OP_CHUNK_INDEX, &chunk_index(block, *place)));
    }
    out.extend_from_slice(metadata_index.unwrap_or_default());
    let footer_at = out.len();
    let mut fields = at.to_le_bytes().to_vec();
    // No summary offsets.
    fields.extend_from_slice(&[0; 8]);
    out.push(OP_FOOTER);
    out.extend_from_slice(&20u64.to_le_bytes());
    out.extend_from_slice(&fields);
    let mut crc = Crc32::new();
    crc.update(&out);
    out.extend_from_slice(&crc.value().to_le_bytes());
    out.extend_from_slice(MCAP_MAGIC);
    debug_assert_eq!(out.len() - footer_at, FOOTER_BYTES);
    out
}

fn statistics(index: &SegmentIndex, metadata: u32) -> Vec<u8> {
    let blocks = index.in_order();
    let first = blocks.iter().map(|b| b.first_timestamp_ns).min().unwrap_or(0);
    let last = blocks.iter().map(|b| b.last_timestamp_ns).max().unwrap_or(0);
    let mut counts: BTreeMap<u32, u64> = index.channels().keys().map(|id| (*id, 0)).collect();
    for block in blocks {
        *counts.entry(block.stream).or_default() += u64::from(block.events);
    }
    let mut body = (index.events() as u64).to_le_bytes().to_vec();
    // Schemas, channels, attachments, metadata, chunks.
    body.extend_from_slice(&0u16.to_le_bytes());
    for count in [counts.len() as u32, 0, metadata, blocks.len() as u32] {
        body.extend_from_slice(&count.to_le_bytes());
    }
    body.extend_from_slice(&first.to_le_bytes());
    body.extend_from_slice(&last.to_le_bytes());
    body.extend_from_slice(&(counts.len() as u32 * 10).to_le_bytes());
    for (stream, count) in counts {
        body.extend_from_slice(&(stream as u16).to_le_bytes());
        body.extend_from_slice(&count.to_le_bytes());
    }
    body
}

fn chunk_index(block: &BlockMark, place: IndexLocation) -> Vec<u8> {
    let chunk_header = (CHUNK_START - CHUNK_AT) as u64;
    let mut body = Vec::with_capacity(96);
    for number in [
        block.first_timestamp_ns,
        block.last_timestamp_ns,
        block.offset + CHUNK_AT as u64,
        chunk_header + block.records_bytes,
    ] {
        body.extend_from_slice(&number.to_le_bytes());
    }
    // One channel, and the location of its message index.
    body.extend_from_slice(&10u32.to_le_bytes());
    body.extend_from_slice(&(block.stream as u16).to_le_bytes());
    body.extend_from_slice(&place.offset.to_le_bytes());
    body.extend_from_slice(&place.bytes.to_le_bytes());
    // No compression, so both sizes are the same.
    body.extend_from_slice(&0u32.to_le_bytes());
    body.extend_from_slice(&block.records_bytes.to_le_bytes());
    body.extend_from_slice(&block.records_bytes.to_le_bytes());
    body
}
