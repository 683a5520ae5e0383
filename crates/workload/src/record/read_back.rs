//! Evicts a recording from the page cache, and reads it back as its users would: stream by stream, in event
//! order.
//!
//! Invariant: no part of the recording is in the page cache when the clock starts.
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_recording::access::{From, StreamReader};
use keepup_recording::reader::Recording;
use keepup_results::RecordReadBack;
use keepup_results::format::bytes;
use keepup_stream::ledger::Count;
use keepup_sys::cache::cached_bytes;
use keepup_sys::file::{Access, forget_cached, open_to_read, sync_data};

use crate::error::system;
use crate::spent::SpentClock;
use crate::{Context, WorkloadError};

/// Where a verification read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The disks: no segment was in the page cache before.
    Disks,
    /// The disks or the page cache.
    Either {
        /// Why the page cache is not excluded.
        why: String,
    },
}

impl fmt::Display for ReadFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disks => f.write_str("read back from the disks: the page cache was dropped before"),
            Self::Either { why } => write!(f, "read back may have come from the page cache: {why}"),
        }
    }
}

impl ReadFrom {
    /// Evicts the segments of `recording` from the page cache, for a verification that follows.
    pub(super) fn after_eviction(recording: &Recording) -> Self {
        Self::of(evict(recording))
    }

    /// After an eviction that left so many bytes in the page cache, or failed.
    fn of(left: Result<u64, WorkloadError>) -> Self {
        let why = match left {
            Ok(0) => return Self::Disks,
            Ok(left) => format!("{} of the segments stayed in it", bytes(left)),
            Err(error) => error.to_string(),
        };
        Self::Either { why }
    }
}

/// Result of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    streams: u32,
    total: Count,
}

/// Reads all events of `recording`, with one thread per volume; none if interrupted.
///
/// # Errors
/// A segment cannot be read, or a block is incomplete.
pub(super) fn read_back(
    recording: &Recording,
    context: &Context,
) -> Result<Option<RecordReadBack>, WorkloadError> {
    evict(recording)?;
    let (threads, stop) = (recording.volumes().len(), context.stop.as_ref());
    let spent = SpentClock::begin(context.clock.as_ref());
    let all = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for n in 0..threads {
            // A pinned stream is on volume `id mod n`, so each thread reads from one volume.
            let mine = recording.streams().into_keys().filter(|stream| *stream as usize % threads == n);
            let mine: Vec<u32> = mine.collect();
            let read = move || read_streams(recording, &mine, stop);
            let thread = std::thread::Builder::new().name(format!("ku-reader-{n}")).spawn_scoped(scope, read);
            running.push(thread.map_err(system("start a thread that reads back"))?);
        }
        let mut all = Read::default();
        for thread in running {
            let read = thread.join().map_err(|_| WorkloadError::Thread { name: "ku-reader" })??;
            all.streams += read.streams;
            all.total += read.total;
        }
        Ok::<_, WorkloadError>(all)
    })?;
    let spent = spent.end(context.clock.as_ref());
    let read = RecordReadBack {
        streams: all.streams,
        events: all.total.events,
        bytes: all.total.bytes,
        seconds: spent.seconds,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        cpu_seconds: spent.cpu_seconds,
        machine_cpu_seconds: spent.machine_cpu_seconds,
    };
    Ok((!stop.load(Ordering::Acquire)).then_some(read))
}

/// Evicts all segments from the page cache; returns their bytes that stayed. Kernels before 6.5 do not count
/// them.
fn evict(recording: &Recording) -> Result<u64, WorkloadError> {
    let mut left = 0;
    for segment in recording.volumes().iter().flat_map(|volume| volume.segments()) {
        let file = open_to_read(&segment.path, Access::Buffered)?;
        // Dirty pages are not evicted.
        sync_data(&file, &segment.path)?;
        forget_cached(&file, &segment.path)?;
        left += cached_bytes(&file).unwrap_or(0);
    }
    Ok(left)
}

fn read_streams(recording: &Recording, streams: &[u32], stop: &AtomicBool) -> Result<Read, WorkloadError> {
    let mut read = Read::default();
    for reader in StreamReader::open_each(&recording.into(), streams) {
        let events = reader?.read(From::Sequence(0), &mut |event| {
            read.total += Count::one(event.payload.len() as u64);
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        read.streams += u32::from(events > 0);
    }
    Ok(read)
}

#[cfg(test)]
#[path = "read_back_tests.rs"]
mod tests;
