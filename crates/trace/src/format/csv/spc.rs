//! SPC trace files, revision 1.0.1, as published by the University of Massachusetts (Financial, WebSearch):
//! ASU,LBA,Size,Opcode,Timestamp, and further fields that are ignored.
//!
//! LBA counts blocks of 512 bytes, Size bytes; Timestamp is in seconds. Lost: the optional fields.
use crate::batch::{Batch, NO_TIME, RawRecord};
use crate::error::ParseError;
use crate::format::in_bytes;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, separated, time_ns};

const NAMES: [&str; 5] = ["ASU", "LBA", "Size", "Opcode", "Timestamp"];
/// Decimal digits of seconds down to ns.
const SECONDS: usize = 9;

pub(in crate::format) struct Spc {
    pub(in crate::format) unit: Unit,
}

impl LineFormat for Spc {
    #[inline]
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = separated::<5>(line, b',');
        if count < 5 || position == 1 {
            if line.is_empty() || super::is_names(line, &NAMES)? {
                return Ok(());
            }
            if count < 5 {
                return Err(super::columns(count, &NAMES));
            }
        }
        let [unit, address, size, code, time] = fields;
        number(unit, "ASU")?;
        let device = batch.device(unit)?;
        let operation = match code {
            b"R" | b"r" => Operation::Read,
            b"W" | b"w" => Operation::Write,
            _ => return Err(bad(code, "Opcode", "R or W")),
        };
        let offset = in_bytes(number(address, "LBA")?, self.unit);
        let bytes = number(size, "Size")?;
        let time_ns = time_ns(time, SECONDS, "Timestamp")?;
        batch.corrections.negative_times += u64::from(time_ns < 0);
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
#[path = "spc_tests.rs"]
mod tests;
