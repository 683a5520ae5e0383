//! Creation, stat and deletion of many empty files, in sequential and in random order.
//!
//! Sequential: files are created by number, then accessed and deleted in directory order. Random:
//! names start with random letters, so that the directory order is unrelated; each file is accessed
//! and deleted once in a random order. Creation and deletion end with an fsync of the directory.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use fastrand::Rng;
use keepup_measure::histogram::Latency;
use keepup_results::{DiskPhase, LatencyFigures};
use keepup_sys::file::sync_directory;

use super::super::DiskMeasured;
use super::super::phase::PhaseClock;
use super::BlockTest;
use crate::error::system;
use crate::random_data::SEED;
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Maximum number of letters besides the number in a name.
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

    /// Name of file `number`.
    fn file(self, number: u32, random: &mut Rng) -> String {
        let letters: String = (0..random.usize(0..=LETTERS_MAX)).map(|_| random.alphanumeric()).collect();
        match self {
            Self::Sequential => format!("{number:07}{letters}"),
            Self::Random => format!("{letters}{number:07}"),
        }
    }
}

/// Operation on each file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileOperation {
    Create,
    Stat,
    Delete,
}

impl FileOperation {
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

/// Runs all phases unless interrupted.
pub(super) fn run(
    test: &BlockTest,
    scratch: &Scratch,
    found: &mut DiskMeasured,
    context: &Context,
) -> Result<(), WorkloadError> {
    for order in [Order::Sequential, Order::Random] {
        let mut random = Rng::with_seed(SEED);
        let mut place = Scratch::create(scratch.path(), order.name())?;
        let mut paths: Vec<PathBuf> =
            (0..test.files).map(|number| place.file(&order.file(number, &mut random))).collect();
        for deed in [FileOperation::Create, FileOperation::Stat, FileOperation::Delete] {
            if deed != FileOperation::Create && order == Order::Random {
                random.shuffle(&mut paths);
            } else if deed == FileOperation::Stat {
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

/// The paths in directory order.
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

/// Applies one operation to every file; none if interrupted.
fn phase(
    test: &BlockTest,
    order: Order,
    deed: FileOperation,
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
    if deed != FileOperation::Stat {
        sync_directory(directory)?;
    }
    let name = test.phase(&format!("{} {}", deed.name(), order.name()));
    let mut phase = begun.end(clock, name, paths.len() as u64, 0);
    phase.operations = Some(paths.len() as u64);
    phase.latency = Some(LatencyFigures::from(&latency));
    Ok(Some(phase))
}
