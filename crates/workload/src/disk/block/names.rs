//! Very many empty files: created, looked at, deleted; in the order of their numbers, and in a random one.
//!
//! Sequential: created by number, looked at and deleted in the order in which the directory lists them.
//! Random: names begin with random letters, so that the directory sees no order; then each is looked at once
//! and deleted once, in an order drawn for that. What creates or deletes ends with a flush of the directory.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use fastrand::Rng;
use keepup_measure::histogram::Latency;
use keepup_results::DiskPhase;
use keepup_sys::file::sync_directory;

use super::super::Found;
use super::super::phase::{PhaseClock, told};
use super::BlockTest;
use crate::ceiling::system;
use crate::data::SEED;
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Letters beside the number in a name, at most.
const LETTERS_MAX: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Sequential,
    Random,
}

impl Order {
    fn name(self) -> &'static str {
        if self == Self::Sequential { "sequential" } else { "random" }
    }

    /// The name of file `number`.
    fn file(self, number: u32, random: &mut Rng) -> String {
        let letters: String = (0..random.usize(0..=LETTERS_MAX)).map(|_| random.alphanumeric()).collect();
        match self {
            Self::Sequential => format!("{number:07}{letters}"),
            Self::Random => format!("{letters}{number:07}"),
        }
    }
}

/// What is done to each file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Create,
    Stat,
    Delete,
}

impl Deed {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Delete => "delete",
        }
    }

    fn to(self, path: &Path) -> Result<(), WorkloadError> {
        let done = match self {
            Self::Create => std::fs::OpenOptions::new().write(true).create_new(true).open(path).map(drop),
            Self::Stat => std::fs::symlink_metadata(path).map(drop),
            Self::Delete => std::fs::remove_file(path),
        };
        done.map_err(|source| system(&format!("{} {}", self.name(), path.display()))(source))
    }
}

/// All phases, as far as it is not to stop.
pub(super) fn run(
    test: &BlockTest,
    scratch: &Scratch,
    found: &mut Found,
    context: &Context,
) -> Result<(), WorkloadError> {
    for order in [Order::Sequential, Order::Random] {
        let mut random = Rng::with_seed(SEED);
        let mut place = Scratch::create(scratch.path(), order.name())?;
        let mut paths: Vec<PathBuf> =
            (0..test.files).map(|number| place.file(&order.file(number, &mut random))).collect();
        for deed in [Deed::Create, Deed::Stat, Deed::Delete] {
            if deed != Deed::Create && order == Order::Random {
                random.shuffle(&mut paths);
            } else if deed == Deed::Stat {
                paths = as_listed(place.path(), &paths)?;
            }
            match phase(test, order, deed, &paths, place.path(), context)? {
                Some(phase) => found.phases.push(phase),
                None => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The paths in the order in which their directory lists them.
fn as_listed(directory: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>, WorkloadError> {
    let ours: BTreeSet<&PathBuf> = paths.iter().collect();
    let action = format!("list {}", directory.display());
    let mut listed = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(system(&action))? {
        let path = entry.map_err(system(&action))?.path();
        if ours.contains(&path) {
            listed.push(path);
        }
    }
    Ok(listed)
}

/// One deed to every file; nothing when it was to stop before its end.
fn phase(
    test: &BlockTest,
    order: Order,
    deed: Deed,
    paths: &[PathBuf],
    directory: &Path,
    context: &Context,
) -> Result<Option<DiskPhase>, WorkloadError> {
    let clock = context.clock.as_ref();
    let mut latency = Latency::new();
    let begun = PhaseClock::begin(clock);
    let mut last_ns = clock.now_ns();
    for path in paths {
        if context.stop.load(Ordering::Acquire) {
            return Ok(None);
        }
        deed.to(path)?;
        let now_ns = clock.now_ns();
        latency.record_ns(now_ns.saturating_sub(last_ns));
        last_ns = now_ns;
    }
    if deed != Deed::Stat {
        sync_directory(directory)?;
    }
    let name = test.phase(&format!("{} {}", deed.name(), order.name()));
    let mut phase = begun.end(clock, name, paths.len() as u64, 0);
    phase.operations = Some(paths.len() as u64);
    phase.latency = Some(told(&latency));
    Ok(Some(phase))
}
