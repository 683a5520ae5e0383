//! Sequential passes over the large file: write, rewrite and read, chunk by chunk.
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use keepup_measure::histogram::Latency;
use keepup_results::{DiskPhase, LatencyFigures};
use keepup_sys::file::{Durability, open_file, read_exact_at, sync_data, write_all_at};
use keepup_sys::pool::{Block, Pool};

use super::super::DiskMeasured;
use super::super::phase::PhaseClock;
use super::BlockTest;
use crate::error::system;
use crate::file_io::mode::Pattern;
use crate::random_data::{SEED, fill_random};
use crate::{Context, WorkloadError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum PassKind {
    Write,
    /// Read, modify, write back.
    Rewrite,
    Read,
}

impl PassKind {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
        }
    }
}

/// Runs all three phases; false if interrupted.
pub(super) fn run(
    test: &BlockTest,
    path: &Path,
    found: &mut DiskMeasured,
    context: &Context,
) -> Result<bool, WorkloadError> {
    let mut pool = Pool::new(test.chunk_bytes)?;
    let Some(mut data) = pool.take(test.chunk_bytes) else { return Ok(false) };
    fill_random(&mut data, SEED);
    let mut stamp = 0;
    for kind in [PassKind::Write, PassKind::Rewrite, PassKind::Read] {
        match pass(test, kind, path, &mut data, &mut stamp, context)? {
            Some(phase) => found.phases.push(phase),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Runs one phase including its flush; none if interrupted.
fn pass(
    test: &BlockTest,
    kind: PassKind,
    path: &Path,
    data: &mut Block,
    stamp: &mut u64,
    context: &Context,
) -> Result<Option<DiskPhase>, WorkloadError> {
    let clock = context.clock.as_ref();
    let file: OwnedFd = open_file(path, test.through.access(), Durability::Flushed)?;
    let action = format!("{} {}", kind.name(), path.display());
    let mut latency = Latency::new();
    let begun = PhaseClock::begin(clock);
    let mut last_ns = clock.now_ns();
    for at in (0..test.size_bytes).step_by(test.chunk_bytes) {
        if context.stop.load(Ordering::Acquire) {
            return Ok(None);
        }
        let chunk = &mut data[..test.chunk_bytes];
        if kind != PassKind::Write {
            read_exact_at(&file, chunk, at).map_err(system(&action))?;
        }
        if kind != PassKind::Read {
            Pattern::default().stamp(chunk, stamp);
            write_all_at(&file, chunk, at).map_err(system(&action))?;
        }
        let now_ns = clock.now_ns();
        latency.record_ns(now_ns.saturating_sub(last_ns));
        last_ns = now_ns;
    }
    if kind != PassKind::Read {
        sync_data(&file, path)?;
    }
    let mut phase = begun.end(clock, test.phase(kind.name()), 1, test.size_bytes);
    phase.operations = Some(test.size_bytes / test.chunk_bytes as u64);
    phase.latency = Some(LatencyFigures::from(&latency));
    Ok(Some(phase))
}
