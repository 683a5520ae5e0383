//! Positions of intervals.
use super::IntervalPosition::{self, Above, Below, Overlaps};

#[test]
fn intervals_are_apart_only_if_the_end_of_one_is_below_the_start_of_the_other() {
    let base = (1.4, Some(1.6));
    for (own, wanted) in [
        ((1.7, Some(1.8)), Above),
        ((1.7, None), Above),
        ((1.0, Some(1.3)), Below),
        ((1.0, None), Overlaps),
        ((1.5, Some(2.0)), Overlaps),
        ((1.0, Some(1.4)), Overlaps),
        ((1.6, Some(1.8)), Overlaps),
        (base, Overlaps),
    ] {
        assert_eq!(IntervalPosition::of(own, base), wanted, "{own:?}");
    }
    assert_eq!(IntervalPosition::of((9.0, None), (1.0, None)), Overlaps, "nothing failed");
}
