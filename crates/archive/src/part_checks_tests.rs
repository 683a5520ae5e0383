//! A store's answers about parts are compared with the parts.
use super::*;

/// ETag of one part, as S3 forms it.
const MD5_OF_ABC: &str = "900150983cd24fb0d6963f7d28e17f72";
/// Base64 of the SHA-256 of "abc".
const SHA256_OF_ABC: &str = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
/// Check value of CRC-64/NVME: that of "123456789".
const CRC64_OF_DIGITS: [u8; 8] = 0xae8b_1486_0a79_9888_u64.to_be_bytes();

/// The client library's name for a part with an ETag and a checksum.
fn content(etag: &str, name: &str, checksum: &str) -> String {
    format!("<PartMetadata><e_tag>\"{etag}\"</e_tag><{name}>{checksum}</{name}></PartMetadata>")
}

#[test]
fn an_etag_confirms_a_part() {
    for content in [
        format!("\"{MD5_OF_ABC}\""),
        format!("<PartMetadata><e_tag>\"{MD5_OF_ABC}\"</e_tag></PartMetadata>"),
        format!("<PartMetadata><e_tag>&quot;{MD5_OF_ABC}&quot;</e_tag></PartMetadata>"),
    ] {
        let found = checks(&content, 3, b"abc");
        assert!(found.has_md5 && !found.has_crc64 && is_part(&found, b"abc"), "{content}");
        let other = checks(&content, 3, b"abd");
        assert!(!other.has_md5 && is_part(&other, b"abd") && !is_part(&other, b"abc"));
    }
}

#[test]
fn a_crc64_confirms_a_part_without_its_md5() {
    let good = content("x", "checksum_crc64nvme", &STANDARD.encode(CRC64_OF_DIGITS));
    let found = checks(&good, 3, b"123456789");
    assert_eq!((found.has_crc64, found.has_md5, found.has_sha256), (true, false, false));
    assert!(!checks(&good, 3, b"123456780").has_crc64);
    let other = content("x", "checksum_crc64nvme", &STANDARD.encode([0; 8]));
    assert!(!checks(&other, 3, b"123456789").has_crc64);
}

#[test]
fn a_wrong_crc64_is_no_reason_to_ignore_the_etag() {
    let one = content(MD5_OF_ABC, "checksum_crc64nvme", &STANDARD.encode([0; 8]));
    let found = checks(&one, 3, b"abc");
    assert_eq!((found.has_crc64, found.has_md5), (false, true));
}

#[test]
fn a_sha256_confirms_a_part_of_an_encrypted_object() {
    let content = content("x", "checksum_sha256", SHA256_OF_ABC);
    let found = checks(&content, 0, b"abc");
    assert_eq!((found.has_crc64, found.has_md5, found.has_sha256), (false, false, true));
    assert!(!checks(&content, 0, b"abd").has_sha256);
    assert!(!checks("block-1", 0, b"abc").has_sha256);
}

/// Parts "abc" with these checks, CRC-64, MD5 and SHA-256, and the MD5 as ETag.
fn parts(all: &[(bool, bool, bool)]) -> BTreeMap<usize, (String, PartChecks)> {
    let part = |&(has_crc64, has_md5, has_sha256): &(bool, bool, bool)| {
        let checks = PartChecks { has_crc64, has_md5, has_sha256, ..no_checks() };
        (format!("\"{MD5_OF_ABC}\""), checks)
    };
    all.iter().map(part).enumerate().collect()
}

#[test]
fn the_whole_is_confirmed_by_its_parts() {
    let (crc64, md5, sha256) = ((true, false, false), (false, true, false), (false, false, true));
    let both = (true, true, false);
    let mut twice = Md5::new();
    twice.update([Md5::digest(b"abc"), Md5::digest(b"abc")].concat());
    let etag = format!("\"{}-2\"", hex(&twice.finalize()));
    for all in [[md5, md5], [both, crc64], [both, md5]] {
        assert!(is_confirmed(&parts(&all), Some(&etag), None), "{all:?}");
        assert!(!is_confirmed(&parts(&all), Some("\"0-2\""), None), "other parts or another order: {all:?}");
        assert!(!is_confirmed(&parts(&all), None, None), "{all:?}");
    }
    // ETags that are no MD5s say nothing.
    for all in [[crc64, crc64], [sha256, sha256], [crc64, sha256]] {
        assert!(
            is_confirmed(&parts(&all), Some("\"0-2\""), None) && is_confirmed(&parts(&all), None, None),
            "{all:?}"
        );
    }
    let none = (false, false, false);
    for all in [[none, none], [sha256, none], [both, none]] {
        assert!(!is_confirmed(&parts(&all), Some(&etag), None), "{all:?}");
    }
}

#[test]
fn an_etag_of_another_form_confirms_no_order() {
    let mut all = parts(&[(true, true, false), (true, false, false)]);
    all.insert(1, ("\"\u{e9}tag\"".to_owned(), PartChecks { has_crc64: true, ..no_checks() }));
    assert!(!is_confirmed(&all, Some("\"0-2\""), None));
}

#[test]
fn a_checksum_of_the_whole_decides_instead_of_its_etag() {
    // Google: parts have MD5s, the whole object has neither.
    let (md5, none) = ((false, true, false), (false, false, false));
    for (all, whole, wanted) in [
        ([md5, md5], Some(true), true),
        ([md5, md5], Some(false), false),
        ([md5, md5], None, false),
        ([md5, none], Some(true), false),
    ] {
        assert_eq!(is_confirmed(&parts(&all), Some("CKih16GjycICEAE="), whole), wanted, "{all:?} {whole:?}");
    }
}
