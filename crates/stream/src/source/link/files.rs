//! Files in a directory, as the programs of detectors write them: each event is a file.
//!
//! A file is written under a hidden name and renamed when it is complete. Like a detector server with a
//! disk of limited size, each connection removes its oldest files. Nobody answers, so nothing here waits for
//! the recorder: a file that is removed before it was recorded is lost.
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::StreamReport;
use super::super::event::Event;
use super::super::plan::SourcePlan;
use super::{Framing, Link};
use crate::client::{ClientError, Sent};
use crate::wire::Bye;

/// End of the names of files.
const SUFFIX: &str = ".raw";
/// End of the names of files that are not complete.
const UNFINISHED: &str = ".part";
/// Space that a file takes is a multiple of this.
const SPACE_BYTES: u64 = 4096;
/// Files that a connection never removes: the recorder reads a file some time after it is complete.
const KEPT_MIN: usize = 2;
/// Stream, sequence number and length, which [`Link::send`] takes instead of a header.
const HEADER_BYTES: usize = 4 + 8 + 8;

/// Directory into which a simulated program writes files, and how many of them stay there.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    prefix: String,
    keep_bytes: u64,
}

impl Folder {
    /// Opens an existing directory for files `PREFIX-STREAM-NUMBER.raw`. When all of them together exceed
    /// `keep_bytes`, the oldest are removed, but never the last two of a connection.
    ///
    /// # Errors
    /// The directory cannot be read, or contains files of an earlier run, which would be replaced.
    pub fn open(path: &Path, prefix: &str, keep_bytes: u64) -> io::Result<Self> {
        let (start, hidden) = (format!("{prefix}-"), format!(".{prefix}-"));
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let text = name.to_string_lossy();
            let is_unfinished = text.starts_with(&hidden) && text.ends_with(UNFINISHED);
            if text.starts_with(&start) && text.ends_with(SUFFIX) || is_unfinished {
                let why =
                    format!("it contains {text} of an earlier run; remove it, or use another directory");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
        }
        Ok(Self { path: path.to_owned(), prefix: prefix.to_owned(), keep_bytes })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, action: &'static str, source: io::Error) -> ClientError {
        ClientError::File { action, path: self.path.clone(), source }
    }
}

/// A file that is not complete.
struct Unfinished {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    bytes: u64,
    missing_bytes: u64,
}

/// Files of the streams of one connection.
pub(super) struct Files {
    folder: Folder,
    /// Share of this connection in what the directory may keep.
    keep_bytes: u64,
    unfinished: Option<Unfinished>,
    /// Complete files, the oldest first, with the space that they take, bytes.
    kept: VecDeque<(PathBuf, u64)>,
    kept_bytes: u64,
    streams: usize,
}

impl Files {
    /// Files of `connection` in `folder`.
    pub(super) fn open(plan: &SourcePlan, connection: u32, folder: &Folder) -> Self {
        let connections = plan.connections.max(1);
        let streams = (connection..plan.streams).step_by(connections as usize).count();
        Self {
            folder: folder.clone(),
            keep_bytes: folder.keep_bytes / u64::from(connections),
            unfinished: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
            streams,
        }
    }

    /// Creates the file of an event.
    fn start(&mut self, header: &[u8]) -> io::Result<()> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "an event without its header");
        let header: &[u8; HEADER_BYTES] = header.try_into().map_err(|_| invalid())?;
        let number = |from: usize, to: usize| {
            header[from..to].iter().fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
        };
        let (stream, sequence, bytes) = (number(0, 4), number(4, 12), number(12, 20));
        let name = format!("{}-{stream}-{sequence:06}{SUFFIX}", self.folder.prefix);
        let temporary = self.folder.path.join(format!(".{name}{UNFINISHED}"));
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        let path = self.folder.path.join(name);
        self.unfinished = Some(Unfinished { file, temporary, path, bytes, missing_bytes: bytes });
        self.complete()
    }

    /// Appends to the file.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.file.write_all(bytes)?;
            unfinished.missing_bytes = unfinished.missing_bytes.saturating_sub(bytes.len() as u64);
        }
        self.complete()
    }

    /// Renames the file if nothing is missing, and removes the oldest ones.
    fn complete(&mut self) -> io::Result<()> {
        let Some(whole) = self.unfinished.take_if(|unfinished| unfinished.missing_bytes == 0) else {
            return Ok(());
        };
        drop(whole.file);
        fs::rename(&whole.temporary, &whole.path)?;
        let space_bytes = whole.bytes.max(1).next_multiple_of(SPACE_BYTES);
        self.kept_bytes = self.kept_bytes.saturating_add(space_bytes);
        self.kept.push_back((whole.path, space_bytes));
        while self.kept_bytes > self.keep_bytes && self.kept.len() > KEPT_MIN {
            let Some((oldest, bytes)) = self.kept.pop_front() else { break };
            self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
            match fs::remove_file(&oldest) {
                // Someone else may clean up.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// No unfinished file is left behind.
impl Drop for Files {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            let _ = fs::remove_file(&unfinished.temporary);
        }
    }
}

impl Framing for Files {
    fn has_checksum(&self) -> bool {
        false
    }

    /// What [`Link::send`] needs to know of the event; it is not part of the file.
    fn put_header(&self, event: &Event, _timestamp_ns: u64, _crc: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&event.stream.to_be_bytes());
        out.extend_from_slice(&event.sequence.to_be_bytes());
        out.extend_from_slice(&event.bytes.to_be_bytes());
    }
}

impl Link for Files {
    fn event_bytes_max(&self) -> u64 {
        u64::MAX
    }

    fn first_sequences(&self) -> Vec<u64> {
        vec![0; self.streams]
    }

    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        _on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        while let Some(slice) = slices.first() {
            let written = match self.unfinished.is_some() {
                true => self.append(slice),
                // Payload of an empty event, or no trailer.
                false if slice.is_empty() => Ok(()),
                false => self.start(slice),
            };
            written.map_err(|source| self.folder.error("write a file to", source))?;
            *slices = &mut std::mem::take(slices)[1..];
        }
        Ok(Sent::All)
    }

    fn poll(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    /// Waits for the disk are part of each write, so they count as work of the source.
    fn blocked_ns(&self) -> (u64, u64) {
        (0, 0)
    }

    fn durable_events(&self, _streams: &[StreamReport]) -> u64 {
        0
    }

    /// The last files stay, because the recorder may not have read them yet.
    fn finish(self: Box<Self>, _streams: &[StreamReport], _timeout: Duration) -> Result<Bye, ClientError> {
        Ok(Bye { streams: Vec::new() })
    }

    fn timed_out(&self, action: &'static str, _waited: Duration) -> ClientError {
        self.folder.error(action, io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
