//! Comparison with a set of all numbers.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn it_counts_as_a_full_memory_would(steps in prop::collection::vec((0..6u8, 0..200u64), 1..500)) {
        let (mut sequence, mut all) = (Sequence::new(), BTreeSet::new());
        let (mut next, mut duplicates, mut reordered, mut too_late) = (0u64, 0, 0, 0);
        for (kind, step) in steps {
            let number = match kind {
                0..=2 => next + step % 3,
                3 => next.saturating_sub(step),
                4 => next.saturating_sub(step * 1000),
                _ => next + step * 700,
            };
            sequence.came(number);
            if number >= next {
                all.insert(number);
                next = number + 1;
            } else if next - number > WINDOW {
                too_late += 1;
            } else if all.insert(number) {
                reordered += 1;
            } else {
                duplicates += 1;
            }
        }
        let found = (sequence.unique, sequence.duplicates, sequence.reordered, sequence.too_late);
        prop_assert_eq!(found, (all.len() as u64, duplicates, reordered, too_late));
    }
}

#[test]
fn the_highest_sequence_numbers_are_valid() {
    let mut sequence = Sequence::new();
    for number in [0, u64::MAX, u64::MAX, u64::MAX - 1, 5] {
        sequence.came(number);
    }
    // The sequence saturates at the last number, so its repetition counts as new.
    assert_eq!((sequence.unique, sequence.too_late), (4, 1));
}
