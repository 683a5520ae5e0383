//! Free space of the volumes and the drain marks, polled from the file systems.
//!
//! A disk that does not answer blocks its caller, so a separate thread polls. Its last result becomes stale.
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keepup_measure::clock::Clock;
use keepup_measure::space::Space;
use keepup_recording::id::Id;
use keepup_recording::retention;

/// Interval between polls, in nanoseconds.
const POLL_NS: u64 = 2_000_000_000;
/// Interval between checks for the end, in nanoseconds.
const STOP_CHECK_NS: u64 = 100_000_000;
/// Age at which a result becomes stale, in nanoseconds.
const STALE_NS: u64 = 15_000_000_000;

/// Free space on one volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreeSpace {
    /// Free bytes.
    pub(crate) free_bytes: u64,
    /// Size of the file system, in bytes.
    pub(crate) total_bytes: u64,
    /// File system id: volumes may share one.
    pub(crate) device: u64,
}

#[derive(Debug, Default)]
struct LatestSpace {
    spaces: Mutex<Vec<Option<(u64, FreeSpace)>>>,
    /// One more than the sum of the streams' drain marks; 0 without a drain.
    drained: AtomicU64,
    stopped: AtomicBool,
}

/// Monitor of the volumes' free space; polls until it is dropped.
#[derive(Debug)]
pub(crate) struct SpaceMonitor {
    latest: Arc<LatestSpace>,
}

impl SpaceMonitor {
    /// Polls the directories once now and then periodically, and the drain marks of `recording`. If the
    /// thread cannot be started, the first result becomes stale.
    pub(crate) fn start(directories: Vec<PathBuf>, recording: Option<Id>, clock: Arc<dyn Clock>) -> Self {
        let latest = Arc::new(LatestSpace {
            spaces: Mutex::new(vec![None; directories.len()]),
            ..LatestSpace::default()
        });
        let poller = SpacePoller { directories, recording, clock, latest: Arc::clone(&latest) };
        poller.poll_all();
        if !poller.directories.is_empty() {
            let _ = std::thread::Builder::new().name("ku-space".into()).spawn(move || poller.run());
        }
        Self { latest }
    }

    /// Free space of a volume; `None` if the result is stale.
    pub(crate) fn of(&self, volume: usize, now_ns: u64) -> Option<FreeSpace> {
        let spaces = self.latest.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let (at_ns, space) = spaces.get(volume).copied().flatten()?;
        (now_ns.saturating_sub(at_ns) < STALE_NS).then_some(space)
    }

    /// Events that drains marked as durable elsewhere; `None` without a drain.
    pub(crate) fn drained_events(&self) -> Option<u64> {
        self.latest.drained.load(Ordering::Relaxed).checked_sub(1)
    }
}

impl Drop for SpaceMonitor {
    fn drop(&mut self) {
        self.latest.stopped.store(true, Ordering::Relaxed);
    }
}

struct SpacePoller {
    directories: Vec<PathBuf>,
    recording: Option<Id>,
    clock: Arc<dyn Clock>,
    latest: Arc<LatestSpace>,
}

impl SpacePoller {
    fn run(self) {
        loop {
            let next_ns = self.clock.now_ns() + POLL_NS;
            while self.clock.now_ns() < next_ns {
                if self.latest.stopped.load(Ordering::Relaxed) {
                    return;
                }
                self.clock.sleep_until_ns(self.clock.now_ns() + STOP_CHECK_NS);
            }
            self.poll_all();
        }
    }

    fn poll_all(&self) {
        (0..self.directories.len()).for_each(|at| self.poll(at));
        self.recording.iter().for_each(|recording| self.poll_drains(*recording));
    }

    fn poll(&self, at: usize) {
        let Ok(space) = Space::of(&self.directories[at]) else { return };
        let Ok(found) = std::fs::metadata(&self.directories[at]) else { return };
        let (free_bytes, total_bytes) = (space.free_bytes, space.total_bytes);
        let space = FreeSpace { free_bytes, total_bytes, device: found.dev() };
        let mut spaces = self.latest.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces[at] = Some((self.clock.now_ns(), space));
    }

    /// A drain writes its marks on every volume; the first readable one is used.
    fn poll_drains(&self, recording: Id) {
        let marks = self.directories.iter().find_map(|directory| {
            let drained = retention::Drained::read(directory, recording).ok()?;
            (!drained.streams.is_empty()).then_some(drained.streams)
        });
        if let Some(marks) = marks {
            let sum = marks.values().fold(0u64, |sum, end| sum.saturating_add(*end));
            self.latest.drained.store(sum.saturating_add(1), Ordering::Relaxed);
        }
    }
}
