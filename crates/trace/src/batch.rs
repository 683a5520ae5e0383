//! Common output of all readers: requests in file order, devices, and counts of corrections.
//!
//! Invariants: a new device gets the next free number; times are relative to one near the start of the file,
//! so that any clock fits into 64 bits.
use std::collections::HashMap;

use super::error::{ParseError, ReadError};
use super::header::{Corrections, TraceDevice};
use super::record::{Flags, Operation};

/// Approximate number of requests in a batch.
pub(super) const BATCH: usize = 4096;
/// Largest number of devices in a trace.
const DEVICES_MAX: usize = 65_535;
/// Longest device name, bytes; the same limit as fio's.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// An unknown completion or dispatch time.
pub(super) const NO_TIME: i64 = i64::MIN;

/// A request before sorting and checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord {
    /// Issue time, ns, relative to the reader's base.
    pub(super) time_ns: i64,
    /// Completion time, ns, relative to the reader's base, or [`NO_TIME`].
    pub(super) completion_ns: i64,
    /// Time of the dispatch to the driver, likewise.
    pub(super) dispatch_ns: i64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Line or byte, depending on the reader.
    pub(super) position: u64,
    pub(super) device: u16,
    pub(super) operation: Operation,
    pub(super) flags: Flags,
}

/// Output of a reader.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<RawRecord>,
    pub(super) devices: Vec<TraceDevice>,
    pub(super) corrections: Corrections,
    numbers: HashMap<Vec<u8>, u16>,
    last: Vec<u8>,
    last_number: u16,
}

/// Reader of a format.
pub(super) trait Reader: Send {
    /// Adds the next requests; false at the end.
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, ReadError>;
    /// Whether positions are lines; otherwise they are bytes.
    fn has_lines(&self) -> bool;
}

impl Batch {
    /// Returns the number of the device with this name.
    #[inline]
    pub(super) fn device(&mut self, name: &[u8]) -> Result<u16, ParseError> {
        if self.last == name && !self.devices.is_empty() {
            return Ok(self.last_number);
        }
        self.other_device(name)
    }

    fn other_device(&mut self, name: &[u8]) -> Result<u16, ParseError> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let what = format!("a device name of {} bytes; allowed are 1 to {NAME_BYTES_MAX}", name.len());
            return Err(ParseError::new(what));
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = self.add_device(TraceDevice {
                    name: String::from_utf8_lossy(name).into_owned(),
                    bytes: None,
                })?;
                self.numbers.insert(name.to_vec(), number);
                number
            }
        };
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        Ok(number)
    }

    /// Adds a new device.
    pub(super) fn add_device(&mut self, device: TraceDevice) -> Result<u16, ParseError> {
        let number = self.devices.len();
        if number >= DEVICES_MAX {
            return Err(ParseError::new(format!("more than {DEVICES_MAX} devices")));
        }
        self.devices.push(device);
        Ok(number as u16)
    }
}

/// Converts the clock of a file to times near 0.
#[derive(Debug, Default)]
pub(super) struct TimeBase(Option<u64>);

impl TimeBase {
    /// Converts `ticks` of `tick_ns` to ns relative to the first call, saturating.
    #[inline]
    pub(super) fn relative_ns(&mut self, ticks: u64, tick_ns: i64) -> i64 {
        let base = *self.0.get_or_insert(ticks);
        // The clock may wrap around between two times. Other implausible times are detected later.
        let ns = (ticks.wrapping_sub(base) as i64).saturating_mul(tick_ns);
        ns.max(NO_TIME + 1)
    }
}
