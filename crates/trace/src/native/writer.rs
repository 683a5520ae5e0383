//! Writer of the native format.
use std::io::{self, Write};

use crc32fast::Hasher;
use serde::Serialize;

use super::{
    DEVICE, FRAME_BYTES, FRAME_RECORDS_MAX, MAGIC, RECORD_BYTES, RECORDS, TAIL, TEXT_BYTES_MAX, Tail,
    VERSION, encode,
};
use crate::header::{Corrections, TraceDevice, TraceHeader};
use crate::record::Record;

/// Writer of a trace. Without [`NativeWriter::finish`] the trace is truncated.
pub struct NativeWriter<W: Write> {
    out: W,
    payload: Vec<u8>,
    /// Records in the written frames.
    records: u64,
    devices: usize,
    last_ns: u64,
}

impl<W: Write> NativeWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// A failed write.
    pub fn new(mut out: W, header: &TraceHeader) -> io::Result<Self> {
        let text = json(header)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&text);
        let mut crc = Hasher::new();
        crc.update(&bytes);
        bytes.extend_from_slice(&crc.finalize().to_le_bytes());
        out.write_all(&bytes)?;
        let payload = Vec::with_capacity(FRAME_RECORDS_MAX * RECORD_BYTES);
        Ok(Self { out, payload, records: 0, devices: 0, last_ns: 0 })
    }

    /// Adds a device. Devices are numbered from 0.
    ///
    /// # Errors
    /// A failed write.
    pub fn device(&mut self, device: &TraceDevice) -> io::Result<()> {
        self.flush_records()?;
        self.devices += 1;
        self.frame(DEVICE, &json(device)?)
    }

    /// Adds a request.
    ///
    /// # Errors
    /// A failed write, or an invalid request: earlier than the previous one, to an unknown device, or
    /// completed before its issue.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        let is_early = record.completion_ns().is_some_and(|ns| ns < record.issue_ns);
        if record.issue_ns < self.last_ns || usize::from(record.device) >= self.devices || is_early {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a request is out of order"));
        }
        self.last_ns = record.issue_ns;
        self.payload.extend_from_slice(&encode(record));
        if self.payload.len() == FRAME_RECORDS_MAX * RECORD_BYTES {
            self.flush_records()?;
        }
        Ok(())
    }

    /// Ends the trace with its corrections, and returns the output.
    ///
    /// # Errors
    /// A failed write.
    pub fn finish(mut self, corrections: &Corrections) -> io::Result<W> {
        self.flush_records()?;
        let tail = Tail { records: self.records, corrections: *corrections };
        self.frame(TAIL, &json(&tail)?)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_records(&mut self) -> io::Result<()> {
        if self.payload.is_empty() {
            return Ok(());
        }
        let payload = std::mem::take(&mut self.payload);
        self.frame(RECORDS, &payload)?;
        self.records += (payload.len() / RECORD_BYTES) as u64;
        self.payload = payload;
        self.payload.clear();
        Ok(())
    }

    fn frame(&mut self, kind: [u8; 4], payload: &[u8]) -> io::Result<()> {
        let mut head = [0; FRAME_BYTES];
        head[..4].copy_from_slice(&kind);
        head[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[8..16].copy_from_slice(&self.records.to_le_bytes());
        let mut crc = Hasher::new();
        crc.update(&head[..super::COVERED_BYTES]);
        crc.update(payload);
        head[16..].copy_from_slice(&crc.finalize().to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(payload)
    }
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec(value)?;
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("a JSON text of {} bytes exceeds {TEXT_BYTES_MAX}", text.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(text)
}
