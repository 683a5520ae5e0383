//! Merging loses nothing and respects the bound.
use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    first: u64,
    last: u64,
}

impl Join for Stretch {
    fn join(self, later: Self) -> Self {
        assert_eq!(self.last + 1, later.first, "only neighbours are joined");
        Self { first: self.first, last: later.last }
    }
}

#[test]
fn every_number_stays_and_the_bound_holds() {
    for items_max in [2, 3, 8, 100] {
        let mut list = Thinned::new(items_max);
        for number in 0..1000 {
            list.push(Stretch { first: number, last: number });
            let items = list.items();
            assert!(items.len() <= items_max.next_multiple_of(2) + 1, "{items_max}: {}", items.len());
            assert_eq!((items[0].first, items[items.len() - 1].last), (0, number));
            assert!(items.windows(2).all(|pair| pair[0].last + 1 == pair[1].first), "{items:?}");
        }
        assert!(list.items().len() > items_max / 2 - 1, "no more is joined than needed");
    }
}

#[test]
fn a_joined_rate_is_that_of_both_and_the_lowest_is_kept() {
    let sample = |at: f64, bytes: u64| SteadySample {
        at_seconds: at,
        at_bytes: bytes,
        seconds: 1.0,
        bytes,
        lowest_bytes_per_second: bytes as f64,
        overwrites: false,
        conditions: keepup_results::SteadyConditions::default(),
    };
    let joined = sample(1.0, 100).join(sample(2.0, 300));
    assert_eq!((joined.seconds, joined.bytes, joined.lowest_bytes_per_second), (2.0, 400, 100.0));
    assert_eq!((joined.at_seconds, joined.at_bytes), (2.0, 300));
}
