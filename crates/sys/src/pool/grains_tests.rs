//! The map agrees with the plainest search there is.
use proptest::prelude::*;

use super::*;

/// First fit without marks, grain by grain.
fn plain_find(taken: &[bool], first: usize, region: usize, want: usize) -> Option<usize> {
    (0..(taken.len() + 1).saturating_sub(want)).find(|&start| {
        let is_free = taken[start..start + want].iter().all(|&is_taken| !is_taken);
        is_free && (first + start) / region == (first + start + want - 1) / region
    })
}

proptest! {
    #[test]
    fn every_run_is_the_lowest_that_fits(
        first in 0usize..300,
        count in 1usize..400,
        region in 30usize..200,
        steps in proptest::collection::vec((1usize..40, any::<bool>(), any::<usize>()), 1..200),
    ) {
        let mut grains = Grains::new(first..first + count, region);
        let mut taken = vec![false; count];
        let mut held: Vec<(usize, usize)> = Vec::new();
        for (want, gives, which) in steps {
            if gives && !held.is_empty() {
                let (start, size) = held.swap_remove(which % held.len());
                taken[start - first..start - first + size].fill(false);
                prop_assert!(grains.has(start, size));
                grains.give_back(start, size);
            } else {
                let expected = plain_find(&taken, first, region, want);
                prop_assert_eq!(grains.take(want), expected.map(|start| first + start));
                if let Some(start) = expected {
                    taken[start..start + want].fill(true);
                    held.push((first + start, want));
                }
            }
            prop_assert_eq!(grains.free(), taken.iter().filter(|&&is_taken| !is_taken).count());
        }
    }
}

#[test]
fn a_run_outside_the_range_is_not_part_of_it() {
    let grains = Grains::new(128..256, 1 << 16);
    assert!(grains.has(128, 128));
    assert!(!grains.has(127, 2) && !grains.has(250, 7));
}
