//! Resources needed for a rate: number of machines, or counts of insufficient resources.

use keepup_results::{Enough, MoreOf};

use super::Ask;
use crate::error::ModelError;
use crate::machine::Machine;
use crate::solve::{Limit, LimitKind, solve};

/// Maximum number of machines or parts considered.
const COUNT_MAX: u32 = 4096;

/// Resources needed for `wanted` bytes per second.
pub(super) fn enough(machine: &Machine, ask: &Ask, wanted: f64) -> Result<Enough, ModelError> {
    let reaches = |machine: &Machine| Ok(solve(&ask.system(machine)?).bytes_per_second >= wanted);
    let hosts = least(machine.hosts, |hosts| reaches(&Machine { hosts, ..machine.clone() }))?;
    let limits = solve(&ask.system(machine)?).limits;
    let short = limits.iter().filter(|limit| limit.bytes_per_second < wanted);
    let mut more: Vec<MoreOf> = Vec::new();
    for limit in short {
        if more.iter().any(|known| known.name == limit.name) {
            continue;
        }
        let count = machine.resource.get(&limit.name).map_or(1, |resource| resource.count);
        let needed = match limit.kind {
            LimitKind::RoundTrip => None,
            LimitKind::Capacity => needed(machine, ask, limit, wanted)?,
        };
        more.push(MoreOf { name: limit.name.clone(), count, needed });
    }
    Ok(Enough { bytes_per_second: wanted, hosts, more })
}

/// Count at which a resource is no longer a limit; `None` if the maximum is too few.
fn needed(machine: &Machine, ask: &Ask, limit: &Limit, wanted: f64) -> Result<Option<u32>, ModelError> {
    let count = machine.resource.get(&limit.name).map_or(1, |resource| resource.count);
    least(count, |count| {
        let mut changed = machine.clone();
        if let Some(resource) = changed.resource.get_mut(&limit.name) {
            resource.count = count;
        }
        let limits = solve(&ask.system(&changed)?).limits;
        Ok(limits.iter().all(|other| other.name != limit.name || other.bytes_per_second >= wanted))
    })
}

/// Smallest sufficient count from `from` on, for a monotonic condition.
fn least(
    from: u32,
    mut suffices: impl FnMut(u32) -> Result<bool, ModelError>,
) -> Result<Option<u32>, ModelError> {
    let (mut short, mut enough) = (from.saturating_sub(1), from);
    while !suffices(enough)? {
        if enough >= COUNT_MAX {
            return Ok(None);
        }
        short = enough;
        enough = enough.saturating_mul(2).min(COUNT_MAX);
    }
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if middle > 0 && suffices(middle)? {
            enough = middle;
        } else {
            short = middle;
        }
    }
    Ok(Some(enough))
}
