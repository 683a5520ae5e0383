//! Reads a journal line by line, and continues when the journal has grown.
//!
//! Invariant: memory is bounded by the longest legal line, whatever the file contains.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{JOURNAL_FILE, JournalRecord};
use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::line::{LINE_BYTES_MAX, parse_line};

const PIECE_BYTES: usize = 64 << 10;

/// Incomplete last line of a journal after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Number of the line, from 1.
    pub line: u64,
    /// Offset of the line in the file, bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: u64,
}

/// An unusable line of a journal that is not the last one: damaged, or contradicting earlier
/// lines. Also a damaged manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedLine {
    /// The journal.
    pub file: PathBuf,
    /// Number of the line, from 1; 0 for the whole file.
    pub line: u64,
    /// Offset of the line in the file, bytes.
    pub offset: u64,
    /// Problem.
    pub what: String,
}

impl fmt::Display for DamagedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, offset, what } = self;
        if *line == 0 {
            return write!(f, "cannot trust {}: {what}", file.display());
        }
        write!(f, "cannot use line {line} of {}, at offset {offset}: {what}", file.display())
    }
}

/// Most damaged lines that are listed; further ones are not.
const DAMAGED_LINES_MAX: usize = 100;

/// Takes a record, or returns the contradiction.
pub(crate) type Sink<'a> = dyn FnMut(JournalRecord) -> Result<(), String> + 'a;

/// Reads whole lines as they appear.
#[derive(Debug)]
pub(crate) struct JournalReader {
    file: File,
    path: PathBuf,
    /// Offset of the first unread line.
    offset: u64,
    /// Lines read so far.
    lines: u64,
    /// Unprocessed bytes from `offset` on: at most a line and a piece.
    pending: Vec<u8>,
}

impl JournalReader {
    pub(crate) fn open(dir: &Path) -> Result<JournalReader, RecordingError> {
        let path = dir.join(JOURNAL_FILE);
        let file = open_regular(&path).map_err(RecordingError::open("open the journal", &path))?;
        Ok(JournalReader { file, path, offset: 0, lines: 0, pending: Vec::new() })
    }

    /// Passes all new complete lines to `sink`; returns whether there were any.
    pub(crate) fn poll(&mut self, sink: &mut Sink<'_>) -> Result<bool, RecordingError> {
        self.read_on(sink, None)
    }

    /// Like `poll`, but skips lines that are damaged or refused by `sink`; returns the first of
    /// them.
    pub(crate) fn read_past_damage(
        &mut self,
        sink: &mut Sink<'_>,
    ) -> Result<Vec<DamagedLine>, RecordingError> {
        let mut damaged = Vec::new();
        self.read_on(sink, Some(&mut damaged))?;
        Ok(damaged)
    }

    fn read_on(
        &mut self,
        sink: &mut Sink<'_>,
        mut damaged: Option<&mut Vec<DamagedLine>>,
    ) -> Result<bool, RecordingError> {
        let lines_before = self.lines;
        // Part of a line may have been cut off and replaced since.
        self.pending.clear();
        loop {
            let known = self.pending.len();
            self.pending.resize(known + PIECE_BYTES.max(known), 0);
            let at = self.offset + known as u64;
            let read = read_fully_at(&self.file, &mut self.pending[known..], at);
            let read = read.map_err(RecordingError::io("read the journal", &self.path))?;
            self.pending.truncate(known + read);
            if read == 0 {
                return Ok(self.lines != lines_before);
            }
            self.take_lines(sink, damaged.as_deref_mut())?;
        }
    }

    /// Incomplete line after the last complete one.
    pub(crate) fn torn_tail(&self) -> Option<TornTail> {
        let bytes = self.pending.len() as u64;
        (bytes > 0).then_some(TornTail { line: self.lines + 1, offset: self.offset, bytes })
    }

    fn take_lines(
        &mut self,
        sink: &mut Sink<'_>,
        mut damaged: Option<&mut Vec<DamagedLine>>,
    ) -> Result<(), RecordingError> {
        let mut start = 0;
        let mut outcome = Ok(());
        while let Some(length) = self.pending[start..].iter().position(|&byte| byte == b'\n') {
            let line = &self.pending[start..start + length];
            let is_last = start + length + 1 == self.pending.len();
            match parse_line(line) {
                Ok(record) => outcome = sink(record),
                // Possibly the last line, torn by a crash: the next read shows whether more
                // follows.
                Err(_) if is_last => break,
                Err(what) => outcome = Err(what),
            }
            if let (Err(what), Some(damaged)) = (&outcome, &mut damaged) {
                if damaged.len() < DAMAGED_LINES_MAX {
                    let (line, offset) = (self.lines + 1, self.offset + start as u64);
                    damaged.push(DamagedLine { file: self.path.clone(), line, offset, what: what.clone() });
                }
                outcome = Ok(());
            }
            if outcome.is_err() {
                break;
            }
            start += length + 1;
            self.lines += 1;
        }
        self.pending.drain(..start);
        self.offset += start as u64;
        if outcome.is_ok() && self.pending.len() > LINE_BYTES_MAX {
            outcome = Err(format!("it is longer than {LINE_BYTES_MAX} bytes"));
        }
        let (path, line, offset) = (&self.path, self.lines + 1, self.offset);
        outcome.map_err(|what| RecordingError::JournalLine { path: path.clone(), line, offset, what })
    }
}
