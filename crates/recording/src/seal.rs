//! Sealing: what makes a segment with all its blocks a file that other programs open.
//!
//! Behind the last block comes the tail: MCAP message indexes, HDF5 metadata, an index of our own, and
//! MCAP's summary. Then the HDF5 superblock is put into its room in the first sector, and the file becomes
//! read-only. Invariants: no payload moves; the tail depends on nothing but the blocks, so verification can
//! make it anew and compare; a crash at any point leaves the blocks as they were, and sealing can begin
//! again.
mod index;
mod lookup;
mod mcap;
mod names;
mod tail;
mod view;

use std::fs::{File, Permissions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

pub use self::index::{EventMark, SEGMENT_EVENTS_MAX, SegmentIndex};
pub(crate) use self::lookup::{IndexedBlock, SegmentLookup, StreamSummary};
pub(crate) use self::names::link_names;
pub(crate) use self::tail::{Tail, put_tail};
pub(crate) use self::view::attributes;

use crate::error::RecordingError;
use crate::files::open_regular_to_write;
use crate::layout::SUPERBLOCK_ROOM;

/// A segment whose tail is on stable storage, and whose superblock is not.
#[derive(Debug)]
pub struct Sealing {
    file: File,
    tail: Tail,
    data_bytes: u64,
}

impl Sealing {
    /// Writes the tail behind the blocks, which end at `data_bytes` and are those of `index`; cuts the file
    /// there and makes all of it durable.
    ///
    /// # Errors
    /// What the system said. The blocks are as they were.
    pub fn append(path: &Path, index: &SegmentIndex, data_bytes: u64) -> Result<Self, RecordingError> {
        let file =
            open_regular_to_write(path).map_err(RecordingError::io("open the segment to seal it", path))?;
        let written = write_tail(&file, index, data_bytes);
        let tail = written.map_err(RecordingError::io("seal", path))?;
        Ok(Self { file, tail, data_bytes })
    }

    /// Offset of the tail, in bytes.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Length of the file, in bytes.
    pub fn bytes(&self) -> u64 {
        self.data_bytes + self.tail.bytes
    }

    /// Makes it HDF5 and read-only, on stable storage.
    ///
    /// # Errors
    /// What the system said. The file is then MCAP and no HDF5.
    pub fn finish(self, path: &Path) -> Result<(), RecordingError> {
        let finished = self
            .file
            .write_all_at(&self.tail.superblock, SUPERBLOCK_ROOM.start as u64)
            .and_then(|()| self.file.set_permissions(Permissions::from_mode(0o444)))
            .and_then(|()| self.file.sync_all());
        finished.map_err(RecordingError::io("finish sealing", path))
    }
}

fn write_tail(file: &File, index: &SegmentIndex, data_bytes: u64) -> std::io::Result<Tail> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.seek(SeekFrom::Start(data_bytes))?;
    let tail = put_tail(index, data_bytes, &mut out)?;
    out.flush()?;
    drop(out);
    file.set_len(data_bytes + tail.bytes)?;
    file.sync_all()?;
    Ok(tail)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
