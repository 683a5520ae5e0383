//! Reads the native format, frame by frame.
use std::io::Read;

use crc32fast::Hasher;
use serde::de::DeserializeOwned;

use super::{
    COVERED_BYTES, DEVICE, FRAME_BYTES, FRAME_RECORDS_MAX, HEADER_BYTES, MAGIC, RECORD_BYTES, RECORDS, TAIL,
    TEXT_BYTES_MAX, Tail, VERSION, decode,
};
use crate::batch::{Batch, NO_TIME, Raw, Reader};
use crate::error::{Complaint, Fault, Place};
use crate::header::{Corrections, TraceDevice, TraceHeader};
use crate::record::{Operation, Record};
use crate::text::read_some;

const CUT: &str = "the file ends before the trace does: it was cut off, or its writer was stopped";
const COPY: &str = "copy the file again, or convert the trace again";

/// Reads frames.
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

/// Reads the header; the rest is for the reader.
pub(crate) fn open<R: Read>(mut reader: R) -> Result<(TraceHeader, NativeReader<R>), Fault> {
    let at = |complaint: Complaint| complaint.help(COPY).at(Place::Byte(0));
    let mut bytes = vec![0; HEADER_BYTES];
    if fill(&mut reader, &mut bytes)? < HEADER_BYTES {
        return Err(at(Complaint::new(CUT)));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(at(Complaint::new("this is no trace of keepup's own format")));
    }
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (version, length) = (word(8), word(12) as usize);
    if version != VERSION {
        let what = format!("version {version} of the format; {VERSION} is known");
        return Err(Complaint::new(what).help("use the keepup that wrote it").at(Place::Byte(8)));
    }
    if length > TEXT_BYTES_MAX {
        return Err(at(Complaint::new(format!("a header of {length} bytes, above {TEXT_BYTES_MAX}"))));
    }
    let whole = HEADER_BYTES + length + 4;
    bytes.resize(whole, 0);
    if fill(&mut reader, &mut bytes[HEADER_BYTES..])? < length + 4 {
        return Err(at(Complaint::new(CUT)));
    }
    let (covered, crc) = bytes.split_at(whole - 4);
    if checksum(&[covered]).to_le_bytes() != *crc {
        return Err(at(Complaint::new("the header is damaged: its checksum is not that of its bytes")));
    }
    let header = parse(&covered[HEADER_BYTES..]).map_err(|c| c.at(Place::Byte(HEADER_BYTES as u64)))?;
    let (offset, frame) = (whole as u64, Vec::new());
    let reader = NativeReader { reader, offset, records: 0, devices: 0, last_ns: 0, frame, is_ended: false };
    Ok((header, reader))
}

impl<R: Read + Send> Reader for NativeReader<R> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, Fault> {
        if !self.is_ended {
            let start = self.offset;
            self.frame(batch).map_err(|fault| match fault {
                Ok(fault) => fault,
                Err(complaint) => complaint.help(COPY).at(Place::Byte(start)),
            })?;
        }
        Ok(!self.is_ended)
    }

    fn has_lines(&self) -> bool {
        false
    }
}

impl<R: Read> NativeReader<R> {
    /// Reads a frame; an error is one of the system, or a complaint about this frame.
    fn frame(&mut self, batch: &mut Batch) -> Result<(), Result<Fault, Complaint>> {
        let mut head = [0; FRAME_BYTES];
        if fill(&mut self.reader, &mut head).map_err(Ok)? < FRAME_BYTES {
            return Err(Err(Complaint::new(CUT)));
        }
        let kind = [head[0], head[1], head[2], head[3]];
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if length > FRAME_RECORDS_MAX * RECORD_BYTES {
            return Err(Err(Complaint::new(format!("a frame of {length} bytes, which none has"))));
        }
        self.frame.resize(length, 0);
        if fill(&mut self.reader, &mut self.frame).map_err(Ok)? < length {
            return Err(Err(Complaint::new(CUT)));
        }
        if checksum(&[&head[..COVERED_BYTES], &self.frame]).to_le_bytes() != head[COVERED_BYTES..] {
            let what = "the frame is damaged: its checksum is not that of its bytes";
            return Err(Err(Complaint::new(what)));
        }
        let mut before = [0; 8];
        before.copy_from_slice(&head[8..16]);
        if u64::from_le_bytes(before) != self.records {
            let what = format!("a frame behind {} records says otherwise: one is missing", self.records);
            return Err(Err(Complaint::new(what)));
        }
        let start = self.offset + FRAME_BYTES as u64;
        self.offset = start + length as u64;
        match kind {
            RECORDS => self.take_records(start, batch).map_err(Ok),
            DEVICE => self.take_device(batch).map_err(Err),
            TAIL => self.take_tail(batch),
            _ => Err(Err(Complaint::new("a frame of a kind that is not known"))),
        }
    }

    fn take_records(&mut self, start: u64, batch: &mut Batch) -> Result<(), Fault> {
        let wrong = |place| {
            let what = "a record that keepup does not write: a device, a time or a number is out of range";
            Complaint::new(what).at(Place::Byte(place))
        };
        let (records, rest) = self.frame.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(wrong(start));
        }
        batch.records.reserve(records.len());
        for (number, bytes) in records.iter().enumerate() {
            let place = start + (number * RECORD_BYTES) as u64;
            let record = decode(bytes).filter(|record| is_in_order(record, self.last_ns, self.devices));
            let Some(record) = record else { return Err(wrong(place)) };
            self.last_ns = record.issue_ns;
            batch.records.push(Raw {
                time_ns: record.issue_ns as i64,
                completion_ns: record.completion_ns().map_or(NO_TIME, |ns| ns as i64),
                offset: record.offset,
                bytes: u64::from(record.bytes),
                place,
                device: record.device,
                operation: record.operation,
                flags: record.flags,
            });
        }
        self.records += records.len() as u64;
        Ok(())
    }

    fn take_device(&mut self, batch: &mut Batch) -> Result<(), Complaint> {
        let device: TraceDevice = parse(&self.frame)?;
        batch.add_device(device)?;
        self.devices += 1;
        Ok(())
    }

    fn take_tail(&mut self, batch: &mut Batch) -> Result<(), Result<Fault, Complaint>> {
        let tail: Tail = parse(&self.frame).map_err(Err)?;
        if tail.records != self.records {
            let what = format!("the tail counts {} records, and there are {}", tail.records, self.records);
            return Err(Err(Complaint::new(what)));
        }
        if fill(&mut self.reader, &mut [0]).map_err(Ok)? > 0 {
            return Err(Err(Complaint::new("something follows the end of the trace")));
        }
        // Still in the requests, and counted from them.
        batch.corrections.add(&Corrections { duplicate_times: 0, ..tail.corrections });
        self.is_ended = true;
        Ok(())
    }
}

/// Whether a record is one that may follow a record of `last_ns`.
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

/// Reads as much as fits, less only at the end.
fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<usize, Fault> {
    let mut done = 0;
    while done < bytes.len() {
        match read_some(reader, &mut bytes[done..]).map_err(|e| Fault::Io(0, e))? {
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

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Complaint> {
    serde_json::from_slice(text).map_err(|e| Complaint::new(format!("its text is not as it should be: {e}")))
}
