//! What archives have confirmed: the lines of the files `archive-….jsonl` in the first volume's directory.
//!
//! A copy to an archive writes one such file for each archive: lines with checksums, as in the journal. First
//! what the file belongs to, then one line for each archived file, durable once the store has confirmed it.
//! The last lines may describe uploads in progress, which later lines replace. Invariants of the reader: a
//! line counts only after the reader has made the file durable itself; a file that was replaced, cut or
//! removed takes all its lines back.
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::error::RecordingError;
use crate::files::{open_regular, read_fully_at};
use crate::id::Id;
use crate::layout::segment_file_name;
use crate::line::{LINE_BYTES_MAX, parse_line};
use crate::reader::nested_volume;
use crate::retention::ARCHIVE_STATE;

/// Most state files of one recording that are read.
const STATES_MAX: usize = 64;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedFile {
    /// Path below the archive's address, such as `segment-000000.mcap` or `volume-1/journal.jsonl`.
    pub path: String,
    /// Length, bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, 64 hex digits.
    pub sha256: String,
    /// Modification time of the original, ns since the Unix epoch.
    pub modified_unix_ns: u64,
}

/// What is known about a part of a file that the store has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartChecks {
    /// MD5 of its bytes, 32 hex digits.
    pub md5: String,
    /// Whether the store has confirmed the MD5.
    pub has_md5: bool,
    /// Whether the store has confirmed the SHA-256.
    pub has_sha256: bool,
}

/// A line of a state file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
pub enum StateLine {
    /// What the file belongs to.
    Begin {
        /// The recording.
        recording: Id,
        /// Address of the archive.
        to: String,
    },
    /// An archived file.
    File {
        /// The file.
        file: ArchivedFile,
        /// ETag of its object.
        etag: Option<String>,
        /// Whether every block of a sealed segment was intact as it was read for this object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intact: Option<bool>,
    },
    /// A file that the archive no longer has as it was confirmed.
    Forgotten {
        /// Path below the archive's address.
        path: String,
    },
    /// An upload in progress.
    Upload {
        /// Path below the archive's address.
        path: String,
        /// The store's name for it.
        id: String,
        /// Length of the file, bytes.
        bytes: u64,
        /// Modification time of the file, ns since the Unix epoch.
        modified_unix_ns: u64,
        /// Size of a part, bytes.
        part_bytes: u64,
    },
    /// A part of it that the store has.
    Part {
        /// Path below the archive's address.
        path: String,
        /// Number of the part, from 0.
        index: usize,
        /// The store's name for it.
        content: String,
        /// What is known about it.
        checks: PartChecks,
    },
}

/// A segment that an archive has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedSegment {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Modification time of the file, ns since the Unix epoch.
    pub modified_unix_ns: u64,
    /// Whether every block was intact as it was read for the archive; `None` if that was not checked.
    pub intact: Option<bool>,
}

impl ArchivedSegment {
    /// Makes sure that the file `path` is still the one that was archived.
    ///
    /// # Errors
    /// Its length or modification time is another one, or it cannot be inspected.
    pub fn check_unchanged(&self, path: &Path) -> Result<(), RecordingError> {
        let found = size_and_time(path).map_err(RecordingError::io("inspect", path))?;
        if found == (self.bytes, self.modified_unix_ns) {
            return Ok(());
        }
        let what = "it has changed since it was archived";
        Err(RecordingError::File { path: path.to_path_buf(), what })
    }
}

/// Path of a file of volume `volume` within an archive.
pub fn archive_path(volume: u32, name: &str) -> String {
    if volume == 0 { name.to_owned() } else { format!("{}/{name}", nested_volume(volume)) }
}

/// Volume and number of a segment, by its path within an archive.
fn segment_of(path: &str) -> Option<(u32, u32)> {
    let (volume, name) = match path.split_once('/') {
        None => (0, path),
        Some((folder, name)) => (folder.strip_prefix("volume-")?.parse().ok()?, name),
    };
    let index = name.strip_prefix("segment-")?.strip_suffix(".mcap")?.parse().ok()?;
    (archive_path(volume, &segment_file_name(index)) == path).then_some((volume, index))
}

/// Length and modification time (ns since the Unix epoch) of a regular file; symbolic links are not followed.
///
/// # Errors
/// There is no such file, or it is not a regular file.
pub fn size_and_time(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let ns = meta.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    Ok((meta.len(), u64::try_from(ns).unwrap_or(u64::MAX)))
}

/// The segments that one archive has.
#[derive(Clone, Debug, Default)]
pub struct ArchivedSegments {
    /// Address of the archive.
    pub to: String,
    /// Segments, by volume and number.
    pub segments: BTreeMap<(u32, u32), ArchivedSegment>,
    place: Place,
}

/// Position in a state file.
#[derive(Clone, Debug, Default)]
struct Place {
    device: u64,
    inode: u64,
    /// Offset of the first line that was not read.
    offset: u64,
    /// The line before it: a new file may have the same inode.
    line: Vec<u8>,
}

impl Place {
    /// Whether `file` has what was read up to this position.
    fn is_in(&self, file: &File, meta: &Metadata) -> io::Result<bool> {
        let is_same = (self.device, self.inode) == (meta.dev(), meta.ino()) && meta.len() >= self.offset;
        let mut line = vec![0; if is_same { self.line.len() } else { 0 }];
        let begin = self.offset - line.len() as u64;
        let read = read_fully_at(file, &mut line, begin)?;
        Ok(is_same && read == self.line.len() && line == self.line)
    }
}

/// Reader of the state files of a recording.
#[derive(Debug)]
pub struct ArchiveStates {
    dir: PathBuf,
    recording: Id,
    /// Only segments of this volume are kept in memory; `None` for all.
    volume: Option<u32>,
    /// By file name.
    states: BTreeMap<PathBuf, ArchivedSegments>,
}

impl ArchiveStates {
    /// Reader of the state files in `dir`, the directory of the first volume.
    pub fn new(dir: &Path, recording: Id, volume: Option<u32>) -> Self {
        Self { dir: dir.to_path_buf(), recording, volume, states: BTreeMap::new() }
    }

    /// Reads new lines of all state files. Files of other recordings, and damaged ones, prove nothing.
    ///
    /// # Errors
    /// The directory or a file cannot be read or made durable; nothing new counts then.
    pub fn poll(&mut self) -> Result<(), RecordingError> {
        let mut before = std::mem::take(&mut self.states);
        let entries = std::fs::read_dir(&self.dir).map_err(RecordingError::io("list", &self.dir))?;
        for entry in entries {
            let name = entry.map_err(RecordingError::io("list", &self.dir))?.file_name();
            let text = name.to_string_lossy();
            if !text.starts_with(ARCHIVE_STATE)
                || !text.ends_with(".jsonl")
                || self.states.len() >= STATES_MAX
            {
                continue;
            }
            let path = self.dir.join(&name);
            let known = before.remove(&path).unwrap_or_default();
            match self.read(&path, known) {
                Ok(Some(state)) => drop(self.states.insert(path, state)),
                // Removed since it was listed, or not of this recording.
                Ok(None) => {}
                Err(error) => return Err(RecordingError::io("read", &path)(error)),
            }
        }
        Ok(())
    }

    /// The archives, with their segments, as of the last poll.
    pub fn archives(&self) -> impl Iterator<Item = &ArchivedSegments> {
        self.states.values()
    }

    /// What an archive has instead of a segment of `bytes`, with intact blocks; `None` if there is none.
    pub fn proof(&self, volume: u32, index: u32, bytes: u64) -> Option<ArchivedSegment> {
        let found = self.states.values().filter_map(|state| state.segments.get(&(volume, index)));
        found.copied().find(|found| found.intact == Some(true) && found.bytes == bytes)
    }

    /// Drops what is known about a segment that was removed.
    pub fn forget(&mut self, volume: u32, index: u32) {
        for state in self.states.values_mut() {
            state.segments.remove(&(volume, index));
        }
    }

    fn read(&self, path: &Path, mut state: ArchivedSegments) -> io::Result<Option<ArchivedSegments>> {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let meta = file.metadata()?;
        if !state.place.is_in(&file, &meta)? {
            let place = Place { device: meta.dev(), inode: meta.ino(), ..Place::default() };
            state = ArchivedSegments { place, ..ArchivedSegments::default() };
        }
        let begin = state.place.offset;
        if meta.len() == begin {
            return Ok(Some(state));
        }
        let mut next = state.clone();
        if !self.read_lines(&file, &mut next)? {
            return Ok(None);
        }
        if next.place.offset > begin {
            // The drain may not have flushed them yet.
            file.sync_data()?;
        }
        Ok(Some(next))
    }

    /// Reads lines up to the first one that may still change; returns whether the file belongs to the
    /// recording.
    fn read_lines(&self, file: &File, state: &mut ArchivedSegments) -> io::Result<bool> {
        let mut lines = BufReader::new(file);
        lines.seek(SeekFrom::Start(state.place.offset))?;
        let mut text = Vec::new();
        loop {
            text.clear();
            let limited = &mut io::Read::take(lines.by_ref(), LINE_BYTES_MAX as u64);
            limited.read_until(b'\n', &mut text)?;
            let is_first = state.place.offset == 0;
            match text.strip_suffix(b"\n").map(parse_line::<StateLine>) {
                Some(Ok(StateLine::Begin { recording, to })) if is_first && recording == self.recording => {
                    state.to = to;
                }
                _ if is_first => return Ok(false),
                Some(Ok(StateLine::File { file, intact, .. })) => {
                    if let Some(at) = segment_of(&file.path)
                        && self.volume.is_none_or(|volume| volume == at.0)
                    {
                        let ArchivedFile { bytes, modified_unix_ns, .. } = file;
                        let segment = ArchivedSegment { bytes, modified_unix_ns, intact };
                        state.segments.insert(at, segment);
                    }
                }
                Some(Ok(StateLine::Forgotten { path })) => {
                    if let Some(at) = segment_of(&path) {
                        state.segments.remove(&at);
                    }
                }
                // Uploads in progress, or a line that is being written.
                _ => return Ok(true),
            }
            state.place.offset += text.len() as u64;
            state.place.line.clone_from(&text);
        }
    }
}

#[cfg(test)]
#[path = "archived_tests.rs"]
mod tests;
