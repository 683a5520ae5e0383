//! Layout of keepup's own trace format.
//!
//! A header, then frames with checksums; the last frame is the tail. `docs/book/trace.md` describes the
//! layout. Invariants: any truncation and any changed byte is detected, because checksums cover everything
//! but themselves and every complete file has a tail; a length is checked before memory is allocated; a
//! written trace reads back unchanged.
mod reader;
mod writer;

use serde::{Deserialize, Serialize};

pub(super) use self::reader::open;
pub use self::writer::NativeWriter;

use super::header::Corrections;
use super::record::{Flags, Operation, Record};

/// Magic bytes at the start of a file.
pub(super) const MAGIC: &[u8; 8] = b"KUTRACE\n";
/// Version of the format.
const VERSION: u32 = 1;
/// Magic, version, length of the JSON text.
const HEADER_BYTES: usize = 16;
/// Kind, length, number of preceding records, checksum.
const FRAME_BYTES: usize = 20;
/// Bytes of a frame's header that the checksum covers, in addition to the payload.
const COVERED_BYTES: usize = 16;
const RECORD_BYTES: usize = 32;
/// Largest number of records in a frame.
const FRAME_RECORDS_MAX: usize = 32_768;
/// Longest JSON text, bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A device, as JSON. Devices are numbered in file order, from 0.
const DEVICE: [u8; 4] = *b"DEVC";
/// Records.
const RECORDS: [u8; 4] = *b"RECS";
/// The tail, as JSON.
const TAIL: [u8; 4] = *b"TAIL";

/// Totals of a complete trace.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    records: u64,
    corrections: Corrections,
}

#[inline]
fn encode(record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&record.issue_ns.to_le_bytes());
    bytes[8..16].copy_from_slice(&record.completion_ns().unwrap_or(u64::MAX).to_le_bytes());
    bytes[16..24].copy_from_slice(&record.offset.to_le_bytes());
    bytes[24..28].copy_from_slice(&record.bytes.to_le_bytes());
    bytes[28..30].copy_from_slice(&record.device.to_le_bytes());
    bytes[30] = record.operation as u8;
    bytes[31] = record.flags.bits();
    bytes
}

/// Decodes a record; `None` if it is invalid.
#[inline]
fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let eight = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let operation = Operation::of_number(bytes[30])?;
    let flags = Flags::of_bits(bytes[31])?;
    let length = u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
    let device = u16::from_le_bytes([bytes[28], bytes[29]]);
    let completion_ns = Some(eight(8)).filter(|ns| *ns != u64::MAX);
    let record = Record::new(eight(0), operation, device, eight(16), length);
    Some(record.completed(completion_ns).flagged(flags))
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
