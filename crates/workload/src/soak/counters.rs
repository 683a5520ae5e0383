//! Counters of errors of everything that a soak goes through, before and after.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use keepup_measure::errors::{ErrorCounter, disks_below, memory_errors, smart_errors, volume_errors};
use keepup_results::SoakCounter;

/// Counters of errors of everything below the volumes.
pub fn counters(volumes: &[PathBuf]) -> Vec<ErrorCounter> {
    let root = Path::new("/");
    let mut counters = memory_errors(root);
    for volume in volumes {
        counters.extend(volume_errors(root, volume));
        for disk in disks_below(root, volume) {
            // Its exit code tells of the disk's health too; what counts is whether it printed an account.
            let asked = Command::new("smartctl").args(["-j", "-A", &format!("/dev/{disk}")]).output();
            let text = asked.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            counters.extend(smart_errors(&disk, text.as_deref()));
        }
    }
    // Volumes may share a disk.
    let mut seen = BTreeSet::new();
    counters.retain(|counter| seen.insert(counter.name.clone()));
    counters
}

/// The same counters at three moments.
pub fn compared(first: &[ErrorCounter], before: &[ErrorCounter], after: &[ErrorCounter]) -> Vec<SoakCounter> {
    let at = |counters: &[ErrorCounter], name: &str| {
        counters.iter().find(|counter| counter.name == name).and_then(|counter| counter.value)
    };
    let mut names: Vec<&String> = Vec::new();
    for counter in first.iter().chain(before).chain(after) {
        if !names.contains(&&counter.name) {
            names.push(&counter.name);
        }
    }
    let row = |name: &String| SoakCounter {
        name: name.clone(),
        first: at(first, name),
        before: at(before, name),
        after: at(after, name),
    };
    names.into_iter().map(row).collect()
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
