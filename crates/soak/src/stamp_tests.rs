//! Classification of damaged pages.
use proptest::prelude::*;

use super::*;

const HERE: Stamp = Stamp { run: 0x1122_3344_5566_7788, file: 1, offset: 40 << 20, generation: 7 };

fn page(stamp: Stamp) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    stamp.fill(&mut page);
    page
}

fn kind(page: &[u8]) -> Option<SoakKind> {
    judge(page, HERE, 6).map(|verdict| verdict.kind)
}

/// The page with sectors `from..` taken from `other`.
fn joined(other: &[u8], from: usize) -> Vec<u8> {
    let mut joined = page(HERE);
    joined[from * SECTOR_BYTES..].copy_from_slice(&other[from * SECTOR_BYTES..]);
    joined
}

#[test]
fn a_page_that_belongs_elsewhere_is_misplaced() {
    for (file, offset) in [(1, HERE.offset + 4096), (1, 0), (0, HERE.offset), (1, HERE.offset - 512)] {
        let other = Stamp { file, offset, ..HERE };
        let verdict = judge(&page(other), HERE, 6).unwrap();
        let origin = SoakOrigin { is_ours: true, file, offset, generation: 7 };
        assert_eq!(verdict, Verdict { kind: SoakKind::Misplaced, origin: Some(origin) });
    }
    // Also a part of a page and an earlier generation.
    let other = Stamp { offset: 0, generation: 3, ..HERE };
    assert_eq!(kind(&joined(&page(other), 5)), Some(SoakKind::Misplaced));
}

#[test]
fn a_page_of_an_earlier_generation_is_stale() {
    for generation in [6, 1] {
        let verdict = judge(&page(Stamp { generation, ..HERE }), HERE, 6).unwrap();
        assert_eq!(verdict.kind, SoakKind::Stale);
        assert_eq!(
            verdict.origin.map(|origin| (origin.offset, origin.generation)),
            Some((HERE.offset, generation))
        );
    }
}

#[test]
fn parts_of_two_generations_are_torn() {
    let older = page(Stamp { generation: 6, ..HERE });
    for sectors in 1..8 {
        assert_eq!(kind(&joined(&older, sectors)), Some(SoakKind::Torn), "{sectors} new sectors");
    }
    assert_eq!(kind(&joined(&older, 0)), Some(SoakKind::Stale));
    // Within a sector, in both directions; the generation differs from byte 32 on.
    for cut in [36, 100, 511, 512 + 36, 4095] {
        let (mut new_first, mut old_first) = (page(HERE), older.clone());
        new_first[cut..].copy_from_slice(&older[cut..]);
        old_first[cut..].copy_from_slice(&page(HERE)[cut..]);
        for torn in [new_first, old_first] {
            let found = kind(&torn);
            let few = different_bits(&torn, &page(HERE)) <= FLIPPED_BITS_MAX;
            assert!(
                found == Some(SoakKind::Torn) || few && found == Some(SoakKind::Flipped),
                "{cut}: {found:?}"
            );
        }
    }
    // Before the first write there were zeros.
    let first = Stamp { generation: 1, ..HERE };
    let mut torn = page(first);
    torn[1024..].fill(0);
    assert_eq!(judge(&torn, first, 0).unwrap().kind, SoakKind::Torn);
}

#[test]
fn lost_flipped_and_foreign_pages_are_distinguished() {
    assert_eq!(kind(&[0; PAGE_BYTES]), Some(SoakKind::Blank));
    assert_eq!(kind(&joined(&[0; PAGE_BYTES], 3)), Some(SoakKind::Blank), "there were no zeros before");
    let other_run = Stamp { run: 5, ..HERE };
    let verdict = judge(&page(other_run), HERE, 6).unwrap();
    assert_eq!((verdict.kind, verdict.origin.map(|o| o.is_ours)), (SoakKind::Foreign, Some(false)));
    let future = Stamp { generation: 8, ..HERE };
    assert_eq!(kind(&page(future)), Some(SoakKind::Foreign));
    let mut noise = [0; PAGE_BYTES];
    fill_random(&mut noise, SEED);
    assert_eq!(kind(&noise), Some(SoakKind::Foreign));
}

proptest! {
    #[test]
    fn a_stamp_is_read_as_it_was_written(run: u64, file: u64, offset: u64, generation in 1..u64::MAX) {
        let stamp = Stamp { run, file, offset, generation };
        let mut sector = [0; SECTOR_BYTES];
        stamp.fill(&mut sector);
        prop_assert_eq!(Stamp::read(&sector), Some(stamp));
    }

    #[test]
    fn any_few_bits_are_found_and_called_flipped(
        bits in prop::collection::btree_set(0..PAGE_BYTES * 8, 1..20),
    ) {
        let mut page = page(HERE);
        for bit in &bits {
            page[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert_eq!(judge(&page, HERE, 6), Some(Verdict { kind: SoakKind::Flipped, origin: None }));
    }

    #[test]
    fn any_bytes_are_judged(page in prop::collection::vec(any::<u8>(), PAGE_BYTES), previous in 0..7u64) {
        prop_assert!(judge(&page, HERE, previous).is_some());
    }
}
