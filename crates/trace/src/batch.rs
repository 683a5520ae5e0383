//! What readers of all formats give: requests in the order of the file, and what they learned on the way.
//!
//! Invariants: a device gets the next free number when it is first seen; times are relative to some moment
//! near the file's first, so that 64 bits hold any clock with its differences.
use std::collections::HashMap;

use super::error::{Complaint, Fault};
use super::header::{Corrections, TraceDevice};
use super::record::{Flags, Operation};

/// Requests that a reader gives at a time, about.
pub(super) const BATCH: usize = 4096;
/// Devices of one trace.
const DEVICES_MAX: usize = 65_535;
/// Length of a device's name, bytes; fio takes no longer ones either.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// A completion that is not known.
pub(super) const NO_TIME: i64 = i64::MIN;

/// A request as its file has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    /// Time of issue, ns, relative to the reader's base.
    pub(super) time_ns: i64,
    /// Time of completion likewise, or [`NO_TIME`].
    pub(super) completion_ns: i64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Line or byte; the reader knows which.
    pub(super) place: u64,
    pub(super) device: u16,
    pub(super) operation: Operation,
    pub(super) flags: Flags,
}

/// What a reader has found.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Raw>,
    pub(super) devices: Vec<TraceDevice>,
    pub(super) corrections: Corrections,
    numbers: HashMap<Vec<u8>, u16>,
    last: Vec<u8>,
    last_number: u16,
}

/// What reads a format.
pub(super) trait Reader: Send {
    /// Adds the next requests; false when there are no more.
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, Fault>;
    /// Whether its places are lines; otherwise they are bytes.
    fn has_lines(&self) -> bool;
}

impl Batch {
    /// The number of the device with this name.
    #[inline]
    pub(super) fn device(&mut self, name: &[u8]) -> Result<u16, Complaint> {
        if self.last == name && !self.devices.is_empty() {
            return Ok(self.last_number);
        }
        self.other_device(name)
    }

    fn other_device(&mut self, name: &[u8]) -> Result<u16, Complaint> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let what = format!("a device's name of {} bytes; 1 to {NAME_BYTES_MAX} are allowed", name.len());
            return Err(Complaint::new(what));
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

    /// Adds a device that is known to be new.
    pub(super) fn add_device(&mut self, device: TraceDevice) -> Result<u16, Complaint> {
        let number = self.devices.len();
        if number >= DEVICES_MAX {
            return Err(Complaint::new(format!("more than {DEVICES_MAX} devices")));
        }
        self.devices.push(device);
        Ok(number as u16)
    }
}

/// Turns the clock of a file into times near 0.
#[derive(Debug, Default)]
pub(super) struct Base(Option<u64>);

impl Base {
    /// `ticks` of `tick_ns` each, relative to the first; one that is too far away is as far as can be told.
    #[inline]
    pub(super) fn relative_ns(&mut self, ticks: u64, tick_ns: i64) -> i64 {
        let base = *self.0.get_or_insert(ticks);
        // Two moments of one clock may lie on both sides of its wrap; anything else is absurd and told so.
        let ns = (ticks.wrapping_sub(base) as i64).saturating_mul(tick_ns);
        ns.max(NO_TIME + 1)
    }
}
