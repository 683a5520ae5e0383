//! Results of sealed segments in a file, so that an interrupted verification goes on where it was.
//!
//! One line of JSON with a checksum for each segment, after a line that names the recording. Invariants: a
//! line counts only for a file of the same size and modification time; a line that was cut off is read
//! again; the file is removed when the verification is complete, so that the next one reads everything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use keepup_error::Cause;
use keepup_sys::regular;
use serde::{Deserialize, Serialize};

use super::scan::SegmentScan;
use crate::error::RecordingError;
use crate::files::create_new;
use crate::id::Id;
use crate::line::{self, parse_line};
use crate::reader::Recording;
use crate::volume::{Segment, Volume};

/// Version of the lines.
const VERSION: u32 = 2;
/// Longest file that is read, bytes.
const BYTES_MAX: u64 = 4 << 30;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    verification: u32,
    recording: Id,
}

/// A file as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileState {
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    volume: u32,
    segment: u32,
    file: FileState,
    scan: SegmentScan,
}

/// Results so far.
#[derive(Debug)]
pub struct VerifyState {
    path: PathBuf,
    known: Mutex<BTreeMap<(u32, u32), (FileState, SegmentScan)>>,
    out: Mutex<(File, Option<io::Error>)>,
}

impl VerifyState {
    /// Opens the file `path` of a verification of `recording`, or creates it.
    ///
    /// # Errors
    /// It cannot be read or written, or is of another recording.
    pub fn open(path: &Path, recording: &Recording) -> Result<VerifyState, RecordingError> {
        let head = Head { verification: VERSION, recording: recording.manifest().recording };
        let (file, known) = match regular::read_text(path, BYTES_MAX) {
            Ok(text) => {
                // A file of something else is not changed.
                let known = parse(path, &text, &head)?;
                (reopen(path, &text)?, known)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut file = create_new(path).map_err(RecordingError::io("create", path))?;
                put_line(&mut file, &head).map_err(RecordingError::io("write", path))?;
                (file, BTreeMap::new())
            }
            Err(error) => return Err(RecordingError::io("read", path)(error)),
        };
        Ok(VerifyState { path: path.into(), known: Mutex::new(known), out: Mutex::new((file, None)) })
    }

    /// Segments with a result.
    pub fn segments(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The result of a segment whose file is as it was.
    pub(super) fn take(&self, volume: &Volume, segment: &Segment) -> Option<SegmentScan> {
        let place = (volume.manifest().volume_index, segment.index);
        let (file, scan) = self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&place)?;
        (segment.is_ended() && file_state(segment).is_ok_and(|now| now == file)).then_some(scan)
    }

    /// Adds the result of a segment, if it is sealed.
    pub(super) fn add(&self, volume: &Volume, segment: &Segment, scan: &SegmentScan) {
        if !segment.is_ended() {
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, failure) = &mut *out;
        if failure.is_some() {
            return;
        }
        let (volume, segment_index) = (volume.manifest().volume_index, segment.index);
        let line = file_state(segment).map(|state| Line {
            volume,
            segment: segment_index,
            file: state,
            scan: scan.clone(),
        });
        // A missing segment is looked for again.
        if let Ok(line) = line {
            *failure = put_line(file, &line).err();
        }
    }

    /// Removes the file.
    ///
    /// # Errors
    /// A result could not be written to it, or it cannot be removed.
    pub fn remove(self) -> Result<(), RecordingError> {
        let (_, failure) = self.out.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = failure {
            return Err(RecordingError::io("write", &self.path)(failure));
        }
        std::fs::remove_file(&self.path).map_err(RecordingError::io("remove", &self.path))
    }
}

fn file_state(segment: &Segment) -> io::Result<FileState> {
    let found = std::fs::symlink_metadata(&segment.path)?;
    Ok(FileState { bytes: found.len(), modified_s: found.mtime(), modified_ns: found.mtime_nsec() })
}

fn put_line(file: &mut File, content: &impl Serialize) -> io::Result<()> {
    let mut text = Vec::new();
    line::put_line(&mut text, content).map_err(io::Error::other)?;
    file.write_all(&text)
}

/// Opens the file to append, without a line that was cut off.
fn reopen(path: &Path, text: &str) -> Result<File, RecordingError> {
    let whole = text.rfind('\n').map_or(0, |at| at + 1) as u64;
    let file = regular::open_to_append(path).map_err(RecordingError::io("open", path))?;
    file.set_len(whole).map_err(RecordingError::io("shorten", path))?;
    Ok(file)
}

type Known = BTreeMap<(u32, u32), (FileState, SegmentScan)>;

fn parse(path: &Path, text: &str, expected: &Head) -> Result<Known, RecordingError> {
    let unusable = |what: String| RecordingError::Manifest {
        path: path.into(),
        what: Cause::new(what).with_hint("--resume with another file, which is created"),
    };
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::as_bytes);
    let head = lines.next().and_then(|line| parse_line::<Head>(line).ok());
    let head = head.filter(|head| head.verification == VERSION);
    let head = head.ok_or_else(|| unusable("it is not the state of a verification".into()))?;
    if head.recording != expected.recording {
        return Err(unusable(format!("it is the state of recording {}", head.recording)));
    }
    let mut known = Known::new();
    for (number, line) in lines.enumerate() {
        let line: Line = parse_line(line).map_err(|why| unusable(format!("line {}: {why}", number + 2)))?;
        if !line.scan.is_consistent() {
            return Err(unusable(format!("line {}: its figures are impossible", number + 2)));
        }
        known.insert((line.volume, line.segment), (line.file, line.scan));
    }
    Ok(known)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
