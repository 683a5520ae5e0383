//! The encoder compared with known answers. Separate tests check the files with libhdf5.
use super::checksum::lookup3;
use super::{ChunkEntry, Filtered, HdfWriter, Selection, superblock};

/// Known answers of `hashlittle`: from the driver in lookup3.c, and HDF5 files made by libhdf5.
#[test]
fn the_checksum_is_lookup3() {
    assert_eq!(lookup3(b""), 0xdead_beef);
    assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
}

#[test]
fn a_superblock_has_48_bytes_and_its_own_offset() {
    let bytes = superblock(2048, 77, 9000);
    assert_eq!(bytes.len(), super::SUPERBLOCK_BYTES);
    assert_eq!(bytes[12..20], 2048u64.to_le_bytes());
    assert_eq!(lookup3(&bytes[..44]).to_le_bytes(), bytes[44..]);
}

fn index_bytes(count: u64, filtered: Option<Filtered>) -> Vec<u8> {
    let mut out = Vec::new();
    let chunks = (0..count).map(|n| ChunkEntry { address: n * 5000, bytes: n });
    HdfWriter::new(&mut out, 1000).put_chunks(count, chunks, filtered).unwrap();
    out
}

#[test]
fn an_index_is_paged_beyond_a_page() {
    // Header 28; data block 14 + entries + checksum 4.
    assert_eq!(index_bytes(1024, None).len(), 28 + 14 + 1024 * 8 + 4);
    // Two pages: a bitmap byte, and a checksum per page.
    assert_eq!(index_bytes(1025, None).len(), 28 + 14 + 1 + 4 + 1025 * 8 + 2 * 4);
    assert_eq!(index_bytes(1025, None)[28 + 14], 0b1100_0000);
    let filtered = Filtered::new(48_000);
    assert_eq!(filtered.chunk_bytes_max(), 0xFF_FFFF);
    assert_eq!(index_bytes(3, Some(filtered)).len(), 28 + 14 + 3 * (8 + 3 + 4) + 4);
}

#[test]
fn what_is_measured_has_the_length_of_what_is_written() {
    for filtered in [None, Some(Filtered::new(48_000))] {
        for count in [0, 1, 1024, 1025, 5000] {
            let put = |place: &mut HdfWriter<'_, Vec<u8>>| {
                let chunks = (0..count).map(|n| ChunkEntry { address: n * 5000, bytes: n });
                place.put_numbers(count, 0..count).unwrap();
                place.put_chunks(count, chunks, filtered).unwrap();
                place.at
            };
            let mut out = Vec::new();
            let written = put(&mut HdfWriter::new(&mut out, 1000));
            assert_eq!(written, 1000 + out.len() as u64);
            assert_eq!(put(&mut HdfWriter::measure(1000)), written, "{count} entries");
        }
    }
}

#[test]
fn runs_beyond_32_bits_need_the_regular_form() {
    let is_expressible = |rows: &[std::ops::Range<u64>]| Selection { rows, row: &[4] }.is_expressible();
    let far = u64::from(u32::MAX) + 10;
    assert!(is_expressible(std::slice::from_ref(&(far..far + 5))));
    assert!(is_expressible(&[0..3, 5..9]));
    assert!(!is_expressible(&[0..3, far..far + 1]));
}
