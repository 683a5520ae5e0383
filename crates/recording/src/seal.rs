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
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

pub use self::index::{EventMark, SEGMENT_EVENTS_MAX, SegmentIndex};
pub(crate) use self::lookup::{IndexedBlock, SegmentLookup, StreamSummary, sealed_bytes, summaries};
pub(crate) use self::names::{key_names, link_names, master_names};
pub(crate) use self::tail::put_tail;
pub(crate) use self::view::attributes;

use crate::error::RecordingError;
use crate::files::{open_regular, open_regular_to_write};
use crate::layout::SUPERBLOCK_ROOM;

/// Seals a segment whose blocks end at `data_bytes` and are those of `index`: writes the tail behind them,
/// cuts the file there, puts the superblock in its room, and makes all of it durable. Returns the file's
/// length.
///
/// One flush serves tail and superblock, and a flush holds up whoever writes to the same disk. So a loss of
/// power may keep the superblock without all of the tail; the journal does not call such a segment sealed,
/// and HDF5's own checksums tell it.
///
/// # Errors
/// What the system said. The blocks are as they were; [`RecordingError::Unsealed`] when the tail could not be
/// written and a flush made all that was written before it durable. After a flush that failed another proves
/// nothing (the kernel reports such an error once), so none is tried.
pub fn seal(path: &Path, index: &SegmentIndex, data_bytes: u64) -> Result<u64, RecordingError> {
    let file = open_to_seal(path).map_err(RecordingError::io("open the segment to seal it", path))?;
    match write_tail(&file, index, data_bytes) {
        Ok(bytes) => file.sync_all().map(|()| bytes).map_err(RecordingError::io("flush", path)),
        Err(source) => match file.sync_all() {
            Ok(()) => Err(RecordingError::Unsealed { path: path.into(), source }),
            Err(_) => Err(RecordingError::io("seal", path)(source)),
        },
    }
}

/// What an earlier recovery left read-only and not sealed may be written again.
fn open_to_seal(path: &Path) -> io::Result<File> {
    match open_regular_to_write(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_regular(path)?.set_permissions(Permissions::from_mode(0o644))?;
            open_regular_to_write(path)
        }
        other => other,
    }
}

fn write_tail(file: &File, index: &SegmentIndex, data_bytes: u64) -> io::Result<u64> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.seek(SeekFrom::Start(data_bytes))?;
    let tail = put_tail(index, data_bytes, &mut out)?;
    out.flush()?;
    drop(out);
    file.write_all_at(&tail.superblock, SUPERBLOCK_ROOM.start as u64)?;
    file.set_len(data_bytes + tail.bytes)?;
    file.set_permissions(Permissions::from_mode(0o444))?;
    Ok(data_bytes + tail.bytes)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
