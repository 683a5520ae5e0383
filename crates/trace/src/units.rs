//! Sectors against bytes: whether addresses make sense in the unit that the format says.
//!
//! Looked at are the first requests, device by device. Two things betray the wrong unit: requests that follow
//! each other without a gap only when addresses are taken in the other unit; and addresses that blocks cannot
//! have, or that lie beyond any disk. What looks wrong is asked about, never put right.
use super::batch::Raw;
use super::error::Complaint;
use super::header::Unit;

const SECTOR: u64 = 512;
/// Requests that follow each other in the other unit, and in this one none, before it is asked about.
const NEIGHBOURS_MIN: usize = 8;
/// Requests before anything is said about alignment.
const ALIGNED_MIN: usize = 64;
/// Larger than any single device: 1 PiB.
const FAR: u64 = 1 << 50;

/// What is to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    /// The unit in which addresses were taken.
    pub(super) unit: Unit,
}

impl Suspicion {
    /// An error when the requests speak for the other unit.
    pub(super) fn judge(self, requests: &[Raw]) -> Result<(), Complaint> {
        let requests: Vec<&Raw> = requests.iter().filter(|raw| raw.bytes > 0).collect();
        let (own, other) = neighbours(&requests, self.unit);
        let why = if other >= NEIGHBOURS_MIN && own == 0 {
            format!("{other} requests follow one another without a gap only then, and none does otherwise")
        } else if let Some(why) = self.alignment(&requests) {
            why
        } else {
            return Ok(());
        };
        let (own, other) = match self.unit {
            Unit::Sectors => ("sectors", "bytes"),
            Unit::Bytes => ("bytes", "sectors"),
        };
        let what = format!("its addresses should be {own} and look like {other}: {why}");
        Err(Complaint::new(what).help(format!("--unit {other} or --unit {own} says which they are")))
    }

    fn alignment(self, requests: &[&Raw]) -> Option<String> {
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
                        "all lengths are multiples of 512 bytes, and {odd} of {} addresses are none",
                        requests.len()
                    )
                })
            }
            Unit::Sectors => {
                let are_multiples = requests.iter().all(|raw| (raw.offset / SECTOR).is_multiple_of(SECTOR));
                let furthest = requests.iter().map(|raw| raw.offset).max().unwrap_or_default();
                (are_multiples && furthest > FAR).then(|| {
                    format!("all are multiples of 512, and as sectors they reach {} TiB", furthest >> 40)
                })
            }
        }
    }
}

/// Pairs of requests of one device of which the second begins where the first ends: with addresses as they
/// are, and with addresses in the other unit.
fn neighbours(requests: &[&Raw], unit: Unit) -> (usize, usize) {
    let (mut own, mut other) = (0, 0);
    let mut last: Vec<Option<&Raw>> = Vec::new();
    for raw in requests {
        let device = usize::from(raw.device);
        if last.len() <= device {
            last.resize(device + 1, None);
        }
        let Some(before) = last[device].replace(raw) else { continue };
        let Some(step) = raw.offset.checked_sub(before.offset).filter(|step| *step > 0) else { continue };
        own += usize::from(step == before.bytes);
        other += usize::from(match unit {
            // A step of so many bytes was so many times 512.
            Unit::Sectors => step / SECTOR == before.bytes && step % SECTOR == 0,
            Unit::Bytes => before.bytes % SECTOR == 0 && step == before.bytes / SECTOR,
        });
    }
    (own, other)
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
