//! What archives have confirmed: the lines of the files `archive-….jsonl` in the first volume's directory.
//!
//! A copy to an archive writes one such file for each archive: lines with checksums, as in the journal. First
//! what the file belongs to, then one line for each archived file, durable once the store has confirmed it.
//! The last lines may describe uploads in progress, which later lines replace. Invariants of the reader: a
//! line counts only after the reader has made the file durable itself; a file that was replaced, cut or
//! removed takes all its lines back; a segment is proven only if all archives have it, and not at all while a
//! file cannot be used, because that file may belong to an archive that lacks the segment.
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
    /// CRC-64/NVME of its bytes, 16 hex digits; empty if it was not computed.
    pub crc64: String,
    /// Whether the store has confirmed it.
    pub has_crc64: bool,
    /// Whether the store's ETag is the MD5.
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
    /// Whether the file `path` is still the one that was archived, by its length and modification time.
    ///
    /// # Errors
    /// It cannot be inspected.
    pub fn is_of(&self, path: &Path) -> Result<bool, RecordingError> {
        let found = size_and_time(path).map_err(RecordingError::io("inspect", path))?;
        Ok(found == (self.bytes, self.modified_unix_ns))
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
    /// Whether a damaged line follows.
    is_damaged: bool,
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

/// Content of a state file.
enum Content {
    State(ArchivedSegments),
    /// It belongs to another recording, or was removed.
    Other,
    /// Its first line is being written.
    Unknown,
    /// Problem.
    Damaged(&'static str),
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
    /// Why a file, or the directory, cannot be used.
    faults: BTreeMap<PathBuf, String>,
    /// Whether a file may belong to an archive that is not in `states`, or has more lines than were read.
    is_incomplete: bool,
}

impl ArchiveStates {
    /// Reader of the state files in `dir`, the directory of the first volume.
    pub fn new(dir: &Path, recording: Id, volume: Option<u32>) -> Self {
        let (dir, states, faults) = (dir.to_path_buf(), BTreeMap::new(), BTreeMap::new());
        Self { dir, recording, volume, states, faults, is_incomplete: false }
    }

    /// Reads new lines of all state files. Files of other recordings are ignored; nothing is proven while a
    /// file cannot be used, see [`Self::faults`].
    pub fn poll(&mut self) {
        let mut before = std::mem::take(&mut self.states);
        self.faults.clear();
        self.is_incomplete = false;
        let paths = match self.paths() {
            Ok(paths) => paths,
            Err(error) => {
                self.faults.insert(self.dir.clone(), error.to_string());
                return;
            }
        };
        if paths.len() > STATES_MAX {
            let what = format!("it has more than {STATES_MAX} state files of archives");
            self.faults.insert(self.dir.clone(), what);
            return;
        }
        for path in paths {
            let known = before.remove(&path).unwrap_or_default();
            let (place, was_damaged) = (known.place.offset, known.is_damaged);
            match self.read(&path, known) {
                Ok(Content::State(state)) => {
                    self.is_incomplete |= state.is_damaged;
                    // Otherwise, the line may be in the middle of being written.
                    if state.is_damaged && was_damaged && state.place.offset == place {
                        self.faults.insert(path.clone(), format!("damaged line at offset {place}"));
                    }
                    self.states.insert(path, state);
                }
                Ok(Content::Other) => {}
                Ok(Content::Unknown) => self.is_incomplete = true,
                Ok(Content::Damaged(what)) => drop(self.faults.insert(path, what.to_owned())),
                Err(error) => drop(self.faults.insert(path, error.to_string())),
            }
        }
    }

    fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let text = name.to_string_lossy();
            if text.starts_with(ARCHIVE_STATE) && text.ends_with(".jsonl") && paths.len() <= STATES_MAX {
                paths.push(self.dir.join(&name));
            }
        }
        Ok(paths)
    }

    /// The archives, with their segments, as of the last poll.
    pub fn archives(&self) -> impl Iterator<Item = &ArchivedSegments> {
        self.states.values()
    }

    /// Files that could not be used at the last poll, with the reasons.
    pub fn faults(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.faults.iter().map(|(path, what)| (path.as_path(), what.as_str()))
    }

    /// What all archives have instead of a segment of `bytes`, with intact blocks; `None` if one lacks it,
    /// has another file, or if there is no archive.
    pub fn proof(&self, volume: u32, index: u32, bytes: u64) -> Option<ArchivedSegment> {
        if self.is_incomplete || !self.faults.is_empty() {
            return None;
        }
        let mut all = self.states.values().map(|state| state.segments.get(&(volume, index)).copied());
        let first = all.next()??;
        let is_proof = first.intact == Some(true) && first.bytes == bytes;
        (is_proof && all.all(|other| other == Some(first))).then_some(first)
    }

    /// Drops what is known about a segment that was removed.
    pub fn forget(&mut self, volume: u32, index: u32) {
        for state in self.states.values_mut() {
            state.segments.remove(&(volume, index));
        }
    }

    fn read(&self, path: &Path, mut state: ArchivedSegments) -> io::Result<Content> {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Other),
            Err(error) => return Err(error),
        };
        let meta = file.metadata()?;
        if !state.place.is_in(&file, &meta)? {
            let place = Place { device: meta.dev(), inode: meta.ino(), ..Place::default() };
            state = ArchivedSegments { place, ..ArchivedSegments::default() };
        }
        let begin = state.place.offset;
        if meta.len() == begin && begin > 0 {
            return Ok(Content::State(ArchivedSegments { is_damaged: false, ..state }));
        }
        let content = self.read_lines(&file, state)?;
        if matches!(&content, Content::State(next) if next.place.offset > begin) {
            // The drain may not have flushed them yet.
            file.sync_data()?;
        }
        Ok(content)
    }

    /// Reads lines up to the first one that may still change.
    fn read_lines(&self, file: &File, mut state: ArchivedSegments) -> io::Result<Content> {
        let mut lines = BufReader::new(file);
        lines.seek(SeekFrom::Start(state.place.offset))?;
        let mut text = Vec::new();
        loop {
            text.clear();
            let limited = &mut io::Read::take(lines.by_ref(), LINE_BYTES_MAX as u64);
            limited.read_until(b'\n', &mut text)?;
            let is_first = state.place.offset == 0;
            let is_too_long = text.len() == LINE_BYTES_MAX;
            match text.strip_suffix(b"\n").map(parse_line::<StateLine>) {
                Some(Ok(StateLine::Begin { recording, to })) if is_first => {
                    if recording != self.recording {
                        return Ok(Content::Other);
                    }
                    state.to = to;
                }
                None if is_first && !is_too_long => return Ok(Content::Unknown),
                _ if is_first => return Ok(Content::Damaged("damaged first line")),
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
                other => {
                    state.is_damaged = is_too_long || matches!(other, Some(Err(_)));
                    return Ok(Content::State(state));
                }
            }
            state.place.offset += text.len() as u64;
            state.place.line.clone_from(&text);
        }
    }
}

#[cfg(test)]
#[path = "archived_tests.rs"]
mod tests;
