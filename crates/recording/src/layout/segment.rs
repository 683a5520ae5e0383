//! First sector and last bytes of a segment.

use std::ops::Range;

use super::bytes::{array, put, u16_at, u32_at, u64_at};
use super::{FORMAT_VERSION, LayoutError, RECORD_HEADER, SECTOR};
use crate::crc::{Crc32, crc32};
use crate::id::Id;

/// Space in the preamble for an HDF5 superblock, as file offsets; zero until the segment is
/// sealed.
///
/// HDF5 looks for its superblock at 0, 512, 1024, 2048 and so on; version 3 takes 48 bytes.
pub const SUPERBLOCK_SPACE: Range<usize> = 2048..2096;

const PART: &str = "segment preamble";
/// First and last bytes of an MCAP file.
pub(crate) const MCAP_MAGIC: &[u8; 8] = b"\x89MCAP0\r\n";
const LIBRARY: &str = concat!("keepup ", env!("CARGO_PKG_VERSION"));
const OP_HEADER: u8 = 0x01;
const OP_IDENTITY: u8 = 0x80;

// Offsets in the file; the records before them are shorter for any version text.
const AT_MAGIC: usize = 128;
const AT_VERSION: usize = 132;
const AT_VOLUME_INDEX: usize = 136;
const AT_SEGMENT_INDEX: usize = 140;
const AT_CREATED: usize = 144;
const AT_RECORDING: usize = 152;
const AT_SEGMENT: usize = 168;
const AT_CRC: usize = 184;
const MAGIC: &[u8; 4] = b"KUSG";

/// MCAP magic, header record with profile "" and our library name.
const HEADER_END: usize = MCAP_MAGIC.len() + RECORD_HEADER + 4 + 4 + LIBRARY.len();
const _: () = assert!(HEADER_END + RECORD_HEADER <= AT_MAGIC);

/// Identity of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentIdentity {
    /// Recording of the segment.
    pub recording: Id,
    /// The segment's own identity.
    pub segment: Id,
    /// Number of the volume within the recording, from 0.
    pub volume_index: u32,
    /// Number of the segment on its volume, from 0.
    pub segment_index: u32,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
}

/// Name of a segment's file within the recording's directory.
pub fn segment_file_name(index: u32) -> String {
    format!("segment-{index:06}.mcap")
}

/// Whether `name` is a segment's file name.
pub(crate) fn is_segment_file_name(name: &str) -> bool {
    let digits = name.strip_prefix("segment-").and_then(|rest| rest.strip_suffix(".mcap"));
    digits.and_then(|digits| digits.parse().ok()).is_some_and(|index| segment_file_name(index) == name)
}

/// The first sector of a segment.
pub fn segment_preamble(identity: &SegmentIdentity) -> [u8; SECTOR] {
    let mut out = [0; SECTOR];
    put(&mut out, 0, MCAP_MAGIC);
    out[8] = OP_HEADER;
    put(&mut out, 9, &((8 + LIBRARY.len()) as u64).to_le_bytes());
    put(&mut out, 21, &(LIBRARY.len() as u32).to_le_bytes());
    put(&mut out, 25, LIBRARY.as_bytes());
    out[HEADER_END] = OP_IDENTITY;
    put(&mut out, HEADER_END + 1, &((SECTOR - HEADER_END - RECORD_HEADER) as u64).to_le_bytes());
    put(&mut out, AT_MAGIC, MAGIC);
    put(&mut out, AT_VERSION, &FORMAT_VERSION.to_le_bytes());
    put(&mut out, AT_VOLUME_INDEX, &identity.volume_index.to_le_bytes());
    put(&mut out, AT_SEGMENT_INDEX, &identity.segment_index.to_le_bytes());
    put(&mut out, AT_CREATED, &identity.created_unix_ns.to_le_bytes());
    put(&mut out, AT_RECORDING, &identity.recording.0);
    put(&mut out, AT_SEGMENT, &identity.segment.0);
    // The checksum covers the sector with its own field and the superblock's space as zero.
    let crc = crc32(&out);
    put(&mut out, AT_CRC, &crc.to_le_bytes());
    out
}

/// Parses and checks a segment's first sector; ignores the content of [`SUPERBLOCK_SPACE`].
///
/// # Errors
/// `sector` is shorter than [`SECTOR`], or is not an intact preamble of this version.
pub fn parse_preamble(sector: &[u8]) -> Result<SegmentIdentity, LayoutError> {
    let Some(sector) = sector.get(..SECTOR) else {
        return Err(LayoutError::Short { part: PART, bytes: sector.len() });
    };
    if !sector.starts_with(MCAP_MAGIC) || !sector[AT_MAGIC..].starts_with(MAGIC) {
        return Err(LayoutError::Magic { part: PART });
    }
    let version = u16_at(sector, AT_VERSION);
    if version != FORMAT_VERSION {
        return Err(LayoutError::Version { part: PART, found: version });
    }
    let stored = u32_at(sector, AT_CRC);
    let computed = preamble_crc(sector);
    if stored != computed {
        return Err(LayoutError::Checksum { part: PART, stored, computed });
    }
    Ok(SegmentIdentity {
        recording: Id(array(sector, AT_RECORDING)),
        segment: Id(array(sector, AT_SEGMENT)),
        volume_index: u32_at(sector, AT_VOLUME_INDEX),
        segment_index: u32_at(sector, AT_SEGMENT_INDEX),
        created_unix_ns: u64_at(sector, AT_CREATED),
    })
}

/// CRC-32 of the sector with its own field and the superblock's space as zero.
fn preamble_crc(sector: &[u8]) -> u32 {
    let mut crc = Crc32::new();
    crc.update(&sector[..AT_CRC]);
    crc.update(&[0; 4]);
    crc.update(&sector[AT_CRC + 4..SUPERBLOCK_SPACE.start]);
    crc.update(&[0; SUPERBLOCK_SPACE.end - SUPERBLOCK_SPACE.start]);
    crc.update(&sector[SUPERBLOCK_SPACE.end..]);
    crc.value()
}
