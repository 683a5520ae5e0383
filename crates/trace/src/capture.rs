//! Capture of this process's own requests to files.
//!
//! A separate thread takes requests from the tracer, sorts them by issue time and writes them. Invariants:
//! threads that issue requests never wait for the trace; a request is written once no earlier one can follow;
//! memory is bounded: when [`HELD_MAX`] requests wait for an older one, that one is written without its
//! completion; requests that are not recorded are counted in the trace.
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::io_trace::{IoTracer, RequestKind, TracedFile, TracedRequest};
use keepup_sys::output::sync;

use super::convert::create;
use super::header::{Corrections, Level, Origin, TraceClock, TraceDevice, TraceHeader, Unit};
use super::native::NativeWriter;
use super::record::{Flags, Operation, Record};
use super::{Format, TraceError};

/// Interval between polls of the tracer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Largest number of requests that wait for an older one; 48 bytes each.
const HELD_MAX: usize = 1 << 20;
const OUT_BYTES: usize = 256 << 10;

/// A capture in progress.
pub struct Capture {
    tap: Arc<IoTracer>,
    path: PathBuf,
    end: Sender<()>,
    thread: JoinHandle<io::Result<Captured>>,
}

/// Totals of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Requests.
    pub records: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Files.
    pub files: u64,
    /// Time from the first to the last issue, ns.
    pub span_ns: u64,
    /// Size of the trace, bytes.
    pub trace_bytes: u64,
    /// Requests that failed, have no completion, or were not recorded.
    pub corrections: Corrections,
}

impl Capture {
    /// Starts a capture into the new file `path`. It covers direct calls, and files that are passed to I/O
    /// engines from now on.
    ///
    /// # Errors
    /// `path` exists or cannot be created, or another capture is in progress.
    pub fn start(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Io { action: "write", path: path.to_owned(), source };
        let file = create(path)?;
        let tap = IoTracer::new(move || clock.now_ns());
        let begun = tap.install().map_err(io::Error::other).and_then(|()| {
            let (end, ends) = channel();
            let taps = Arc::clone(&tap);
            let body = move || {
                let outcome = run(&taps, file, &ends);
                // After an error nothing takes the requests any more.
                taps.close();
                outcome
            };
            let thread = std::thread::Builder::new().name("ku-trace".into()).spawn(body)?;
            Ok((end, thread))
        });
        match begun {
            Ok((end, thread)) => Ok(Self { tap, path: path.to_owned(), end, thread }),
            Err(e) => {
                drop(std::fs::remove_file(path));
                Err(failed(e))
            }
        }
    }

    /// Ends the capture. Requests in flight are written without a completion. A trace without requests is
    /// removed, like one after a failed write.
    ///
    /// # Errors
    /// A failed write.
    pub fn finish(self) -> Result<Captured, TraceError> {
        // If the thread has ended already, joining it returns its error.
        let _ = self.end.send(());
        let died = || Err(io::Error::other("the writer thread panicked"));
        let outcome = self.thread.join().unwrap_or_else(|_| died());
        self.tap.close();
        if !outcome.as_ref().is_ok_and(|captured| captured.records > 0) {
            drop(std::fs::remove_file(&self.path));
        }
        outcome.map_err(|source| TraceError::Io { action: "write", path: self.path, source })
    }
}

fn run(tap: &IoTracer, file: File, end: &Receiver<()>) -> io::Result<Captured> {
    let size = file.try_clone()?;
    let mut sorter = CaptureSorter::new(BufWriter::with_capacity(OUT_BYTES, file))?;
    loop {
        let is_over = end.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout);
        let gives_up = is_over || sorter.held.len() > HELD_MAX;
        let horizon_ns = tap.take(&mut sorter.held, gives_up);
        sorter.write_until(if is_over { u64::MAX } else { horizon_ns }, &|number| tap.file(number))?;
        if is_over {
            let (_, mut captured) = sorter.finish(tap.lost())?;
            sync(&size)?;
            captured.trace_bytes = size.metadata()?.len();
            return Ok(captured);
        }
    }
}

fn header() -> TraceHeader {
    TraceHeader {
        format: Format::Native,
        source: Vec::new(),
        unit: Unit::Bytes,
        clock: TraceClock::Issue,
        resolution_ns: 1,
        level: Level::File,
        origin: Origin::Captured,
    }
}

/// Sorts captured requests and writes them.
struct CaptureSorter<W: Write> {
    writer: NativeWriter<W>,
    /// Requests not written yet.
    held: Vec<TracedRequest>,
    first_ns: Option<u64>,
    captured: Captured,
}

impl<W: Write> CaptureSorter<W> {
    fn new(out: W) -> io::Result<Self> {
        let writer = NativeWriter::new(out, &header())?;
        let (held, captured) = (Vec::new(), Captured::default());
        Ok(Self { writer, held, first_ns: None, captured })
    }

    /// Writes all requests issued before `horizon_ns`: no earlier one can follow. `files` returns files by
    /// number.
    fn write_until(&mut self, horizon_ns: u64, files: &dyn Fn(u16) -> Option<TracedFile>) -> io::Result<()> {
        // Sort only if there is something to write.
        if self.held.iter().any(|seen| seen.issue_ns < horizon_ns) {
            self.held.sort_by_key(|seen| seen.issue_ns);
        }
        let ready = self.held.partition_point(|seen| seen.issue_ns < horizon_ns);
        let mut held = std::mem::take(&mut self.held);
        let written = held.drain(..ready).try_for_each(|seen| self.write(&seen, files));
        self.held = held;
        written
    }

    fn write(&mut self, seen: &TracedRequest, files: &dyn Fn(u16) -> Option<TracedFile>) -> io::Result<()> {
        let captured = &mut self.captured;
        let Ok(bytes) = u32::try_from(seen.bytes) else {
            captured.corrections.too_large += 1;
            return Ok(());
        };
        while captured.files <= u64::from(seen.file) {
            let Some(file) = files(captured.files as u16) else {
                return Err(io::Error::other("a request has an unknown file"));
            };
            self.writer.device(&TraceDevice { name: file.name, bytes: file.bytes })?;
            captured.files += 1;
        }
        let first_ns = *self.first_ns.get_or_insert(seen.issue_ns);
        let operation = match seen.kind {
            RequestKind::Read => Operation::Read,
            RequestKind::Write => Operation::Write,
            RequestKind::Sync => Operation::Flush,
            RequestKind::Discard => Operation::Discard,
        };
        let since = |ns: u64| ns.saturating_sub(first_ns);
        let flags = if seen.is_durable { Flags::FUA } else { Flags::NONE };
        let record = Record::new(since(seen.issue_ns), operation, seen.file, seen.offset, bytes);
        self.writer.record(&record.completed(seen.completion_ns.map(since)).flagged(flags))?;
        captured.records += 1;
        captured.span_ns = since(seen.issue_ns);
        captured.read_bytes += if operation == Operation::Read { seen.bytes } else { 0 };
        captured.written_bytes += if operation == Operation::Write { seen.bytes } else { 0 };
        captured.corrections.failed += u64::from(seen.has_failed);
        captured.corrections.without_completion += u64::from(seen.completion_ns.is_none());
        Ok(())
    }

    fn finish(mut self, lost: u64) -> io::Result<(W, Captured)> {
        self.captured.corrections.not_kept = lost;
        Ok((self.writer.finish(&self.captured.corrections)?, self.captured))
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
