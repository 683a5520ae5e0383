//! Exports: one file, files per stream, or references without a copy; of one recording or of several.
//!
//! Invariants: an event's bytes are the same in every export; nothing is overwritten; only sealed
//! segments are exported.
mod block_part;
mod files;
mod one_file;
mod raw;
mod zarr;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use keepup_stream::ledger::Gap;

pub use self::files::files;
pub use self::one_file::one_file;
pub use self::raw::raw;
pub use self::zarr::zarr_reference;

use crate::error::RecordingError;
use crate::files::create_new;
use crate::master::{MasterCounts, write_master_to};
use crate::merged::MergedRecording;
use crate::reader::Recording;
use crate::volume::Volume;

/// Totals of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Streams.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Payload bytes of those.
    pub payload_bytes: u64,
    /// Streams that the format cannot represent, skipped.
    pub left_out: u64,
    /// Events of the exported recording that are missing, by stream and position.
    pub missing: Vec<Gap>,
}

/// Payload bytes of the selected streams, according to the journals; an event of several recordings counts
/// several times.
fn payload_bytes(recordings: &MergedRecording<'_>, stream: Option<u32>) -> u64 {
    let of = |volume: &Volume| {
        let streams = volume.end().map(|end| end.streams.as_slice()).unwrap_or_default();
        let selected = streams.iter().filter(|end| wants(stream, end.id)).map(|end| end.durable.bytes);
        selected.fold(0, u64::saturating_add)
    };
    let of = |recording: &Recording| recording.volumes().iter().map(of).max().unwrap_or(0);
    recordings.recordings().map(of).fold(0, u64::saturating_add)
}

/// Whether the stream `id` is selected; `None` selects all.
fn wants(stream: Option<u32>, id: u32) -> bool {
    stream.is_none_or(|wanted| wanted == id)
}

/// Missing events of the selected streams.
fn missing(recordings: &MergedRecording<'_>, stream: Option<u32>) -> Result<Vec<Gap>, RecordingError> {
    let mut missing = recordings.missing()?;
    missing.retain(|gap| wants(stream, gap.stream));
    Ok(missing)
}

/// Gaps of one stream as text in a file: a JSON list with the first sequence number, the number of events and
/// the cause of each.
fn gaps_of(gaps: &[Gap], stream: u32) -> serde_json::Value {
    let of_stream = gaps.iter().filter(|gap| gap.stream == stream);
    let row = |gap: &Gap| serde_json::json!([gap.first_sequence, gap.events, gap.cause]);
    of_stream.map(row).collect()
}

/// Only sealed segments have an index; other recordings must be recovered first.
fn require_sealed(recordings: &MergedRecording<'_>) -> Result<(), RecordingError> {
    match recordings.segments().find(|(_, segment)| !segment.is_ended()) {
        None => Ok(()),
        Some((_, open)) => Err(RecordingError::NotSealed { path: open.path.clone() }),
    }
}

/// Writes the NeXus master of `recording` to the file `path`, which must not exist; its links
/// lead from there to the segments in their current location. No payload is copied.
///
/// # Errors
/// The recording cannot be read, or `path` exists or cannot be written.
pub fn nexus<'a>(recording: impl Into<MergedRecording<'a>>, path: &Path) -> Result<Exported, RecordingError> {
    require_vacant(path)?;
    let recording = recording.into();
    let missing = recording.missing()?;
    let MasterCounts { streams, events, left_out } = write_master_to(&recording, path)?;
    Ok(Exported { streams, events, payload_bytes: 0, left_out, missing })
}

/// Refuses an existing output path before anything is read.
fn require_vacant(path: &Path) -> Result<(), RecordingError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(RecordingError::Taken { path: path.to_path_buf() }),
        Err(_) => Ok(()),
    }
}

/// Creates the output file `path` of an export.
///
/// # Errors
/// The file exists, or the system refuses.
pub fn create(path: &Path) -> Result<File, RecordingError> {
    create_new(path).map_err(not_created("create", path))
}

/// Flushes the file system of the directory `dir` once, because a flush of each of many files takes minutes.
fn flush_all(dir: &Path) -> Result<(), RecordingError> {
    let flushed = File::open(dir).and_then(|directory| Ok(rustix::fs::syncfs(directory)?));
    flushed.map_err(RecordingError::io("flush", dir))
}

fn not_created(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordingError {
    let path = path.to_path_buf();
    move |source| match source.kind() {
        ErrorKind::AlreadyExists => RecordingError::Taken { path },
        _ => RecordingError::Io { doing, path, source },
    }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
