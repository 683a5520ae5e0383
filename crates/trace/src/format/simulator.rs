//! Text traces of the simulators MQSim and DiskSim: time, device, address, size, type; addresses and sizes in
//! sectors of 512 bytes.
//!
//! MQSim (README, "ASCII trace files"): integers; type 0 is a write, 1 a read; its configuration defines
//! the unit of time, ns by default. DiskSim (manual 4.0, "ascii"): decimal ms; hexadecimal flags, of
//! which bit 0 is a read. Both formats look the same, and 0 and 1 have the same meaning.
use super::{TimeUnit, in_bytes};
use crate::batch::{Batch, NO_TIME, RawRecord, TimeBase};
use crate::error::ParseError;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, time_ns, words};

const COLUMNS: &str = "time, device, address, size, type";

/// Parser of MQSim's lines.
pub(super) struct Mqsim {
    pub(super) base: TimeBase,
    pub(super) unit: Unit,
    pub(super) time_unit: TimeUnit,
}

/// Parser of DiskSim's lines.
pub(super) struct Disksim {
    pub(super) unit: Unit,
    pub(super) time_unit: TimeUnit,
}

impl LineFormat for Mqsim {
    #[inline]
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = words::<5>(line);
        if count == 0 {
            return Ok(());
        }
        let ticks = number(fields[0], "time")?;
        let time_ns = self.base.relative_ns(ticks, self.time_unit.ns());
        let operation = match fields[4] {
            b"0" => Operation::Write,
            b"1" => Operation::Read,
            other => return Err(kind(other, count, "0 (write) or 1 (read)")),
        };
        add(batch, (time_ns, position), (operation, self.unit), (&fields, count))
    }
}

impl LineFormat for Disksim {
    #[inline]
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = words::<5>(line);
        if count == 0 {
            return Ok(());
        }
        let time_ns = time_ns(fields[0], self.time_unit.places(), "time")?;
        batch.corrections.negative_times += u64::from(time_ns < 0);
        let flags = std::str::from_utf8(fields[4]).ok().filter(|text| !text.starts_with('+'));
        let flags = flags.and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        let Some(flags) = flags else { return Err(kind(fields[4], count, "hexadecimal flags")) };
        let operation = if flags & 1 == 1 { Operation::Read } else { Operation::Write };
        add(batch, (time_ns, position), (operation, self.unit), (&fields, count))
    }
}

#[inline]
fn add(
    batch: &mut Batch,
    (time_ns, position): (i64, u64),
    (operation, unit): (Operation, Unit),
    (fields, count): (&[&[u8]; 5], usize),
) -> Result<(), ParseError> {
    if count != 5 {
        return Err(columns(count));
    }
    number(fields[1], "device")?;
    let device = batch.device(fields[1])?;
    let offset = in_bytes(number(fields[2], "address")?, unit);
    let bytes = in_bytes(number(fields[3], "size")?, unit);
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

#[cold]
fn kind(field: &[u8], count: usize, wanted: &str) -> ParseError {
    if count == 5 { bad(field, "type", wanted) } else { columns(count) }
}

#[cold]
fn columns(count: usize) -> ParseError {
    ParseError::new(format!("it has {count} columns instead of 5: {COLUMNS}"))
}

#[cfg(test)]
#[path = "simulator_tests.rs"]
mod tests;
