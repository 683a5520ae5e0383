//! Interrupts of the adapters of disks.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::settings::parse_interrupts;
use crate::text;

/// Interrupts since boot of all PCI functions that have a disk, all cores together, without those for
/// configuration. `None` if no disk belongs to a PCI function with interrupts. `root` is `/` except in tests.
#[must_use]
pub fn storage_interrupts(root: &Path) -> Option<u64> {
    let disks = text::names(root, "sys/block").ok()?;
    let devices = std::fs::canonicalize(root.join("sys/devices")).ok()?;
    let numbers: BTreeSet<u64> = disks
        .iter()
        .filter_map(|disk| std::fs::canonicalize(root.join("sys/block").join(disk).join("device")).ok())
        .flat_map(|device| numbers_above(&device, &devices))
        .collect();
    let known = parse_interrupts(&text::read(root, "proc/interrupts").ok()?);
    let own = known.iter().filter(|known| numbers.contains(&known.number) && !known.name.contains("config"));
    own.map(|known| known.count).reduce(u64::saturating_add)
}

/// Interrupt numbers of the nearest device at or above `device`, below `devices`, that has any: message
/// signalled ones, or the line of its pin.
fn numbers_above(device: &Path, devices: &PathBuf) -> Vec<u64> {
    let above = device.ancestors().take_while(|path| path.starts_with(devices) && *path != devices);
    above.map(numbers_of).find(|numbers| !numbers.is_empty()).unwrap_or_default()
}

fn numbers_of(directory: &Path) -> Vec<u64> {
    let signalled = text::names(directory, "msi_irqs").unwrap_or_default();
    let signalled: Vec<u64> = signalled.iter().filter_map(|name| name.parse().ok()).collect();
    if !signalled.is_empty() {
        return signalled;
    }
    let line = text::read_trimmed(directory, "irq").ok().and_then(|text| text.parse().ok());
    line.into_iter().filter(|number| *number > 0).collect()
}

#[cfg(test)]
#[path = "interrupts_tests.rs"]
mod tests;
