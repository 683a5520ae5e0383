//! Alibaba's block traces of 2020: device_id,opcode,offset,length,timestamp; bytes and us.
use super::super::super::batch::{Base, Batch, NO_TIME, Raw};
use super::super::super::error::Complaint;
use super::super::super::header::Unit;
use super::super::super::record::{Flags, Operation};
use super::super::super::text::{LineFormat, bad, number, separated};
use super::super::in_bytes;

const NAMES: [&str; 5] = ["device_id", "opcode", "offset", "length", "timestamp"];
const TICK_NS: i64 = 1000;

pub(in super::super) struct Alibaba {
    pub(in super::super) base: Base,
    pub(in super::super) unit: Unit,
}

impl LineFormat for Alibaba {
    #[inline]
    fn line(&mut self, line: &[u8], place: u64, batch: &mut Batch) -> Result<(), Complaint> {
        let (fields, count) = separated::<5>(line, b',');
        if count != 5 || place == 1 {
            if line.is_empty() || super::is_names(line, &NAMES)? {
                return Ok(());
            }
            if count != 5 {
                return Err(super::columns(count, &NAMES));
            }
        }
        let [device, code, offset, length, time] = fields;
        let device = batch.device(device)?;
        let operation = match code {
            b"R" | b"r" => Operation::Read,
            b"W" | b"w" => Operation::Write,
            _ => return Err(bad(code, "opcode", "R or W")),
        };
        let offset = in_bytes(number(offset, "offset")?, self.unit)?;
        let bytes = number(length, "length")?;
        let time_ns = self.base.relative_ns(number(time, "timestamp")?, TICK_NS);
        let (completion_ns, flags) = (NO_TIME, Flags::NONE);
        batch.records.push(Raw { time_ns, completion_ns, offset, bytes, place, device, operation, flags });
        Ok(())
    }
}

#[cfg(test)]
#[path = "alibaba_tests.rs"]
mod tests;
