//! A part of a block as a block of its own, where an export leaves out events that another recording has.
use std::fs::File;
use std::io;

use crate::crc::crc32;
use crate::files::read_fully_at;
use crate::layout::{
    BlockHeader, CHUNK_START, ChannelBytes, LayoutError, SECTOR, block_bytes, parse_block_sector,
    parse_channel, parse_message_header, put_block_sector, put_block_tail,
};
use crate::seal::BlockPart;

/// Reads the events of `part` from a segment and writes them as a block.
pub(super) fn block_of(file: &File, part: &BlockPart) -> io::Result<Vec<u8>> {
    let mut sector = [0; SECTOR];
    let read = read_fully_at(file, &mut sector, part.offset)?;
    let invalid = |error: LayoutError| io::Error::new(io::ErrorKind::InvalidData, error);
    let found = parse_block_sector(&sector[..read]).map_err(invalid)?;
    let stream = parse_channel(&sector[found.channel.clone()]).map_err(invalid)?;
    let channel = ChannelBytes::new(&stream).map_err(invalid)?;
    let end = part.skipped_bytes.checked_add(part.records_bytes);
    if end.is_none_or(|end| end > found.header.chunk_records_bytes) {
        return Err(changed());
    }
    // The segment was read before: its block has this length.
    let mut block = vec![0; block_bytes(part.records_bytes) as usize];
    let records = &mut block[CHUNK_START..][..part.records_bytes as usize];
    let at = part.offset + CHUNK_START as u64 + part.skipped_bytes;
    if read_fully_at(file, records, at)? < records.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let first = parse_message_header(records).map(|message| message.sequence);
    if first != Some(part.first_sequence as u32) {
        return Err(changed());
    }
    let header = BlockHeader {
        first_sequence: part.first_sequence,
        event_count: part.events,
        first_timestamp_ns: part.first_timestamp_ns,
        last_timestamp_ns: part.last_timestamp_ns,
        chunk_records_bytes: part.records_bytes,
        payload_bytes: part.payload_bytes,
        chunk_crc: crc32(records),
        flags: if part.skipped_bytes == 0 { found.header.flags } else { 0 },
        ..found.header
    };
    put_block_tail(&mut block[CHUNK_START + part.records_bytes as usize..]);
    put_block_sector(&mut block, &header, &channel);
    Ok(block)
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a block has changed since it was checked")
}
