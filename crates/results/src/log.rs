//! Event log: append during a measurement, read later.
//!
//! Invariants: append-only; all events except samples have reached the kernel when `append`
//! returns, so a process crash loses at most some samples; a reader accepts an incomplete last line
//! and no other damage.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Take, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use keepup_sys::regular;

use crate::error::ResultsError;
use crate::event::Event;

/// Maximum line length. A histogram of 3 digits over 8 decades stays below 1 MiB.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Maximum log size: two weeks of ten samples per second. Reading more would take minutes.
const LOG_BYTES_MAX: u64 = 4 << 30;

/// Writer of `events.jsonl`.
#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: BufWriter<File>,
    /// After a failed write the end of the file is unknown; a further line might follow an
    /// incomplete one.
    broken: bool,
}

impl EventLog {
    /// Creates a log.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub(crate) fn create(path: &Path) -> Result<Self, ResultsError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(ResultsError::io("create the event log", path))?;
        Ok(Self { path: path.to_path_buf(), file: BufWriter::new(file), broken: false })
    }

    /// Continues a log; an incomplete last line, left by a crash, is cut off.
    ///
    /// # Errors
    /// It does not exist, or a system error.
    pub(crate) fn reopen(path: &Path) -> Result<Self, ResultsError> {
        let fail = |what| ResultsError::io(what, path);
        let file = regular::open_to_append(path).map_err(fail("open the event log"))?;
        let length = file.metadata().map_err(fail("read the metadata of the event log"))?.len();
        let whole = whole_lines(&file, length).map_err(fail("read the event log"))?;
        if whole < length {
            file.set_len(whole).map_err(fail("truncate the incomplete last line of the event log"))?;
        }
        Ok(Self { path: path.to_path_buf(), file: BufWriter::new(file), broken: false })
    }

    /// Appends one event. Samples may be buffered; other events are written at once.
    ///
    /// # Errors
    /// The write failed, or an earlier one did.
    pub fn append(&mut self, event: &Event) -> Result<(), ResultsError> {
        self.guarded(|file| {
            let mut line = serde_json::to_vec(event)?;
            line.push(b'\n');
            file.write_all(&line)?;
            if matches!(event, Event::Sample { .. }) { Ok(()) } else { file.flush() }
        })
    }

    /// Closes the log durably.
    ///
    /// # Errors
    /// The write or the flush failed, or an earlier write did.
    pub fn finish(mut self) -> Result<(), ResultsError> {
        self.guarded(|file| {
            file.flush()?;
            file.get_ref().sync_all()
        })
    }

    fn guarded(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), ResultsError> {
        if self.broken {
            return Err(ResultsError::LogBroken { path: self.path.clone() });
        }
        write(&mut self.file).map_err(|source| {
            self.broken = true;
            ResultsError::Io { what: "append to the event log", path: self.path.clone(), source }
        })
    }
}

/// Length of the complete lines, searched from the end.
fn whole_lines(file: &File, length: u64) -> std::io::Result<u64> {
    let mut end = length;
    let mut piece = vec![0; 64 << 10];
    while end > 0 {
        let begin = end.saturating_sub(piece.len() as u64);
        let part = &mut piece[..usize::try_from(end - begin).unwrap_or(0)];
        file.read_exact_at(part, begin)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// Streaming reader of an event log, with constant memory use.
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    file: BufReader<Take<File>>,
    line: u64,
    /// Length of the last line, bytes.
    line_bytes: u64,
    /// Bytes read so far.
    bytes: u64,
    ended: bool,
}

impl EventReader {
    pub(crate) fn open(path: &Path) -> Result<Self, ResultsError> {
        let file = regular::open(path).map_err(ResultsError::io("open the event log", path))?;
        let file = BufReader::new(file.take(LOG_BYTES_MAX));
        let (line, line_bytes, bytes) = (0, 0, 0);
        Ok(Self { path: path.to_path_buf(), file, line, line_bytes, bytes, ended: false })
    }

    /// Length of the last event's line, bytes.
    pub(crate) fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    fn read(&mut self) -> Result<Option<Event>, ResultsError> {
        let mut text = Vec::new();
        let count = Read::take(&mut self.file, LINE_BYTES_MAX)
            .read_until(b'\n', &mut text)
            .map_err(ResultsError::io("read the event log", &self.path))?;
        self.line_bytes = count as u64;
        self.bytes += self.line_bytes;
        if self.bytes == LOG_BYTES_MAX {
            return Err(self.damage(format!("the log is longer than {LOG_BYTES_MAX} bytes")));
        }
        if count == 0 {
            return Ok(None);
        }
        self.line += 1;
        if count as u64 == LINE_BYTES_MAX {
            return Err(self.damage(format!("longer than {LINE_BYTES_MAX} bytes")));
        }
        match serde_json::from_slice(&text) {
            Ok(event) => Ok(Some(event)),
            // Only the last line can lack its line feed, which a crash cuts off.
            Err(_) if text.last() != Some(&b'\n') => Ok(None),
            Err(error) => Err(self.damage(error.to_string())),
        }
    }

    fn damage(&self, reason: String) -> ResultsError {
        ResultsError::Event { path: self.path.clone(), line: self.line, reason }
    }
}

impl Iterator for EventReader {
    type Item = Result<Event, ResultsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.read().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
