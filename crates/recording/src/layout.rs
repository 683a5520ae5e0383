//! Byte layout of a segment, for writing and reading; no I/O, and no allocation per block.
//!
//! Segment = preamble (one sector) + blocks + tail, all on sector boundaries. Invariants: a
//! segment is valid MCAP from its first block on; a block's first payload starts on a sector
//! boundary; each byte of a block is covered by the header CRC, the chunk CRC, or by having to be
//! zero.

use std::borrow::Cow;

use keepup_error::{Diagnostic, ErrorClass};

mod block;
mod bytes;
mod channel;
mod segment;

pub use block::{
    BlockHeader, BlockSector, CHUNK_START, FLAG_GAP_BEFORE, block_bytes, pad_opening, parse_block_sector,
    put_block_sector, put_block_tail, put_message_header,
};
pub(crate) use block::{CHUNK_AT, MessageHeader, parse_message_header};
pub(crate) use bytes::{array, u16_at, u32_at, u64_at};
pub use channel::{ChannelBytes, parse_channel};
pub(crate) use segment::MCAP_MAGIC;
pub(crate) use segment::is_segment_file_name;
pub use segment::{SUPERBLOCK_SPACE, SegmentIdentity, parse_preamble, segment_file_name, segment_preamble};

/// Unit of all offsets and of the block header, bytes: the largest logical block size of common disks.
pub const SECTOR: usize = 4096;

/// Length of an MCAP message record in front of its payload, bytes.
pub const MESSAGE_HEADER: usize = 31;

/// Version of the format that this code writes, in preambles, block headers and manifests.
pub const FORMAT_VERSION: u16 = 1;

/// Opcode and length at the start of every MCAP record, bytes.
pub const RECORD_HEADER: usize = 9;

/// Longest MCAP channel record that fits a block's first sector, bytes.
const CHANNEL_BYTES_MAX: usize = 2048;

/// Defect of bytes that should be part of a segment.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LayoutError {
    /// Too few bytes.
    #[error("cannot read a {part}: {bytes} bytes are too few")]
    Short {
        /// Part of the segment.
        part: &'static str,
        /// Bytes available.
        bytes: usize,
    },
    /// The part's magic number is missing.
    #[error("cannot read a {part}: its magic bytes are missing")]
    Magic {
        /// Part of the segment.
        part: &'static str,
    },
    /// Another version of the format.
    #[error("cannot read a {part} of format version {found}, only version {FORMAT_VERSION}")]
    Version {
        /// Part of the segment.
        part: &'static str,
        /// Version found.
        found: u16,
    },
    /// Checksum mismatch.
    #[error("cannot trust a {part}: its checksum is {computed:08x}, stored is {stored:08x}")]
    Checksum {
        /// Part of the segment.
        part: &'static str,
        /// Checksum stored in the file.
        stored: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// The checksum matches, but the fields contradict each other.
    #[error("cannot use a {part}: {what}")]
    Inconsistent {
        /// Part of the segment.
        part: &'static str,
        /// Contradiction.
        what: &'static str,
    },
    /// A stream with a description that does not fit a block's first sector.
    #[error("cannot record stream {stream}: its description takes {bytes} bytes, {CHANNEL_BYTES_MAX} fit")]
    ChannelTooLong {
        /// Stream id.
        stream: u32,
        /// Length of its channel record, bytes.
        bytes: usize,
    },
    /// A stream id above MCAP's 16-bit channel ids.
    #[error("cannot record stream {stream}: stream ids end at 65535")]
    StreamId {
        /// Stream id.
        stream: u32,
    },
}

impl Diagnostic for LayoutError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Short { .. }
            | Self::Magic { .. }
            | Self::Version { .. }
            | Self::Checksum { .. }
            | Self::Inconsistent { .. }
            | Self::ChannelTooLong { .. }
            | Self::StreamId { .. } => ErrorClass::Failed,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Version { .. } => {
                Some("use the keepup that wrote this recording; keepup.json names its version".into())
            }
            Self::ChannelTooLong { .. } => Some("give the stream a shorter name".into()),
            Self::Short { .. }
            | Self::Magic { .. }
            | Self::Checksum { .. }
            | Self::Inconsistent { .. }
            | Self::StreamId { .. } => None,
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
