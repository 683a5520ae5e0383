//! Retention limits of recordings: what may be removed, what was removed, and what is durable
//! elsewhere.
//!
//! A recording with a limit has two small files next to its journal. Each has one line in the
//! journal's format and is replaced as a whole. `removed.jsonl`, written by the recorder, has the
//! number of the volume's first remaining segment, with the counts of the removed events.
//! `drained.jsonl`, written by a drain, lists what is durable elsewhere: up to which segment of
//! this volume, and up to which event of each stream. Invariant: a removed segment's counts are
//! durable in `removed.jsonl` before its file is deleted.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use keepup_stream::ledger::Count;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::RecordingError;
use crate::files::{open_regular, open_regular_to_write, replace};
use crate::id::Id;
use crate::layout::segment_file_name;
use crate::line::{LINE_BYTES_MAX, parse_line, put_line};
use crate::manifest::Manifest;

pub use crate::manifest::{Keep, KeepLimit, KeepUntil};

/// File with the counts of removed events.
pub const REMOVED_FILE: &str = "removed.jsonl";
/// File with the drain marks: what is durable elsewhere.
pub const DRAINED_FILE: &str = "drained.jsonl";

/// Start of the names of files with the progress of a copy to an archive.
pub const ARCHIVE_STATE: &str = "archive-";

/// Counts of one volume's removed segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The recording.
    pub recording: Id,
    /// Number of the volume.
    pub volume_index: u32,
    /// First remaining segment: all before it were removed.
    pub first_segment: u32,
    /// Removed events of each stream, by id.
    pub streams: BTreeMap<u32, RemovedStream>,
}

/// Removed events of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedStream {
    /// Events.
    pub events: u64,
    /// Payload bytes of those.
    pub bytes: u64,
    /// One past the last of them.
    pub end_sequence: u64,
}

/// Drain marks of a recording: what is durable elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drained {
    /// The recording.
    pub recording: Id,
    /// One past the last event up to which each stream is durable elsewhere or known to be
    /// missing.
    pub streams: BTreeMap<u32, u64>,
    /// All segments of this volume below this number are durable elsewhere.
    #[serde(default)]
    pub segments: u32,
}

impl RemovedStream {
    /// Count of the removed events.
    pub fn count(&self) -> Count {
        Count { events: self.events, bytes: self.bytes }
    }

    /// Adds another part of the same stream.
    pub fn add(&mut self, other: &RemovedStream) {
        self.events = self.events.saturating_add(other.events);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.end_sequence = self.end_sequence.max(other.end_sequence);
    }

    /// Explains as many missing numbers of `hole` as possible; returns how many. Only the number
    /// of removed events is stored, not which ones.
    pub(crate) fn explain(&mut self, hole: &Range<u64>, unexplained: u64) -> u64 {
        let within = self.end_sequence.min(hole.end).saturating_sub(hole.start);
        let taken = unexplained.min(within).min(self.events);
        self.events -= taken;
        taken
    }
}

impl Removed {
    /// Reads the removed counts of the recording in `dir`; empty without the file.
    ///
    /// # Errors
    /// The file cannot be used, or belongs to another recording or volume.
    pub fn read(dir: &Path, manifest: &Manifest) -> Result<Removed, RecordingError> {
        let own = (manifest.recording, manifest.volume_index);
        match read::<Removed>(&dir.join(REMOVED_FILE), |file| (file.recording, file.volume_index) == own)? {
            Some(removed) => Ok(removed),
            None => Ok(Removed { recording: own.0, volume_index: own.1, ..Removed::default() }),
        }
    }

    /// Durably enters that segment `first_segment`, which had `streams`, is removed; returns its
    /// path. [`take_away`] comes next.
    ///
    /// # Errors
    /// The system refuses. Nothing changes then.
    pub fn enter(&mut self, dir: &Path, streams: &[(u32, RemovedStream)]) -> Result<PathBuf, RecordingError> {
        let mut next = self.clone();
        for (id, stream) in streams {
            next.streams.entry(*id).or_default().add(stream);
        }
        next.first_segment += 1;
        write(&dir.join(REMOVED_FILE), &next)?;
        let path = dir.join(segment_file_name(self.first_segment));
        *self = next;
        Ok(path)
    }

    /// Files of removed segments that are still in `dir`, as after a crash.
    pub(crate) fn left_over(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        // Only the last one: each file is deleted before the next entry.
        let last = self.first_segment.checked_sub(1).map(|index| dir.join(segment_file_name(index)));
        last.into_iter().filter(|path| path.symlink_metadata().is_ok())
    }
}

/// Deletes the name of a removed segment. Returns the file; its space is freed when that is
/// dropped.
///
/// # Errors
/// The system refuses. Recovery deletes the file then.
pub fn take_away(path: &Path) -> Result<File, RecordingError> {
    let take_away = || {
        // A sealed file is read-only.
        open_regular(path)?.set_permissions(Permissions::from_mode(0o600))?;
        let file = open_regular_to_write(path)?;
        fs::remove_file(path)?;
        Ok(file)
    };
    take_away().map_err(RecordingError::io("remove", path))
}

impl Drained {
    /// Reads the drain marks of the recording in `dir`; empty without the file.
    ///
    /// # Errors
    /// The file cannot be used, or belongs to another recording.
    pub fn read(dir: &Path, recording: Id) -> Result<Drained, RecordingError> {
        let found = read::<Drained>(&dir.join(DRAINED_FILE), |file| file.recording == recording)?;
        Ok(found.unwrap_or(Drained { recording, ..Drained::default() }))
    }

    /// Enters in `dir` that these streams are durable elsewhere up to these events, and all
    /// segments of this volume below number `segments`. Marks never go back.
    ///
    /// # Errors
    /// The file cannot be used, or the system refuses.
    pub fn enter(
        dir: &Path,
        recording: Id,
        ends: &BTreeMap<u32, u64>,
        segments: u32,
    ) -> Result<(), RecordingError> {
        let known = Drained::read(dir, recording)?;
        let mut next = known.clone();
        for (&stream, &end) in ends {
            let known = next.streams.entry(stream).or_default();
            *known = end.max(*known);
        }
        next.segments = next.segments.max(segments);
        if next == known { Ok(()) } else { write(&dir.join(DRAINED_FILE), &next) }
    }

    /// Whether all events of segment `index`, which has `streams`, are durable elsewhere.
    pub fn has(&self, index: u32, streams: &[(u32, RemovedStream)]) -> bool {
        let end = |id: &u32| self.streams.get(id).copied().unwrap_or(0);
        index < self.segments || streams.iter().all(|(id, stream)| stream.end_sequence <= end(id))
    }
}

fn read<T: DeserializeOwned>(path: &Path, is_own: impl Fn(&T) -> bool) -> Result<Option<T>, RecordingError> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RecordingError::open("open", path)(error)),
    };
    let mut text = Vec::new();
    file.take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut text).map_err(RecordingError::io("read", path))?;
    let fault = |what: String| RecordingError::Manifest { path: path.to_path_buf(), what: what.into() };
    let line = text.strip_suffix(b"\n").ok_or_else(|| fault("it is not a whole line".to_owned()))?;
    let found = parse_line(line).map_err(fault)?;
    if !is_own(&found) {
        return Err(fault("it is of another recording or volume".to_owned()));
    }
    Ok(Some(found))
}

/// Atomically and durably replaces the file with `content`.
fn write(path: &Path, content: &impl Serialize) -> Result<(), RecordingError> {
    let mut text = Vec::new();
    put_line(&mut text, content)
        .map_err(|what| RecordingError::Manifest { path: path.to_path_buf(), what: what.into() })?;
    replace(path, |mut file| file.write_all(&text)).map_err(RecordingError::io("write", path))
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
