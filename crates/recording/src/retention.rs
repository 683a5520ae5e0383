//! Recordings that are kept for so long or so large only: what may go, what has gone, and what is elsewhere.
//!
//! Two small files lie beside the journal of such a recording. Each has one line like the journal's and is
//! replaced as a whole: `removed.jsonl`, by the recorder, says up to which segment the volume's oldest ones
//! were removed, with the counts of their events; `drained.jsonl`, by a drain, what of it is durable
//! elsewhere:
//! up to which segment this volume, and up to which event each stream. Invariant: what a removed segment had
//! is in `removed.jsonl`, durable, before the segment's file goes.

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

/// Says what was removed.
pub const REMOVED_FILE: &str = "removed.jsonl";
/// Says what is durable elsewhere.
pub const DRAINED_FILE: &str = "drained.jsonl";

/// How much of a recording is kept, as `keepup.json` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// What is beyond this may go.
    pub limit: KeepLimit,
    /// It may go without being anywhere else.
    pub disposable: bool,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepLimit {
    /// So many bytes on all volumes together.
    Bytes(u64),
    /// What was sealed less than so many seconds ago.
    Seconds(u64),
}

/// What one volume's removed segments had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The recording.
    pub recording: Id,
    /// Number of the volume.
    pub volume_index: u32,
    /// The first segment that is still there: all before it were removed.
    pub first_segment: u32,
    /// What was removed of each stream, by id.
    pub streams: BTreeMap<u32, RemovedStream>,
}

/// What was removed of a stream.
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

/// What of a recording is durable elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drained {
    /// The recording.
    pub recording: Id,
    /// One past the last event up to which each stream is durable elsewhere, or known to be missing.
    pub streams: BTreeMap<u32, u64>,
    /// Everything in segments of this volume with a lower number is durable elsewhere.
    #[serde(default)]
    pub segments: u32,
}

impl RemovedStream {
    /// Its events.
    pub fn count(&self) -> Count {
        Count { events: self.events, bytes: self.bytes }
    }

    /// Takes in another part of the same stream.
    pub fn add(&mut self, other: &RemovedStream) {
        self.events = self.events.saturating_add(other.events);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.end_sequence = self.end_sequence.max(other.end_sequence);
    }

    /// Takes as many numbers of `hole`, which lacks an explanation, as this can explain; returns how many.
    /// Which events were removed is not remembered one by one, how many is.
    pub(crate) fn explain(&mut self, hole: &Range<u64>, unexplained: u64) -> u64 {
        let within = self.end_sequence.min(hole.end).saturating_sub(hole.start);
        let taken = unexplained.min(within).min(self.events);
        self.events -= taken;
        taken
    }
}

impl Removed {
    /// Reads what was removed of the recording in `dir`; nothing where there is no such file.
    ///
    /// # Errors
    /// When the file cannot be used, or is of another recording or volume.
    pub fn read(dir: &Path, manifest: &Manifest) -> Result<Removed, RecordingError> {
        let own = (manifest.recording, manifest.volume_index);
        match read::<Removed>(&dir.join(REMOVED_FILE), |file| (file.recording, file.volume_index) == own)? {
            Some(removed) => Ok(removed),
            None => Ok(Removed { recording: own.0, volume_index: own.1, ..Removed::default() }),
        }
    }

    /// Enters durably that segment `first_segment`, which had `streams`, is removed; returns its path.
    /// [`take_away`] comes next.
    ///
    /// # Errors
    /// When the system refuses. Nothing is changed then.
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

    /// Files of segments that were entered here and are still in `dir`, as after a crash.
    pub(crate) fn left_over(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        // The last one entered: each was taken away before the next was entered.
        let last = self.first_segment.checked_sub(1).map(|index| dir.join(segment_file_name(index)));
        last.into_iter().filter(|path| path.symlink_metadata().is_ok())
    }
}

/// Takes the name of a removed segment away. Returns the file, whose bytes are free when it is dropped.
///
/// # Errors
/// When the system refuses. Recovery takes the file away then.
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
    /// Reads what of the recording in `dir` is elsewhere; nothing where there is no such file.
    ///
    /// # Errors
    /// When the file cannot be used, or is of another recording.
    pub fn read(dir: &Path, recording: Id) -> Result<Drained, RecordingError> {
        let found = read::<Drained>(&dir.join(DRAINED_FILE), |file| file.recording == recording)?;
        Ok(found.unwrap_or(Drained { recording, ..Drained::default() }))
    }

    /// Enters in `dir` that these streams are durable elsewhere up to these events, and all segments of this
    /// volume below number `segments`. What was entered before stays.
    ///
    /// # Errors
    /// When the file cannot be used, or the system refuses.
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

    /// Whether all events of segment `index`, which has `streams`, are elsewhere.
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
    let fault = |what: String| RecordingError::Manifest { path: path.to_path_buf(), what };
    let line = text.strip_suffix(b"\n").ok_or_else(|| fault("it is not a whole line".to_owned()))?;
    let found = parse_line(line).map_err(fault)?;
    if !is_own(&found) {
        return Err(fault("it is of another recording or volume".to_owned()));
    }
    Ok(Some(found))
}

/// Puts `content` in the place of the file, all or nothing, durable.
fn write(path: &Path, content: &impl Serialize) -> Result<(), RecordingError> {
    let mut text = Vec::new();
    put_line(&mut text, content)
        .map_err(|what| RecordingError::Manifest { path: path.to_path_buf(), what })?;
    replace(path, |mut file| file.write_all(&text)).map_err(RecordingError::io("write", path))
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
