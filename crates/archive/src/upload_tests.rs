//! A store's answers about parts are compared with the parts.
use super::*;

/// ETag of one part, as S3 forms it.
const MD5_OF_ABC: &str = "900150983cd24fb0d6963f7d28e17f72";
/// Base64 of the SHA-256 of "abc".
const SHA256_OF_ABC: &str = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";

#[test]
fn an_etag_confirms_a_part() {
    for content in [
        format!("\"{MD5_OF_ABC}\""),
        format!("<PartMetadata><e_tag>\"{MD5_OF_ABC}\"</e_tag></PartMetadata>"),
        format!("<PartMetadata><e_tag>&quot;{MD5_OF_ABC}&quot;</e_tag></PartMetadata>"),
    ] {
        let found = checks(&content, b"abc");
        assert!(found.has_md5 && found.md5 == MD5_OF_ABC, "{content}");
        assert!(!checks(&content, b"abd").has_md5);
    }
}

#[test]
fn a_sha256_confirms_a_part_of_an_encrypted_object() {
    let content = format!(
        "<PartMetadata><e_tag>\"x\"</e_tag><checksum_sha256>{SHA256_OF_ABC}</checksum_sha256></PartMetadata>"
    );
    let found = checks(&content, b"abc");
    assert_eq!((found.has_md5, found.has_sha256), (false, true));
    assert!(!checks(&content, b"abd").has_sha256);
    assert!(!checks("block-1", b"abc").has_sha256);
}

fn part(index: usize, has_md5: bool, has_sha256: bool) -> (usize, (String, PartChecks)) {
    (index, (String::new(), PartChecks { md5: MD5_OF_ABC.to_owned(), has_md5, has_sha256 }))
}

#[test]
fn the_whole_is_confirmed_by_its_parts() {
    let mut twice = Md5::new();
    let one = Md5::digest(b"abc");
    twice.update(one);
    twice.update(one);
    let etag = format!("\"{}-2\"", hex(&twice.finalize()));
    let parts = BTreeMap::from([part(0, true, false), part(1, true, false)]);
    assert!(is_confirmed(&parts, Some(&etag)));
    assert!(!is_confirmed(&parts, Some("\"0-2\"")), "other parts or another order");
    assert!(!is_confirmed(&parts, None));
    assert!(is_confirmed(&BTreeMap::from([part(0, true, false), part(1, false, true)]), None));
    assert!(!is_confirmed(&BTreeMap::from([part(0, false, true), part(1, false, false)]), Some(&etag)));
}
