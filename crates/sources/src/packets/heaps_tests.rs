//! Heaps whose packets arrive in any order, twice, not at all, or contradict each other.
use proptest::prelude::*;

use super::*;

const LIMITS: HeapLimits = HeapLimits { window: 4, bytes: 1000, heap_bytes: 500, keeps_values: false };

/// Adds a part of a heap whose byte `at` is `heap + at`.
fn add(heaps: &mut Heaps, heap: u64, length: u64, part: Range<u64>) -> Added {
    let packet: Vec<u8> = part.clone().map(|at| (heap + at) as u8).collect();
    let payload = 0..packet.len();
    let (is_stop, has_values, offset) = (false, false, part.start);
    let header = HeapPacket { heap, mask: 0xFFFF, length, offset, payload, is_stop, has_values };
    heaps.add((&header, &packet), (heap, 0), LIMITS, &mut Buffers::default())
}

fn whole(added: Added) -> Option<Vec<u8>> {
    match added {
        Added::Whole(heap) => Some(heap.bytes),
        _ => None,
    }
}

fn bytes(heap: u64, length: u64) -> Vec<u8> {
    (0..length).map(|at| (heap + at) as u8).collect()
}

#[test]
fn several_heaps_at_once() {
    let mut heaps = Heaps::default();
    for heap in [7, 8] {
        assert!(matches!(add(&mut heaps, heap, 10, 6..10), Added::Part));
        assert!(matches!(add(&mut heaps, heap, 10, 0..3), Added::Part));
    }
    assert!(matches!(add(&mut heaps, 8, 10, 0..3), Added::Duplicate));
    assert!(matches!(add(&mut heaps, 8, 10, 1..2), Added::Duplicate));
    assert!(matches!(add(&mut heaps, 8, 10, 2..4), Added::Refused(_, why) if why.contains("overlap")));
    assert!(
        matches!(add(&mut heaps, 8, 11, 3..6), Added::Refused(_, why) if why.contains("heap length 11, 10"))
    );
    assert_eq!(whole(add(&mut heaps, 8, 10, 3..6)), Some(bytes(8, 10)));
    assert_eq!(whole(add(&mut heaps, 7, 10, 3..6)), Some(bytes(7, 10)));
    // A late duplicate is a copy, not a heap that is missing.
    assert!(matches!(add(&mut heaps, 8, 10, 0..3), Added::Part));
    heaps.close(&mut Buffers::default());
    assert_eq!(heaps.take_given_up(), GivenUp { heaps: 0, first: None, duplicates: 1 });
    assert_eq!(whole(add(&mut heaps, 9, 0, 0..0)), Some(Vec::new()));
}

#[test]
fn a_heap_is_given_up_when_later_ones_are_whole_or_memory_is_short() {
    let mut heaps = Heaps::default();
    (0..6).for_each(|heap| assert!(matches!(add(&mut heaps, heap, 10, 0..5), Added::Part)));
    assert_eq!(heaps.open.len(), 6, "as many as are sent at once");
    (1..4).for_each(|heap| assert_eq!(whole(add(&mut heaps, heap, 10, 5..10)), Some(bytes(heap, 10))));
    assert_eq!((heaps.open.len(), heaps.take_given_up().heaps), (3, 0));
    // The fourth that started after its last packet.
    assert!(whole(add(&mut heaps, 4, 10, 5..10)).is_some());
    let first = Some("5 of 10 bytes of heap 0 arrived".to_owned());
    assert_eq!(heaps.take_given_up(), GivenUp { heaps: 1, first, duplicates: 0 });
    // 10 + 500 + 500 bytes are too many.
    add(&mut heaps, 10, 10, 0..5);
    (11..13).for_each(|heap| assert!(matches!(add(&mut heaps, heap, 500, 0..5), Added::Part)));
    assert_eq!(heaps.open.iter().map(|heap| heap.number).collect::<Vec<_>>(), [11, 12]);
    let is_too_large = |why: &str| why.contains("limit 500 bytes");
    assert!(matches!(add(&mut heaps, 13, 501, 0..5), Added::Refused(_, why) if is_too_large(&why)));
    assert!(matches!(add(&mut heaps, 13, 1 << 40, 0..5), Added::Refused(..)));
}

#[test]
fn a_stream_starts_with_a_heap_whose_start_has_arrived() {
    let mut heaps = Heaps::default();
    add(&mut heaps, 3, 10, 5..10);
    add(&mut heaps, 4, 10, 0..5);
    let Added::Whole(heap) = add(&mut heaps, 6, 2, 0..2) else { panic!("it is whole") };
    assert_eq!((heaps.first_number(&heap, 1), heaps.first_number(&heap, 4)), (4, 6));
}

proptest! {
    /// Heaps are cut at random places, and their packets mixed within the window.
    #[test]
    fn every_order_gives_the_same_heaps(
        cuts in proptest::collection::vec(proptest::collection::btree_set(1u64..100, 0..12), 1..4),
        seed: u64,
    ) {
        let mut packets = Vec::new();
        for (heap, cuts) in (0u64..).zip(&cuts) {
            let edges: Vec<u64> = [0].into_iter().chain(cuts.iter().copied()).chain([100]).collect();
            packets.extend(edges.windows(2).map(|edge| (heap, edge[0]..edge[1])));
        }
        // Fisher and Yates, with a linear congruential generator.
        let mut state = seed;
        for at in (1..packets.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            packets.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut heaps = Heaps::default();
        let mut found = std::collections::BTreeMap::new();
        for (heap, part) in packets {
            if let Some(whole) = whole(add(&mut heaps, heap, 100, part)) {
                prop_assert!(found.insert(heap, whole).is_none());
            }
        }
        prop_assert_eq!(found.len(), cuts.len());
        prop_assert!(found.iter().all(|(heap, whole)| *whole == bytes(*heap, 100)));
    }

    /// Whatever is sent, a whole heap has every byte that was sent for it last, and memory stays bounded.
    #[test]
    fn memory_is_bounded(
        packets in proptest::collection::vec((0u64..8, 0u64..600, 0u64..40, 0u64..40), 0..200),
    ) {
        let mut heaps = Heaps::default();
        for (heap, length, start, bytes) in packets {
            let end = (start + bytes).min(length);
            let added = add(&mut heaps, heap, length, start.min(end)..end);
            prop_assert!(heaps.open.len() <= OPEN_MAX);
            prop_assert!(heaps.open.iter().map(|heap| heap.bytes.len()).sum::<usize>() <= LIMITS.bytes);
            if let Added::Whole(whole) = added {
                prop_assert_eq!(whole.bytes, self::bytes(heap, length));
            }
        }
    }
}
