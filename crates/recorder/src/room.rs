//! What only the volumes' file systems tell: the room that is left, and what drains have noted.
//!
//! A disk that does not answer holds up whoever asks, so a thread of its own asks, and what it last heard
//! grows old.
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keepup_measure::clock::Clock;
use keepup_measure::space::Space;
use keepup_recording::id::Id;
use keepup_recording::retention;

/// Pause between two looks, in nanoseconds.
const LOOK_NS: u64 = 2_000_000_000;
/// Pause between two looks whether it is over, in nanoseconds.
const STEP_NS: u64 = 100_000_000;
/// What is older than this is not told any more, in nanoseconds.
const STALE_NS: u64 = 15_000_000_000;

/// The room on one volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// What may still be written, in bytes.
    pub(crate) free_bytes: u64,
    /// Size of the file system, in bytes.
    pub(crate) total_bytes: u64,
    /// Which file system: volumes may share one.
    pub(crate) device: u64,
}

#[derive(Debug, Default)]
struct Heard {
    rooms: Mutex<Vec<Option<(u64, Room)>>>,
    /// One more than the sum of the streams' marks; 0 when no drain has noted anything.
    drained: AtomicU64,
    over: AtomicBool,
}

/// Asks the volumes' file systems until it is dropped.
#[derive(Debug)]
pub(crate) struct Rooms {
    heard: Arc<Heard>,
}

impl Rooms {
    /// Asks about these directories, once now and then again and again; also what drains have noted of the
    /// recording in them, if there is one. Without a thread what is known grows old.
    pub(crate) fn start(directories: Vec<PathBuf>, recording: Option<Id>, clock: Arc<dyn Clock>) -> Self {
        let heard = Arc::new(Heard { rooms: Mutex::new(vec![None; directories.len()]), ..Heard::default() });
        let asker = Asker { directories, recording, clock, heard: Arc::clone(&heard) };
        asker.ask_all();
        if !asker.directories.is_empty() {
            let _ = std::thread::Builder::new().name("ku-room".into()).spawn(move || asker.run());
        }
        Self { heard }
    }

    /// The room of a volume, unless what is known is too old.
    pub(crate) fn of(&self, volume: usize, now_ns: u64) -> Option<Room> {
        let rooms = self.heard.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let (at_ns, room) = rooms.get(volume).copied().flatten()?;
        (now_ns.saturating_sub(at_ns) < STALE_NS).then_some(room)
    }

    /// Events that drains noted as safe elsewhere; nothing when no drain has noted any.
    pub(crate) fn drained_events(&self) -> Option<u64> {
        self.heard.drained.load(Ordering::Relaxed).checked_sub(1)
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        self.heard.over.store(true, Ordering::Relaxed);
    }
}

struct Asker {
    directories: Vec<PathBuf>,
    recording: Option<Id>,
    clock: Arc<dyn Clock>,
    heard: Arc<Heard>,
}

impl Asker {
    fn run(self) {
        loop {
            let next_ns = self.clock.now_ns() + LOOK_NS;
            while self.clock.now_ns() < next_ns {
                if self.heard.over.load(Ordering::Relaxed) {
                    return;
                }
                self.clock.sleep_until_ns(self.clock.now_ns() + STEP_NS);
            }
            self.ask_all();
        }
    }

    fn ask_all(&self) {
        (0..self.directories.len()).for_each(|at| self.ask(at));
        self.recording.iter().for_each(|recording| self.ask_drains(*recording));
    }

    fn ask(&self, at: usize) {
        let Ok(space) = Space::of(&self.directories[at]) else { return };
        let Ok(found) = std::fs::metadata(&self.directories[at]) else { return };
        let (free_bytes, total_bytes) = (space.free_bytes, space.total_bytes);
        let room = Room { free_bytes, total_bytes, device: found.dev() };
        let mut rooms = self.heard.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms[at] = Some((self.clock.now_ns(), room));
    }

    /// A drain enters its marks on every volume; the first that has them tells.
    fn ask_drains(&self, recording: Id) {
        let marks = self.directories.iter().find_map(|directory| {
            let drained = retention::Drained::read(directory, recording).ok()?;
            (!drained.streams.is_empty()).then_some(drained.streams)
        });
        if let Some(marks) = marks {
            let sum = marks.values().fold(0u64, |sum, end| sum.saturating_add(*end));
            self.heard.drained.store(sum.saturating_add(1), Ordering::Relaxed);
        }
    }
}
