//! References are reproducible, and changes are detected.
use super::*;
use crate::turn::Blocks;

const BYTES: u64 = 2 * PIECE_BYTES as u64 + 777;

#[test]
fn a_made_reference_is_the_same_each_time_and_no_page_comes_twice() {
    let directory = tempfile::tempdir().unwrap();
    let mut blocks = Blocks::new().unwrap();
    let mut made = |name: &str, seed| {
        let path = directory.path().join(name);
        Reference::make(path, BYTES, seed, DigestKind::Blake3, &mut blocks.expected).unwrap()
    };
    let (a, b, c) = (made("a", 5), made("b", 5), made("c", 6));
    let read = |reference: &Reference| std::fs::read(&reference.path).unwrap();
    assert_eq!((read(&a), &a.digest), (read(&b), &b.digest));
    assert_ne!(a.digest, c.digest);
    assert_eq!(a.digest, blake3::hash(&read(&a)).to_hex().to_string());
    let bytes = read(&a);
    let pages: std::collections::BTreeSet<&[u8]> = bytes.chunks(4096).collect();
    assert_eq!(pages.len(), bytes.len().div_ceil(4096));
    // A reference read as a user's file, without the seed, has the same digest.
    let taken = Reference::take(&a.path, DigestKind::Blake3, &mut blocks.expected).unwrap();
    assert_eq!((taken.bytes, &taken.digest), (BYTES, &a.digest));
    for offset in [0, PIECE_BYTES as u64, 2 * PIECE_BYTES as u64] {
        let piece = &bytes[offset as usize..][..piece_bytes(BYTES, offset)];
        let mut damaged = piece.to_vec();
        assert!(taken.is_piece(offset, piece));
        damaged[700] ^= 1;
        assert!(!taken.is_piece(offset, &damaged));
        assert!(taken.restore(offset, &mut damaged) && damaged == piece);
    }
}

#[test]
fn a_reference_that_changed_cannot_be_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine");
    std::fs::write(&path, [7; 5000]).unwrap();
    let mut blocks = Blocks::new().unwrap();
    let taken = Reference::take(&path, DigestKind::Md5, &mut blocks.expected).unwrap();
    std::fs::write(&path, [8; 5000]).unwrap();
    assert!(!taken.restore(0, &mut [0; 5000]));
    for nothing in ["gone", ""] {
        assert!(
            Reference::take(&directory.path().join(nothing), DigestKind::Md5, &mut blocks.expected).is_err()
        );
    }
}
