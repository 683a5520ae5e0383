//! Ranges seen in any order.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn parts_seen_before_are_left_out() {
    let mut seen = Seen::default();
    let whole = |range: Range<u64>| vec![range];
    assert_eq!(seen.add(10..20), whole(10..20));
    assert_eq!(seen.add(30..40), whole(30..40));
    assert_eq!(seen.add(5..35), [5..10, 20..30]);
    assert!(seen.add(12..18).is_empty());
    assert!(seen.add(50..50).is_empty());
    assert_eq!(seen.ranges().collect::<Vec<_>>(), whole(5..40));
    assert_eq!(seen.add(u64::MAX - 1..u64::MAX), whole(u64::MAX - 1..u64::MAX));
}

proptest! {
    #[test]
    fn numbers_are_seen_once(ranges in prop::collection::vec((0_u64..60, 0_u64..12), 0..20)) {
        let (mut seen, mut expected) = (Seen::default(), BTreeSet::new());
        for (start, length) in ranges {
            let fresh: Vec<u64> = seen.add(start..start + length).into_iter().flatten().collect();
            let new: Vec<u64> = (start..start + length).filter(|number| expected.insert(*number)).collect();
            prop_assert_eq!(fresh, new);
        }
        let all: Vec<Range<u64>> = seen.ranges().collect();
        prop_assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert!(all.into_iter().flatten().eq(expected));
    }
}
