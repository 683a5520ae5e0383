//! keepup's own format of traces: what lies in the file.
//!
//! A header, then frames, each with its checksum; the last one is the tail. `docs/book/trace.md` has the
//! layout for people without this code. Invariants: any cut and any changed byte is noticed, because
//! checksums cover all but themselves and a file without its tail was cut off; a length is compared with a
//! limit before memory is taken; what the writer wrote the reader gives back.
mod reader;
mod writer;

use serde::{Deserialize, Serialize};

pub(super) use self::reader::open;
pub use self::writer::NativeWriter;

use super::header::Corrections;
use super::record::{Flags, Operation, Record};

/// How a file begins.
pub(super) const MAGIC: &[u8; 8] = b"KUTRACE\n";
/// Version of what follows.
const VERSION: u32 = 1;
/// Magic, version, length of the text.
const HEADER_BYTES: usize = 16;
/// Kind, length, number of records before, checksum.
const FRAME_BYTES: usize = 20;
/// How much of a frame's own fields the checksum covers; the payload follows.
const COVERED_BYTES: usize = 16;
const RECORD_BYTES: usize = 32;
/// Records in a frame, at most.
const FRAME_RECORDS_MAX: usize = 32_768;
/// Length of a text in JSON, at most, bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A device, as JSON; its number is how many came before.
const DEVICE: [u8; 4] = *b"DEVC";
/// Records.
const RECORDS: [u8; 4] = *b"RECS";
/// The end, as JSON.
const TAIL: [u8; 4] = *b"TAIL";

/// What is known of a trace behind its last request.
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

/// The record in these bytes; nothing when no writer would have written it.
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
