//! Tracer of file requests: a listener for all I/O of this process, at most one per process, as the
//! `log` crate has one logger.
//!
//! It sees the requests of every engine from [`crate::engine::open`] and the calls of
//! [`crate::file`], each once, with the time of its start and the time at which the program saw
//! its end.
//!
//! Invariants: without a tracer nothing is recorded and no clock is read; requests never wait for
//! the listener, except for swapping a list; memory is bounded, and requests beyond it are
//! counted.
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::OFlags;

use crate::SysError;

/// The tracer of this process.
static TRACER: OnceLock<Arc<IoTracer>> = OnceLock::new();
/// Most requests that wait for the listener; 48 bytes each.
const WAITING_MAX: usize = 1 << 20;
/// File number after all numbers are used.
const NO_NUMBER: u16 = u16::MAX;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Read from the file.
    Read,
    /// Write to the file.
    Write,
    /// Flush to stable storage.
    Sync,
    /// Freeing of a range.
    Discard,
}

/// An observed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedRequest {
    /// Start, ns of the tracer's clock.
    pub issue_ns: u64,
    /// End as seen by the program, ns of the same clock; `None` while in flight.
    pub completion_ns: Option<u64>,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Its file's number, for [`IoTracer::file`].
    pub file: u16,
    /// Kind.
    pub kind: RequestKind,
    /// Whether it is durable at its end (`O_SYNC`, `O_DSYNC`).
    pub is_durable: bool,
    /// Whether it failed.
    pub has_failed: bool,
}

/// An observed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFile {
    /// Its path when first seen.
    pub name: String,
    /// Its size then, in bytes; `None` for an empty file and for files without a size.
    pub bytes: Option<u64>,
}

/// A file's number, and whether its writes are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileNumber {
    number: u16,
    is_durable: bool,
}

impl FileNumber {
    /// Placeholder for an unregistered file.
    pub(crate) const NONE: Self = Self { number: NO_NUMBER, is_durable: false };
}

/// Listener to the I/O requests of this process.
pub struct IoTracer {
    now_ns: Box<dyn Fn() -> u64 + Send + Sync>,
    is_open: AtomicBool,
    lines: Mutex<Vec<Arc<RequestList>>>,
    /// Calls outside of engines.
    calls: Arc<RequestList>,
    files: Mutex<Files>,
    /// Number of requests that wait to be taken.
    waiting: AtomicUsize,
    lost: AtomicU64,
}

#[derive(Default)]
struct Files {
    numbers: BTreeMap<String, u16>,
    all: Vec<TracedFile>,
}

/// Requests of one engine.
#[derive(Default)]
pub(crate) struct RequestList(Mutex<Requests>);

#[derive(Default)]
struct Requests {
    under_way: Vec<Option<InFlight>>,
    free: Vec<usize>,
    ended: Vec<TracedRequest>,
    is_closed: bool,
}

struct InFlight {
    /// The request, with its end if that is known before the program collects it.
    seen: TracedRequest,
    /// Token from its owner.
    token: u64,
    /// Whether it was reported without its end.
    is_given: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The installed tracer of this process, if any.
pub(crate) fn installed() -> Option<&'static Arc<IoTracer>> {
    TRACER.get()
}

/// Runs `call` and reports it to the tracer, if there is one. `request` has offset and bytes; the
/// result is the number of bytes transferred.
pub(crate) fn trace_call(
    file: &OwnedFd,
    request: (RequestKind, u64, usize),
    call: impl FnOnce() -> std::io::Result<usize>,
) -> std::io::Result<usize> {
    match installed() {
        None => call(),
        Some(tracer) => tracer.trace_call(file, request, call),
    }
}

impl IoTracer {
    /// Creates a tracer with the clock `now_ns`, in ns, which must be the same on every thread and
    /// monotonic.
    pub fn new(now_ns: impl Fn() -> u64 + Send + Sync + 'static) -> Arc<Self> {
        let calls = Arc::new(RequestList::default());
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

    /// Installs this tracer for all engines opened from now on.
    ///
    /// # Errors
    /// A tracer is already installed.
    pub fn install(self: &Arc<Self>) -> Result<(), SysError> {
        TRACER
            .set(Arc::clone(self))
            .map_err(|_| SysError::Invalid { what: "a request tracer is already installed".into() })
    }

    /// Appends to `found` the requests that have ended since the last call, unordered. Returns a
    /// time, in ns: all requests reported later started after it. With `gives_up`, requests in
    /// flight are reported too, without their end, and not again.
    pub fn take(&self, found: &mut Vec<TracedRequest>, gives_up: bool) -> u64 {
        let mut lines = lock(&self.lines);
        // A request that starts after its line is visited reads the clock after this.
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
            let fresh = Vec::with_capacity(requests.ended.len());
            let mut ended = std::mem::replace(&mut requests.ended, fresh);
            let goes_on = !requests.is_closed;
            drop(requests);
            self.waiting.fetch_sub(ended.len(), Ordering::Relaxed);
            found.append(&mut ended);
            goes_on
        });
        horizon_ns
    }

    /// The file with this number, if there is one.
    pub fn file(&self, number: u16) -> Option<TracedFile> {
        lock(&self.files).all.get(usize::from(number)).cloned()
    }

    /// Requests that were dropped: the list was full, or 65,535 other files came first.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Stops recording.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// Creates the list of one engine.
    pub(crate) fn line(&self) -> Arc<RequestList> {
        let line = Arc::new(RequestList::default());
        lock(&self.lines).push(Arc::clone(&line));
        line
    }

    /// Number of `file`. Files with the same path are the same file.
    pub(crate) fn number_of(&self, file: &OwnedFd) -> FileNumber {
        let place = format!("/proc/self/fd/{}", file.as_raw_fd());
        let name = std::fs::read_link(&place).map_or(place, |path| path.to_string_lossy().into_owned());
        let flags = rustix::fs::fcntl_getfl(file).unwrap_or(OFlags::empty());
        // O_SYNC includes the bit of O_DSYNC.
        let is_durable = flags.contains(OFlags::DSYNC);
        let mut files = lock(&self.files);
        if let Some(number) = files.numbers.get(&name) {
            return FileNumber { number: *number, is_durable };
        }
        let number = u16::try_from(files.all.len()).unwrap_or(NO_NUMBER);
        if number == NO_NUMBER {
            return FileNumber::NONE;
        }
        let bytes = rustix::fs::fstat(file).ok().map(|stat| stat.st_size as u64).filter(|bytes| *bytes > 0);
        files.numbers.insert(name.clone(), number);
        files.all.push(TracedFile { name, bytes });
        FileNumber { number, is_durable }
    }

    fn trace_call(
        &self,
        file: &OwnedFd,
        (kind, offset, bytes): (RequestKind, u64, usize),
        call: impl FnOnce() -> std::io::Result<usize>,
    ) -> std::io::Result<usize> {
        let index = self.calls.begin(self, self.number_of(file), (kind, offset, bytes as u64), 0);
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

impl RequestList {
    /// Enters a request that is about to start; returns its number on this line.
    pub(crate) fn begin(
        &self,
        tracer: &IoTracer,
        file: FileNumber,
        (kind, offset, bytes): (RequestKind, u64, u64),
        token: u64,
    ) -> u64 {
        let mut requests = lock(&self.0);
        // After taking the lock: see `IoTracer::take`.
        let issue_ns = (tracer.now_ns)();
        let FileNumber { number, is_durable } = file;
        let is_durable = is_durable && kind == RequestKind::Write;
        let seen = TracedRequest {
            issue_ns,
            completion_ns: None,
            offset,
            bytes,
            file: number,
            kind,
            is_durable,
            has_failed: false,
        };
        let is_given = number == NO_NUMBER;
        if is_given {
            tracer.lost.fetch_add(1, Ordering::Relaxed);
        }
        let index = requests.free.pop().unwrap_or_else(|| {
            requests.under_way.push(None);
            requests.under_way.len() - 1
        });
        requests.under_way[index] = Some(InFlight { seen, token, is_given });
        index as u64
    }

    /// The request with this number has ended, and its owner will collect it later.
    pub(crate) fn done(&self, tracer: &IoTracer, index: u64) {
        let mut requests = lock(&self.0);
        if let Some(Some(under_way)) = requests.under_way.get_mut(index as usize) {
            under_way.seen.completion_ns = Some((tracer.now_ns)());
        }
    }

    /// Requests have ended: each with its number on this line, which is replaced by its owner's
    /// token, and whether it failed.
    pub(crate) fn end<'a>(
        &self,
        tracer: &IoTracer,
        ended: impl ExactSizeIterator<Item = (&'a mut u64, bool)>,
    ) {
        if ended.len() == 0 {
            return;
        }
        let mut requests = lock(&self.0);
        let now_ns = (tracer.now_ns)();
        for (number, has_failed) in ended {
            *number = requests.end(tracer, *number, now_ns, has_failed);
        }
    }

    /// No more requests will come.
    pub(crate) fn close(&self) {
        lock(&self.0).is_closed = true;
    }
}

impl Requests {
    /// Completes a request; returns its owner's token.
    fn end(&mut self, tracer: &IoTracer, index: u64, now_ns: u64, has_failed: bool) -> u64 {
        let slot = self.under_way.get_mut(index as usize).and_then(Option::take);
        let Some(InFlight { seen, token, is_given }) = slot else { return index };
        self.free.push(index as usize);
        // A read at the end of file transfers no bytes and is not reported.
        let is_empty = seen.bytes == 0 && seen.kind != RequestKind::Sync;
        if is_given || is_empty || !tracer.is_open.load(Ordering::Relaxed) {
            return token;
        }
        if tracer.waiting.load(Ordering::Relaxed) >= WAITING_MAX {
            tracer.lost.fetch_add(1, Ordering::Relaxed);
            return token;
        }
        tracer.waiting.fetch_add(1, Ordering::Relaxed);
        let completion_ns = Some(seen.completion_ns.unwrap_or(now_ns));
        self.ended.push(TracedRequest { completion_ns, has_failed, ..seen });
        token
    }
}

#[cfg(test)]
#[path = "io_trace_tests.rs"]
mod tests;
