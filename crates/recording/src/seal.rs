//! Sealing: turns a complete segment into a file that other programs open.
//!
//! The tail follows the last block: MCAP message indexes, HDF5 metadata, our own index, and
//! MCAP's summary. Then the HDF5 superblock is written into the space reserved in the first
//! sector, and the file becomes read-only. Invariants: no payload moves; the tail depends only on
//! the blocks, so verification can generate it again and compare; a crash at any point leaves the
//! blocks unchanged, and sealing can be repeated.
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

pub(crate) use self::index::BlockPart;
pub use self::index::{EventMark, SEGMENT_EVENTS_MAX, SegmentIndex};
pub(crate) use self::lookup::{IndexedBlock, SegmentLookup, StreamSummary, sealed_bytes, summaries};
pub(crate) use self::mcap::Metadata;
pub(crate) use self::names::{key_names, link_names, master_names};
pub(crate) use self::tail::{put_tail, put_tail_with};
pub(crate) use self::view::{MAP_DATASET, attributes};

use crate::error::RecordingError;
use crate::files::{open_regular, open_regular_to_write};
use crate::layout::{SECTOR, SUPERBLOCK_SPACE};

/// Seals a segment with blocks up to `data_bytes`, as in `index`: writes the tail, truncates the
/// file after it, writes the superblock, and flushes. Returns the file's length.
///
/// One flush covers tail and superblock, since a flush delays other writes to the disk. After a
/// power loss the superblock may exist without the whole tail; the journal does not list such a
/// segment as sealed, and HDF5's own checksums detect it.
///
/// # Errors
/// A system call failed. The blocks are unchanged; [`RecordingError::Unsealed`] if the tail could
/// not be written and a flush made the earlier data durable. After a failed flush no other one is
/// tried, since it proves nothing: the kernel reports such an error once.
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

/// Fills the first sector behind the last block of an open segment, so that MCAP readers which read from the
/// front end there. The next block, or the tail, replaces it.
///
/// # Panics
/// `sector` has less than [`SECTOR`] bytes.
pub fn put_end_mark(sector: &mut [u8]) {
    let end = mcap::end_without_summary();
    sector[..SECTOR].fill(0);
    sector[..end.len()].copy_from_slice(&end);
}

/// An earlier recovery may have left the file read-only and unsealed.
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
    file.write_all_at(&tail.superblock, SUPERBLOCK_SPACE.start as u64)?;
    file.set_len(data_bytes + tail.bytes)?;
    file.set_permissions(Permissions::from_mode(0o444))?;
    Ok(data_bytes + tail.bytes)
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
