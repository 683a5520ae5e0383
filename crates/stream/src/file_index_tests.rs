//! Lines of the index, and names that are not text.
use proptest::prelude::*;

use super::*;

#[test]
fn a_line_has_only_what_is_known() {
    let entry =
        FileEntry { bytes: Some(3), crc32: Some("352441c2".into()), ..FileEntry::new(7, b"a b\n.tif") };
    let line = String::from_utf8(entry.to_line()).unwrap();
    assert_eq!(line, "{\"sequence\":7,\"name\":\"a b\\n.tif\",\"bytes\":3,\"crc32\":\"352441c2\"}\n");
    assert_eq!(FileEntry::from_line(line.as_bytes()), Some(entry));
    assert_eq!(FileEntry::from_line(b"{\"sequence\":1}"), None);
}

#[test]
fn invalid_digits_of_a_name() {
    let entry = |hex: &str| FileEntry { name_hex: Some(hex.into()), ..FileEntry::new(0, b"x") };
    assert_eq!(entry("ff2e").name_bytes(), Some(vec![0xFF, 0x2E]));
    assert_eq!((entry("ff2").name_bytes(), entry("gg").name_bytes()), (None, None));
}

proptest! {
    #[test]
    fn every_name_comes_back(name in proptest::collection::vec(1u8..=255, 1..255)) {
        let entry = FileEntry::new(0, &name);
        let read = FileEntry::from_line(&entry.to_line()).unwrap();
        prop_assert_eq!(read.name_bytes(), Some(name));
    }
}
