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
