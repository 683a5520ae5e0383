//! Check of the unit of addresses, sectors or bytes.
//!
//! The check covers the first requests of each device. Two signs of a wrong unit: requests are
//! contiguous only in the other unit; or addresses are not block-aligned or lie beyond any disk. A
//! suspicious unit is an error, never corrected.
use super::batch::RawRecord;
use super::error::ParseError;
use super::header::Unit;

const SECTOR: u64 = 512;
/// Contiguous pairs in the other unit, with none in the assumed one, that count as an error.
const NEIGHBOURS_MIN: usize = 8;
/// Smallest number of requests for a check of alignment.
const ALIGNED_MIN: usize = 64;
/// An address beyond any single device: 1 PiB.
const FAR: u64 = 1 << 50;

/// Check of an assumed unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitCheck {
    /// Assumed unit.
    pub(super) unit: Unit,
}

impl UnitCheck {
    /// Returns an error if the requests indicate the other unit.
    pub(super) fn check(self, requests: &[RawRecord]) -> Result<(), ParseError> {
        let requests: Vec<&RawRecord> = requests.iter().filter(|raw| raw.bytes > 0).collect();
        let (own, other) = neighbours(&requests, self.unit);
        let why = if other >= NEIGHBOURS_MIN && own == 0 {
            format!("{other} pairs of requests are contiguous in that unit, none in the other")
        } else if let Some(why) = self.alignment(&requests) {
            why
        } else {
            return Ok(());
        };
        let (own, other) = match self.unit {
            Unit::Sectors => ("sectors", "bytes"),
            Unit::Bytes => ("bytes", "sectors"),
        };
        let what = format!("its addresses should be {own} but look like {other}: {why}");
        Err(ParseError::new(what).help(format!("choose --unit {other} or --unit {own}")))
    }

    fn alignment(self, requests: &[&RawRecord]) -> Option<String> {
        if requests.len() < ALIGNED_MIN {
            return None;
        }
        match self.unit {
            Unit::Bytes => {
                let are_blocks = requests.iter().all(|raw| raw.bytes % SECTOR == 0);
                let odd = requests.iter().filter(|raw| raw.offset % SECTOR != 0).count();
                let is_odd = are_blocks && odd * 2 > requests.len();
                is_odd.then(|| {
                    format!(
                        "all lengths are multiples of 512 bytes, but {odd} of {} addresses are not",
                        requests.len()
                    )
                })
            }
            Unit::Sectors => {
                let are_multiples = requests.iter().all(|raw| (raw.offset / SECTOR).is_multiple_of(SECTOR));
                let furthest = requests.iter().map(|raw| raw.offset).max().unwrap_or_default();
                (are_multiples && furthest > FAR).then(|| {
                    format!("all are multiples of 512, and as sectors they extend to {} TiB", furthest >> 40)
                })
            }
        }
    }
}

/// Number of contiguous pairs of requests to one device: in the assumed unit, and in the other one.
fn neighbours(requests: &[&RawRecord], unit: Unit) -> (usize, usize) {
    let (mut own, mut other) = (0, 0);
    let mut last: Vec<Option<&RawRecord>> = Vec::new();
    for raw in requests {
        let device = usize::from(raw.device);
        if last.len() <= device {
            last.resize(device + 1, None);
        }
        let Some(before) = last[device].replace(raw) else { continue };
        let Some(step) = raw.offset.checked_sub(before.offset).filter(|step| *step > 0) else { continue };
        own += usize::from(step == before.bytes);
        other += usize::from(match unit {
            // In bytes, the step would be smaller by a factor of 512.
            Unit::Sectors => step / SECTOR == before.bytes && step % SECTOR == 0,
            Unit::Bytes => before.bytes % SECTOR == 0 && step == before.bytes / SECTOR,
        });
    }
    (own, other)
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
