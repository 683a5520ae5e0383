//! The large file from its front to its end: written, rewritten, read; one chunk at a time.
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use keepup_measure::histogram::Latency;
use keepup_results::DiskPhase;
use keepup_sys::file::{Durability, open_file, read_exact_at, sync_data, write_all_at};
use keepup_sys::pool::{Block, Pool};

use super::super::Found;
use super::super::mode::Pattern;
use super::super::phase::{PhaseClock, told};
use super::BlockTest;
use crate::ceiling::system;
use crate::data::{SEED, fill_random};
use crate::{Context, WorkloadError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    /// Read, changed, written back.
    Rewrite,
    Read,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
        }
    }
}

/// All three phases; false when it was to stop before their end.
pub(super) fn run(
    test: &BlockTest,
    path: &Path,
    found: &mut Found,
    context: &Context,
) -> Result<bool, WorkloadError> {
    let mut pool = Pool::new(test.chunk_bytes)?;
    let Some(mut data) = pool.take(test.chunk_bytes) else { return Ok(false) };
    fill_random(&mut data, SEED);
    let mut stamp = 0;
    for kind in [Kind::Write, Kind::Rewrite, Kind::Read] {
        match pass(test, kind, path, &mut data, &mut stamp, context)? {
            Some(phase) => found.phases.push(phase),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// One phase, with its flush; nothing when it was to stop before its end.
fn pass(
    test: &BlockTest,
    kind: Kind,
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
        if kind != Kind::Write {
            read_exact_at(&file, chunk, at).map_err(system(&action))?;
        }
        if kind != Kind::Read {
            Pattern::default().stamp(chunk, stamp);
            write_all_at(&file, chunk, at).map_err(system(&action))?;
        }
        let now_ns = clock.now_ns();
        latency.record_ns(now_ns.saturating_sub(last_ns));
        last_ns = now_ns;
    }
    if kind != Kind::Read {
        sync_data(&file, path)?;
    }
    let mut phase = begun.end(clock, test.phase(kind.name()), 1, test.size_bytes);
    phase.operations = Some(test.size_bytes / test.chunk_bytes as u64);
    phase.latency = Some(told(&latency));
    Ok(Some(phase))
}
