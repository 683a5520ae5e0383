//! Error counters of all devices below a soak's volumes, before and after.
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use keepup_measure::errors::{ErrorCounter, disks_below, memory_errors, smart_errors, volume_errors};
use keepup_results::SoakCounter;

/// Timeout of a query to a disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Error counters of all devices below the volumes.
pub fn counters(volumes: &[PathBuf]) -> Vec<ErrorCounter> {
    let root = Path::new("/");
    let mut counters = memory_errors(root);
    for volume in volumes {
        counters.extend(volume_errors(root, volume));
        for disk in disks_below(root, volume) {
            let text =
                printed(Command::new("smartctl").args(["-j", "-A", &format!("/dev/{disk}")]), PATIENCE);
            counters.extend(smart_errors(&disk, text.as_deref()));
        }
    }
    // Volumes may share a disk.
    let mut seen = BTreeSet::new();
    counters.retain(|counter| seen.insert(counter.name.clone()));
    counters
}

/// Output of a program; none if it cannot be started or times out, in which case it is killed. The
/// exit code is ignored: that of `smartctl` also encodes the disk's health.
fn printed(command: &mut Command, patience: Duration) -> Option<String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut program = command.spawn().ok()?;
    let mut stdout = program.stdout.take()?;
    let (sender, text) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned());
        // The receiver is gone after a timeout.
        drop(sender.send(read.ok()));
    });
    let text = text.recv_timeout(patience).ok().flatten();
    if text.is_none() {
        // A process blocked on a dead disk in the kernel cannot be killed; it is not waited for.
        drop(program.kill());
        drop(program.try_wait());
        return None;
    }
    drop(program.wait());
    text
}

/// Values of each counter at three moments.
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
