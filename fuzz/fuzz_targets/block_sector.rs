//! The parsers of a segment's parts on arbitrary bytes, and on the same bytes with their checksums made
//! right.
#![no_main]

use keepup_recording::crc::crc32;
use keepup_recording::layout::{SECTOR, SUPERBLOCK_SPACE, parse_block_sector, parse_channel, parse_preamble};
use libfuzzer_sys::fuzz_target;

/// Where a block header has its own checksum, and how far that reaches (`docs/recording-format.md`).
const BLOCK_CRC: usize = 128;
const BLOCK_COVERED: usize = 4065;
/// Where a preamble has its checksum.
const PREAMBLE_CRC: usize = 184;

fuzz_target!(|data: &[u8]| {
    let _ = parse_channel(data);
    let _ = parse_block_sector(data);
    let _ = parse_preamble(data);
    let mut sector = data.to_vec();
    sector.resize(SECTOR, 0);
    let _ = parse_block_sector(&correct(&sector, BLOCK_CRC, BLOCK_COVERED, 0..0));
    let _ = parse_preamble(&correct(&sector, PREAMBLE_CRC, SECTOR, SUPERBLOCK_SPACE));
});

/// The sector with the right checksum of its first `covered` bytes at `at`; that field and `blank` count as
/// zero.
fn correct(sector: &[u8], at: usize, covered: usize, blank: std::ops::Range<usize>) -> Vec<u8> {
    let mut zeroed = sector.to_vec();
    zeroed[at..at + 4].fill(0);
    zeroed[blank].fill(0);
    let mut fixed = sector.to_vec();
    fixed[at..at + 4].copy_from_slice(&crc32(&zeroed[..covered]).to_le_bytes());
    fixed
}
