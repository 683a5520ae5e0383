//! Interrupts of the adapters of disks.
use std::collections::BTreeSet;
use std::path::Path;

use crate::environment::nearest;
use crate::settings::parse_interrupts;
use crate::text;

/// Interrupts since boot of all PCI functions that have a disk, all cores together, without those for
/// configuration. `None` if no disk belongs to a PCI function with interrupts. `root` is `/` except in tests.
#[must_use]
pub fn storage_interrupts(root: &Path) -> Option<u64> {
    let disks = text::names(root, "sys/block").ok()?;
    let of_disk = |disk: &String| {
        let device = Path::new("sys/block").join(disk).join("device");
        nearest(root, &device, numbers).ok().flatten().unwrap_or_default()
    };
    let numbers: BTreeSet<u64> = disks.iter().flat_map(of_disk).collect();
    let known = parse_interrupts(&text::read(root, "proc/interrupts").ok()?);
    let own = known.iter().filter(|known| numbers.contains(&known.number) && !known.name.contains("config"));
    own.map(|known| known.count).reduce(u64::saturating_add)
}

/// Interrupt numbers of a device, if it has any: message signalled ones, or the line of its pin.
fn numbers(directory: &Path) -> Option<Vec<u64>> {
    let signalled = text::names(directory, "msi_irqs").unwrap_or_default();
    let signalled: Vec<u64> = signalled.iter().filter_map(|name| name.parse().ok()).collect();
    if !signalled.is_empty() {
        return Some(signalled);
    }
    let line: u64 = text::read_trimmed(directory, "irq").ok()?.parse().ok()?;
    (line > 0).then(|| vec![line])
}

#[cfg(test)]
#[path = "interrupts_tests.rs"]
mod tests;
