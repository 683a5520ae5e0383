//! MSR Cambridge (SNIA IOTTA 387): Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime.
//!
//! Timestamp and ResponseTime are in units of 100 ns, the former since 1601 (Windows filetime); offsets and
//! sizes are in bytes. Disk numbers are unique only per host, so a device name contains both.
use crate::batch::{Batch, NO_TIME, RawRecord, TimeBase};
use crate::error::ParseError;
use crate::format::in_bytes;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, separated};

const NAMES: [&str; 7] = ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];
const TICK_NS: i64 = 100;

pub(in crate::format) struct Msr {
    pub(in crate::format) base: TimeBase,
    pub(in crate::format) unit: Unit,
    /// The last device's name.
    pub(in crate::format) name: Vec<u8>,
}

impl LineFormat for Msr {
    #[inline]
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = separated::<7>(line, b',');
        if count != 7 || position == 1 {
            if line.is_empty() || super::is_names(line, &NAMES)? {
                return Ok(());
            }
            if count != 7 {
                return Err(super::columns(count, &NAMES));
            }
        }
        let [time, host, disk, kind, offset, size, response] = fields;
        let ticks = number(time, "Timestamp")?;
        self.name.clear();
        self.name.extend_from_slice(host);
        self.name.push(b'.');
        self.name.extend_from_slice(disk);
        let device = batch.device(&self.name)?;
        let operation = match kind {
            b"Read" => Operation::Read,
            b"Write" => Operation::Write,
            _ if kind.eq_ignore_ascii_case(b"read") => Operation::Read,
            _ if kind.eq_ignore_ascii_case(b"write") => Operation::Write,
            _ => return Err(bad(kind, "Type", "Read or Write")),
        };
        let offset = in_bytes(number(offset, "Offset")?, self.unit);
        let bytes = number(size, "Size")?;
        let time_ns = self.base.relative_ns(ticks, TICK_NS);
        let completion_ns = match response {
            b"" => NO_TIME,
            _ => {
                let ticks = i64::try_from(number(response, "ResponseTime")?).unwrap_or(i64::MAX);
                time_ns.saturating_add(ticks.saturating_mul(TICK_NS))
            }
        };
        let flags = Flags::NONE;
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
#[path = "msr_tests.rs"]
mod tests;
