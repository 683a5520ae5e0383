//! The archive's bytes according to the kernel's format description.
use super::*;

#[test]
fn an_entry_is_a_header_a_name_and_content_each_padded_to_four_bytes() {
    let mut archive = Archive::default();
    archive.file("a", b"xyz12");
    let header = "070701\
        00000001000081ED0000000000000000000000010000000000000005\
        0000000000000000000000000000000000000002\
        00000000";
    let bytes = archive.finish();
    assert_eq!(&bytes[..110], header.as_bytes());
    assert_eq!(&bytes[110..120], b"a\0xyz12\0\0\0");
    assert_eq!(&bytes[120..126], b"070701");
    assert!(bytes.ends_with(b"TRAILER!!!\0\0\0\0"));
}

#[test]
fn a_device_has_its_numbers_and_a_link_its_target() {
    let mut archive = Archive::default();
    archive.device("c", 5, 1);
    archive.link("l", "target");
    let bytes = archive.finish();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("0000000500000001"), "{text}");
    assert!(text.contains("l\0target\0\0"), "{text}");
    assert_eq!(bytes.len() % 4, 0);
}

#[test]
fn a_compressed_archive_has_chunks_with_their_lengths() {
    let archive: Vec<u8> = (0..LZ4_CHUNK + 100).map(|at| (at / 7) as u8).collect();
    let frame = compressed(&archive);
    assert_eq!(&frame[..4], [0x02, 0x21, 0x4c, 0x18]);
    let (mut rest, mut found) = (&frame[4..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (block, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        let limit = LZ4_CHUNK.min(archive.len() - found.len());
        found.extend(lz4_flex::block::decompress(block, limit).unwrap());
        rest = after;
    }
    assert_eq!(found, archive);
}
