//! Alibaba's block traces of 2020: device_id,opcode,offset,length,timestamp; bytes and us.
use crate::batch::{Batch, NO_TIME, RawRecord, TimeBase};
use crate::error::ParseError;
use crate::format::in_bytes;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, separated};

const NAMES: [&str; 5] = ["device_id", "opcode", "offset", "length", "timestamp"];
const TICK_NS: i64 = 1000;

pub(in crate::format) struct Alibaba {
    pub(in crate::format) base: TimeBase,
    pub(in crate::format) unit: Unit,
}

impl LineFormat for Alibaba {
    #[inline]
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = separated::<5>(line, b',');
        if count != 5 || position == 1 {
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
        let offset = in_bytes(number(offset, "offset")?, self.unit);
        let bytes = number(length, "length")?;
        let time_ns = self.base.relative_ns(number(time, "timestamp")?, TICK_NS);
        let (completion_ns, flags) = (NO_TIME, Flags::NONE);
        batch.records.push(RawRecord {
            time_ns,
            completion_ns,
            dispatch_ns: NO_TIME,
            offset,
            bytes,
            position,
            device,
            operation,
            flags,
        });
        Ok(())
    }
}

#[cfg(test)]
#[path = "alibaba_tests.rs"]
mod tests;
