//! Every wrong byte is found, and its location follows from the rereads.
use std::io::{Seek, SeekFrom, Write};

use keepup_workload::random_data::{SEED, fill_random};

use super::*;
use crate::turn::Blocks;

const STAMP: Stamp = Stamp { run: 9, file: 0, offset: 1 << 20, generation: 3 };
const PIECE: usize = 16 * PAGE_BYTES;

fn stamped(stamp: Stamp) -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    stamp.fill(&mut bytes);
    bytes
}

#[test]
fn the_place_follows_from_the_readings() {
    let failed = || Seen::Failed("EIO".into());
    let table = [
        ([Seen::SameWrong, Seen::SameWrong], Seen::SameWrong, Seen::SameWrong, Some(SoakPlace::Medium)),
        ([Seen::SameWrong, failed()], Seen::Right, Seen::SameWrong, Some(SoakPlace::Medium)),
        ([Seen::Right, Seen::Right], Seen::SameWrong, Seen::Right, Some(SoakPlace::Cache)),
        ([Seen::Right, Seen::Right], Seen::Right, Seen::Right, Some(SoakPlace::Path)),
        ([Seen::Right, Seen::SameWrong], Seen::SameWrong, Seen::SameWrong, Some(SoakPlace::Path)),
        ([Seen::OtherWrong, Seen::SameWrong], Seen::Right, Seen::OtherWrong, Some(SoakPlace::Unsteady)),
        ([failed(), failed()], Seen::Right, failed(), None),
    ];
    for (direct, cached, dropped, expected) in table {
        assert_eq!(fault_location(&direct, &cached, &dropped), expected, "{direct:?} {cached:?} {dropped:?}");
    }
}

#[test]
fn wrong_bytes_are_reported_as_ranges() {
    let mut expected = vec![0; 3 * PAGE_BYTES];
    fill_random(&mut expected, SEED);
    let mut found = expected.clone();
    found[7] ^= 0x41;
    found[20] ^= 0x80;
    found[4096..8192].fill(0);
    fill_random(&mut found[9000..9100], 77);
    let piece = Piece { offset: 1 << 30, expected: &expected, found: &found };
    let ranges = plain_ranges(&piece);
    let kinds: Vec<_> = ranges.iter().map(|range| range.kind).collect();
    assert_eq!(kinds, [SoakKind::Flipped, SoakKind::Blank, SoakKind::Foreign]);
    // The two flips lie close together.
    assert_eq!((ranges[0].offset, ranges[0].bytes, ranges[0].bits), ((1 << 30) + 7, 14, 3));
    assert!(ranges[0].xor.starts_with("4100") && ranges[0].xor.ends_with("80"), "{:?}", ranges[0]);
    assert_eq!(ranges[0].expected[..2], format!("{:02x}", expected[7]));
    assert!(ranges[2].offset >= (1 << 30) + 9000 && ranges[2].bytes > 90, "{:?}", ranges[2]);
    let bits: u64 = ranges.iter().map(|range| range.bits).sum();
    assert_eq!(bits, different_bits(&expected, &found), "no wrong bit is left out or counted twice");
}

#[test]
fn stamped_pages_in_a_row_are_one_place() {
    let expected = stamped(STAMP);
    let mut found = expected.clone();
    let older = stamped(Stamp { generation: 2, ..STAMP });
    let elsewhere = stamped(Stamp { offset: 0, ..STAMP });
    let pages = |from: usize, to: usize| from * PAGE_BYTES..to * PAGE_BYTES;
    found[pages(1, 4)].copy_from_slice(&older[pages(1, 4)]);
    found[pages(4, 6)].copy_from_slice(&elsewhere[pages(9, 11)]);
    found[pages(7, 8)][100] ^= 1;
    found[pages(7, 8)][3000] ^= 1;
    found[pages(9, 10)][2048..].copy_from_slice(&older[pages(9, 10)][2048..]);
    let piece = Piece { offset: STAMP.offset, expected: &expected, found: &found };
    let ranges = stamped_ranges(&piece, STAMP, 2);
    let listed: Vec<_> =
        ranges.iter().map(|r| (r.kind, (r.offset - STAMP.offset) / PAGE_BYTES as u64)).collect();
    let kinds = [
        (SoakKind::Stale, 1),
        (SoakKind::Misplaced, 4),
        (SoakKind::Flipped, 7),
        (SoakKind::Flipped, 7),
        (SoakKind::Torn, 9),
    ];
    assert_eq!(listed, kinds);
    assert_eq!(ranges[0].bytes.div_ceil(PAGE_BYTES as u64), 3, "{:?}", ranges[0]);
    assert_eq!(ranges[1].origin.map(|origin| origin.offset), Some(9 * PAGE_BYTES as u64));
    assert_eq!(ranges[2].offset, STAMP.offset + 7 * PAGE_BYTES as u64 + 100);
    let bits: u64 = ranges.iter().map(|range| range.bits).sum();
    assert_eq!(bits, different_bits(&expected, &found));
}

#[test]
fn medium_damage_is_distinguished_from_read_errors() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("file");
    let expected = stamped(STAMP);
    let mut wrong = expected.clone();
    wrong[5000] ^= 16;
    let mut file = std::fs::File::create(&path).unwrap();
    let mut blocks = Blocks::new().unwrap();
    for (written, fault_location) in [(&wrong, SoakPlace::Medium), (&expected, SoakPlace::Path)] {
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(written).unwrap();
        file.sync_all().unwrap();
        let piece = Piece { offset: 0, expected: &expected, found: &wrong };
        let mut finding = Finding::new(1, directory.path(), &path, SoakFile::Copy, "way".into());
        finding.add(plain_ranges(&piece), Some(&piece));
        finding.read_again(&path, &piece, &mut blocks.again);
        assert_eq!(finding.is_lasting(), fault_location == SoakPlace::Medium);
        let mismatch = finding.end(None);
        assert_eq!((mismatch.place, mismatch.rereads.len()), (Some(fault_location), 5), "{mismatch:?}");
        assert_eq!((mismatch.bytes, mismatch.bits, mismatch.ranges[0].offset), (1, 1, 5000));
    }
}

#[test]
fn of_very_many_places_the_first_are_listed_and_all_are_counted() {
    let (expected, found) = (vec![0; 100 * 64], [[1; 1].as_slice(), &[0; 63]].concat().repeat(100));
    let piece = Piece { offset: 0, expected: &expected, found: &found };
    let mut finding = Finding::new(1, Path::new("v"), Path::new("f"), SoakFile::Copy, String::new());
    finding.add(plain_ranges(&piece), Some(&piece));
    let mismatch = finding.end(Some(Path::new("kept")));
    assert_eq!((mismatch.ranges.len(), mismatch.kinds[&SoakKind::Flipped]), (RANGES_MAX, 100));
    assert_eq!((mismatch.bytes, mismatch.bits), (100, 100));
    assert_eq!(mismatch.kept.as_deref(), Some("kept"));
}
