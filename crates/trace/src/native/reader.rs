//! Reader of the native format.
use std::io::Read;

use crc32fast::Hasher;
use serde::de::DeserializeOwned;

use super::{
    COVERED_BYTES, DEVICE, FRAME_BYTES, FRAME_RECORDS_MAX, HEADER_BYTES, MAGIC, RECORD_BYTES, RECORDS, TAIL,
    TEXT_BYTES_MAX, Tail, VERSION, decode,
};
use crate::batch::{Batch, NO_TIME, RawRecord, Reader};
use crate::error::{FilePosition, ParseError, ReadError};
use crate::header::{Corrections, TraceDevice, TraceHeader};
use crate::record::{Operation, Record};
use crate::text::read_some;

const CUT: &str = "the trace is truncated";
const COPY: &str = "copy the file again, or repeat the conversion or the capture";

/// Reader of frames.
pub(crate) struct NativeReader<R> {
    reader: R,
    /// Offset of the next frame, bytes.
    offset: u64,
    records: u64,
    devices: usize,
    last_ns: u64,
    frame: Vec<u8>,
    is_ended: bool,
}

/// Reads the header, and returns it with a reader of the frames.
pub(crate) fn open<R: Read>(mut reader: R) -> Result<(TraceHeader, NativeReader<R>), ReadError> {
    let at = |error: ParseError| error.help(COPY).at(FilePosition::Byte(0));
    let mut bytes = vec![0; HEADER_BYTES];
    if fill(&mut reader, &mut bytes)? < HEADER_BYTES {
        return Err(at(ParseError::new(CUT)));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(at(ParseError::new("not a trace in keepup's native format")));
    }
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (version, length) = (word(8), word(12) as usize);
    if version != VERSION {
        let what = format!("format version {version} is not supported, only {VERSION}");
        return Err(ParseError::new(what)
            .help("use the version of keepup that wrote it")
            .at(FilePosition::Byte(8)));
    }
    if length > TEXT_BYTES_MAX {
        return Err(at(ParseError::new(format!("a header of {length} bytes exceeds {TEXT_BYTES_MAX}"))));
    }
    let whole = HEADER_BYTES + length + 4;
    bytes.resize(whole, 0);
    if fill(&mut reader, &mut bytes[HEADER_BYTES..])? < length + 4 {
        return Err(at(ParseError::new(CUT)));
    }
    let (covered, crc) = bytes.split_at(whole - 4);
    if checksum(&[covered]).to_le_bytes() != *crc {
        return Err(at(ParseError::new("checksum mismatch in the header")));
    }
    let header =
        parse(&covered[HEADER_BYTES..]).map_err(|c| c.at(FilePosition::Byte(HEADER_BYTES as u64)))?;
    let (offset, frame) = (whole as u64, Vec::new());
    let reader = NativeReader { reader, offset, records: 0, devices: 0, last_ns: 0, frame, is_ended: false };
    Ok((header, reader))
}

impl<R: Read + Send> Reader for NativeReader<R> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        if !self.is_ended {
            let start = self.offset;
            self.frame(batch).map_err(|error| match error {
                Ok(error) => error,
                Err(error) => error.help(COPY).at(FilePosition::Byte(start)),
            })?;
        }
        Ok(!self.is_ended)
    }

    fn has_lines(&self) -> bool {
        false
    }
}

impl<R: Read> NativeReader<R> {
    /// Reads a frame. An error is either one of the system or one in this frame.
    fn frame(&mut self, batch: &mut Batch) -> Result<(), Result<ReadError, ParseError>> {
        let mut head = [0; FRAME_BYTES];
        if fill(&mut self.reader, &mut head).map_err(Ok)? < FRAME_BYTES {
            return Err(Err(ParseError::new(CUT)));
        }
        let kind = [head[0], head[1], head[2], head[3]];
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if length > FRAME_RECORDS_MAX * RECORD_BYTES {
            return Err(Err(ParseError::new(format!(
                "a frame length of {length} bytes exceeds the maximum"
            ))));
        }
        self.frame.resize(length, 0);
        if fill(&mut self.reader, &mut self.frame).map_err(Ok)? < length {
            return Err(Err(ParseError::new(CUT)));
        }
        if checksum(&[&head[..COVERED_BYTES], &self.frame]).to_le_bytes() != head[COVERED_BYTES..] {
            return Err(Err(ParseError::new("checksum mismatch in a frame")));
        }
        let mut before = [0; 8];
        before.copy_from_slice(&head[8..16]);
        if u64::from_le_bytes(before) != self.records {
            let expected = self.records;
            let what = format!("a frame is missing or duplicated: its record number is not {expected}");
            return Err(Err(ParseError::new(what)));
        }
        let start = self.offset + FRAME_BYTES as u64;
        self.offset = start + length as u64;
        match kind {
            RECORDS => self.take_records(start, batch).map_err(Ok),
            DEVICE => self.take_device(batch).map_err(Err),
            TAIL => self.take_tail(batch),
            _ => Err(Err(ParseError::new("unknown kind of frame"))),
        }
    }

    fn take_records(&mut self, start: u64, batch: &mut Batch) -> Result<(), ReadError> {
        let wrong = |position| {
            let what = "invalid record: a device, time or number is out of range";
            ParseError::new(what).at(FilePosition::Byte(position))
        };
        let (records, rest) = self.frame.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(wrong(start));
        }
        batch.records.reserve(records.len());
        for (number, bytes) in records.iter().enumerate() {
            let position = start + (number * RECORD_BYTES) as u64;
            let record = decode(bytes).filter(|record| is_in_order(record, self.last_ns, self.devices));
            let Some(record) = record else { return Err(wrong(position)) };
            self.last_ns = record.issue_ns;
            batch.records.push(RawRecord {
                time_ns: record.issue_ns as i64,
                completion_ns: record.completion_ns().map_or(NO_TIME, |ns| ns as i64),
                dispatch_ns: NO_TIME,
                offset: record.offset,
                bytes: u64::from(record.bytes),
                position,
                device: record.device,
                operation: record.operation,
                flags: record.flags,
            });
        }
        self.records += records.len() as u64;
        Ok(())
    }

    fn take_device(&mut self, batch: &mut Batch) -> Result<(), ParseError> {
        let device: TraceDevice = parse(&self.frame)?;
        batch.add_device(device)?;
        self.devices += 1;
        Ok(())
    }

    fn take_tail(&mut self, batch: &mut Batch) -> Result<(), Result<ReadError, ParseError>> {
        let tail: Tail = parse(&self.frame).map_err(Err)?;
        if tail.records != self.records {
            let what = format!("{} records instead of the {} in the tail", self.records, tail.records);
            return Err(Err(ParseError::new(what)));
        }
        if fill(&mut self.reader, &mut [0]).map_err(Ok)? > 0 {
            return Err(Err(ParseError::new("data follows the end of the trace")));
        }
        // Duplicate times are counted again while sorting.
        batch.corrections.add(&Corrections { duplicate_times: 0, ..tail.corrections });
        self.is_ended = true;
        Ok(())
    }
}

/// Whether a record is valid after one at `last_ns`.
#[inline]
fn is_in_order(record: &Record, last_ns: u64, devices: usize) -> bool {
    const FAR_NS: u64 = i64::MAX as u64;
    let completed = record.completion_ns().is_none_or(|ns| (record.issue_ns..=FAR_NS).contains(&ns));
    let has_size = record.bytes > 0 || record.operation == Operation::Flush;
    (last_ns..=FAR_NS).contains(&record.issue_ns)
        && completed
        && has_size
        && usize::from(record.device) < devices
}

/// Fills `bytes`, except at the end of the file.
fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<usize, ReadError> {
    let mut done = 0;
    while done < bytes.len() {
        match read_some(reader, &mut bytes[done..]).map_err(|e| ReadError::Io(0, e))? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut crc = Hasher::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.finalize()
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ParseError> {
    serde_json::from_slice(text).map_err(|e| ParseError::new(format!("invalid JSON: {e}")))
}
