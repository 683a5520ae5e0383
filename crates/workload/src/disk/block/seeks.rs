//! Random seeks in the large file by several threads: each reads a chunk and rewrites one in ten.
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastrand::Rng;
use keepup_measure::clock::Clock;
use keepup_measure::histogram::Latency;
use keepup_results::LatencyFigures;
use keepup_sys::file::{Durability, open_file, read_exact_at, sync_data, write_all_at};
use keepup_sys::pool::{Block, Pool};

use super::super::DiskMeasured;
use super::super::phase::PhaseClock;
use super::BlockTest;
use crate::error::system;
use crate::file_io::mode::Pattern;
use crate::random_data::SEED;
use crate::{Context, WorkloadError};

/// Number of seekers as in bonnie++, here threads instead of processes.
pub(super) const SEEKERS: usize = 5;
/// One seek in this many writes the chunk back.
pub(super) const UPDATE_EVERY: u64 = 10;

/// State shared by all seekers.
struct Shared<'a> {
    test: &'a BlockTest,
    path: &'a Path,
    clock: &'a dyn Clock,
    stop: &'a AtomicBool,
    /// Seeks started.
    begun: AtomicU64,
    /// Whether a seeker failed.
    failed: AtomicBool,
}

/// Runs the phase; false if interrupted. The file must have been written completely.
pub(super) fn run(
    test: &BlockTest,
    path: &Path,
    found: &mut DiskMeasured,
    context: &Context,
) -> Result<bool, WorkloadError> {
    if test.seeks == 0 {
        return Ok(true);
    }
    let mut pool = Pool::new(SEEKERS * (test.seek_bytes + keepup_sys::pool::GRAIN_BYTES))?;
    let blocks: Vec<Block> = (0..SEEKERS).filter_map(|_| pool.take(test.seek_bytes)).collect();
    let clock = context.clock.as_ref();
    let shared = Shared {
        test,
        path,
        clock,
        stop: &context.stop,
        begun: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let file = open_file(path, test.through.access(), Durability::Flushed)?;
    let begun = PhaseClock::begin(clock);
    let ended: Vec<Result<Latency, WorkloadError>> = std::thread::scope(|scope| {
        let shared = &shared;
        let seekers = blocks.into_iter().zip(1..);
        let started: Vec<_> =
            seekers.map(|(block, n)| scope.spawn(move || seeker(shared, block, n))).collect();
        let panicked = |_| Err(WorkloadError::Thread { name: "seeker" });
        started.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut latency = Latency::new();
    for seeker in ended {
        latency.merge(&seeker?);
    }
    if context.stop.load(Ordering::Acquire) {
        return Ok(false);
    }
    sync_data(&file, path)?;
    let mut phase = begun.end(clock, test.phase("seek"), 1, test.seeks * test.seek_bytes as u64);
    phase.operations = Some(test.seeks);
    phase.latency = Some(LatencyFigures::from(&latency));
    found.phases.push(phase);
    Ok(true)
}

/// Seeks until the total is reached.
fn seeker(shared: &Shared<'_>, mut block: Block, number: u64) -> Result<Latency, WorkloadError> {
    let outcome = seek_on(shared, &mut block, number);
    if outcome.is_err() {
        shared.failed.store(true, Ordering::Release);
    }
    outcome
}

fn seek_on(shared: &Shared<'_>, block: &mut Block, number: u64) -> Result<Latency, WorkloadError> {
    let (test, clock) = (shared.test, shared.clock);
    let file: OwnedFd = open_file(shared.path, test.through.access(), Durability::Flushed)?;
    let action = format!("seek in {}", shared.path.display());
    let chunks = test.size_bytes / test.seek_bytes as u64;
    let mut random = Rng::with_seed(SEED ^ number);
    let mut latency = Latency::new();
    // Stamps of this seeker, unused by any other phase.
    let mut stamp = number << 48;
    while !shared.stop.load(Ordering::Acquire) && !shared.failed.load(Ordering::Acquire) {
        let seek = shared.begun.fetch_add(1, Ordering::Relaxed);
        if seek >= test.seeks {
            break;
        }
        let at = random.u64(0..chunks) * test.seek_bytes as u64;
        let chunk = &mut block[..test.seek_bytes];
        let begun_ns = clock.now_ns();
        read_exact_at(&file, chunk, at).map_err(system(&action))?;
        if seek.is_multiple_of(UPDATE_EVERY) {
            Pattern::default().stamp(chunk, &mut stamp);
            write_all_at(&file, chunk, at).map_err(system(&action))?;
        }
        latency.record_ns(clock.now_ns().saturating_sub(begun_ns));
    }
    Ok(latency)
}
