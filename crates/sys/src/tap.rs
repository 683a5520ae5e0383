//! What is asked of files, told to a listener: at most one tap in a process, as the `log` crate has one
//! logger.
//!
//! It sees the requests of every engine that [`crate::engine::open`] gave and the calls of [`crate::file`],
//! each once, as the program asked for it: with the moments when it was begun and when the program saw its
//! end.
//!
//! Invariants: without a tap nothing is noted and nothing read from a clock; who makes requests never waits
//! for who listens, but for the exchange of a list; memory is bounded, and what finds no room is counted.
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::OFlags;

use crate::SysError;
use crate::engine::Completion;

/// The tap of this process.
static TAP: OnceLock<Arc<Tap>> = OnceLock::new();
/// Requests that may wait for the listener; 48 bytes each.
const WAITING_MAX: usize = 1 << 20;
/// The number of a file for which there is none left.
const NO_NUMBER: u16 = u16::MAX;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Bytes from the file.
    Read,
    /// Bytes to the file.
    Write,
    /// What was written is to be durable.
    Sync,
}

/// A request that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was begun, ns of the tap's clock.
    pub issue_ns: u64,
    /// When the program saw its end, ns likewise; nothing while it is under way.
    pub completion_ns: Option<u64>,
    /// Where it begins in its file, bytes.
    pub offset: u64,
    /// How long it is, bytes.
    pub bytes: u64,
    /// Its file's number, for [`Tap::file`].
    pub file: u16,
    /// What it asks for.
    pub asked: Asked,
    /// Whether it is durable when it ends (`O_SYNC`, `O_DSYNC`).
    pub is_durable: bool,
    /// Whether it failed.
    pub has_failed: bool,
}

/// A file that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// Its path when it was first seen.
    pub name: String,
    /// Its size then, in bytes; nothing for an empty file and for what has no size of its own.
    pub bytes: Option<u64>,
}

/// A file's number, and what its writes promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    number: u16,
    is_durable: bool,
}

impl Known {
    /// Stands for a file that was never made known.
    pub(crate) const NONE: Self = Self { number: NO_NUMBER, is_durable: false };
}

/// Listens to the requests of this process.
pub struct Tap {
    now_ns: Box<dyn Fn() -> u64 + Send + Sync>,
    is_open: AtomicBool,
    lines: Mutex<Vec<Arc<Line>>>,
    /// Calls that go through no engine.
    calls: Arc<Line>,
    files: Mutex<Files>,
    /// Requests that wait to be taken.
    waiting: AtomicUsize,
    lost: AtomicU64,
}

#[derive(Default)]
struct Files {
    numbers: BTreeMap<String, u16>,
    all: Vec<SeenFile>,
}

/// The requests of one engine.
#[derive(Default)]
pub(crate) struct Line(Mutex<Requests>);

#[derive(Default)]
struct Requests {
    under_way: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    ended: Vec<Seen>,
    is_closed: bool,
}

struct UnderWay {
    /// With its end where that is known before the program asks for it.
    seen: Seen,
    /// The number that its owner gave it.
    token: u64,
    /// Whether it was given away without its end.
    is_given: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tap of this process, if there is one.
pub(crate) fn installed() -> Option<&'static Arc<Tap>> {
    TAP.get()
}

/// Does `call`, and tells the tap of it, if there is one: `request` has its offset and bytes, the result says
/// how many bytes were moved.
pub(crate) fn told(
    file: &OwnedFd,
    request: (Asked, u64, usize),
    call: impl FnOnce() -> std::io::Result<usize>,
) -> std::io::Result<usize> {
    match installed() {
        None => call(),
        Some(tap) => tap.told(file, request, call),
    }
}

impl Tap {
    /// A tap whose times are those of `now_ns`, in ns; that clock must be the same on every thread and never
    /// run backwards.
    pub fn new(now_ns: impl Fn() -> u64 + Send + Sync + 'static) -> Arc<Self> {
        let calls = Arc::new(Line::default());
        Arc::new(Self {
            now_ns: Box::new(now_ns),
            is_open: AtomicBool::new(true),
            lines: Mutex::new(vec![Arc::clone(&calls)]),
            calls,
            files: Mutex::default(),
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        })
    }

    /// Makes this the tap of the process, for all engines that are opened from now on.
    ///
    /// # Errors
    /// When there is one.
    pub fn install(self: &Arc<Self>) -> Result<(), SysError> {
        TAP.set(Arc::clone(self))
            .map_err(|_| SysError::Invalid { what: "requests are listened to already".into() })
    }

    /// Adds to `found` the requests that have ended since the last time, in no order, and returns the moment,
    /// in ns, before which none of those was begun that come later. With `gives_up` those under way are
    /// added too, without their end, which will not be told any more.
    pub fn take(&self, found: &mut Vec<Seen>, gives_up: bool) -> u64 {
        let mut lines = lock(&self.lines);
        // A request that is begun behind this line's turn looks at the clock behind it, too.
        let mut horizon_ns = (self.now_ns)();
        lines.retain(|line| {
            let mut requests = lock(&line.0);
            let gives_up = gives_up || requests.is_closed;
            for under_way in requests.under_way.iter_mut().flatten().filter(|request| !request.is_given) {
                if gives_up {
                    under_way.is_given = true;
                    found.push(under_way.seen);
                } else {
                    horizon_ns = horizon_ns.min(under_way.seen.issue_ns);
                }
            }
            let room = Vec::with_capacity(requests.ended.len());
            let mut ended = std::mem::replace(&mut requests.ended, room);
            let goes_on = !requests.is_closed;
            drop(requests);
            self.waiting.fetch_sub(ended.len(), Ordering::Relaxed);
            found.append(&mut ended);
            goes_on
        });
        horizon_ns
    }

    /// The file with this number, if there is one.
    pub fn file(&self, number: u16) -> Option<SeenFile> {
        lock(&self.files).all.get(usize::from(number)).cloned()
    }

    /// Requests that were not kept: because more of them waited than there is room for, or because 65 535
    /// other files had been seen before theirs.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Keeps nothing from now on.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// A line for one engine.
    pub(crate) fn line(&self) -> Arc<Line> {
        let line = Arc::new(Line::default());
        lock(&self.lines).push(Arc::clone(&line));
        line
    }

    /// The number of `file`. Files with one path are one file.
    pub(crate) fn know(&self, file: &OwnedFd) -> Known {
        let place = format!("/proc/self/fd/{}", file.as_raw_fd());
        let name = std::fs::read_link(&place).map_or(place, |path| path.to_string_lossy().into_owned());
        let flags = rustix::fs::fcntl_getfl(file).unwrap_or(OFlags::empty());
        // O_SYNC has the bit of O_DSYNC.
        let is_durable = flags.contains(OFlags::DSYNC);
        let mut files = lock(&self.files);
        if let Some(number) = files.numbers.get(&name) {
            return Known { number: *number, is_durable };
        }
        let number = u16::try_from(files.all.len()).unwrap_or(NO_NUMBER);
        if number == NO_NUMBER {
            return Known::NONE;
        }
        let bytes = rustix::fs::fstat(file).ok().map(|stat| stat.st_size as u64).filter(|bytes| *bytes > 0);
        files.numbers.insert(name.clone(), number);
        files.all.push(SeenFile { name, bytes });
        Known { number, is_durable }
    }

    fn told(
        &self,
        file: &OwnedFd,
        (asked, offset, bytes): (Asked, u64, usize),
        call: impl FnOnce() -> std::io::Result<usize>,
    ) -> std::io::Result<usize> {
        let index = self.calls.begin(self, self.know(file), (asked, offset, bytes as u64), 0);
        let outcome = call();
        let mut requests = lock(&self.calls.0);
        let now_ns = (self.now_ns)();
        if let (Ok(moved), Some(Some(under_way))) = (&outcome, requests.under_way.get_mut(index as usize)) {
            under_way.seen.bytes = *moved as u64;
        }
        requests.end(self, index, now_ns, outcome.is_err());
        outcome
    }
}

impl Line {
    /// A request is about to be begun; returns its number on this line.
    pub(crate) fn begin(
        &self,
        tap: &Tap,
        file: Known,
        (asked, offset, bytes): (Asked, u64, u64),
        token: u64,
    ) -> u64 {
        let mut requests = lock(&self.0);
        // Not before the lock: see `Tap::take`.
        let issue_ns = (tap.now_ns)();
        let Known { number, is_durable } = file;
        let is_durable = is_durable && asked == Asked::Write;
        let seen = Seen {
            issue_ns,
            completion_ns: None,
            offset,
            bytes,
            file: number,
            asked,
            is_durable,
            has_failed: false,
        };
        let is_given = number == NO_NUMBER;
        if is_given {
            tap.lost.fetch_add(1, Ordering::Relaxed);
        }
        let index = requests.free.pop().unwrap_or_else(|| {
            requests.under_way.push(None);
            requests.under_way.len() - 1
        });
        requests.under_way[index] = Some(UnderWay { seen, token, is_given });
        index as u64
    }

    /// The request with this number has ended, and its owner will ask for it later.
    pub(crate) fn done(&self, tap: &Tap, index: u64) {
        let mut requests = lock(&self.0);
        if let Some(Some(under_way)) = requests.under_way.get_mut(index as usize) {
            under_way.seen.completion_ns = Some((tap.now_ns)());
        }
    }

    /// These have ended, with their numbers on this line as tokens; they get those of their owner back.
    pub(crate) fn end(&self, tap: &Tap, ended: &mut [Completion]) {
        if ended.is_empty() {
            return;
        }
        let mut requests = lock(&self.0);
        let now_ns = (tap.now_ns)();
        for completion in ended {
            let token = requests.end(tap, completion.token, now_ns, completion.result.is_err());
            completion.token = token;
        }
    }

    /// No more requests will come.
    pub(crate) fn close(&self) {
        lock(&self.0).is_closed = true;
    }
}

impl Requests {
    /// Returns the number that its owner gave to the request.
    fn end(&mut self, tap: &Tap, index: u64, now_ns: u64, has_failed: bool) -> u64 {
        let slot = self.under_way.get_mut(index as usize).and_then(Option::take);
        let Some(UnderWay { seen, token, is_given }) = slot else { return index };
        self.free.push(index as usize);
        // The end of a file gives no bytes and is no request.
        let is_empty = seen.bytes == 0 && seen.asked != Asked::Sync;
        if is_given || is_empty || !tap.is_open.load(Ordering::Relaxed) {
            return token;
        }
        if tap.waiting.load(Ordering::Relaxed) >= WAITING_MAX {
            tap.lost.fetch_add(1, Ordering::Relaxed);
            return token;
        }
        tap.waiting.fetch_add(1, Ordering::Relaxed);
        let completion_ns = Some(seen.completion_ns.unwrap_or(now_ns));
        self.ended.push(Seen { completion_ns, has_failed, ..seen });
        token
    }
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;
