//! Medians and intervals of few runs.

use super::*;

#[test]
fn one_run_has_a_median_and_no_interval() {
    assert_eq!(spread(&[3.0]), Some(Spread { median: 3.0, interval: None, count: 1 }));
    assert_eq!(spread(&[]), None);
}

#[test]
fn the_interval_holds_the_median_and_stays_within_the_runs() {
    let runs = [5.0, 1.0, 4.0, 2.0, 3.0];
    let found = spread(&runs).unwrap();
    let (lower, upper) = found.interval.unwrap();
    assert_eq!((found.median, found.count), (3.0, 5));
    assert!((1.0..3.0).contains(&lower) && upper > 3.0 && upper <= 5.0, "{found:?}");
    assert_eq!(spread(&runs), Some(found), "the same runs give the same interval");
}

#[test]
fn ratios_are_taken_pair_by_pair() {
    // The machine became ten times slower after the first pair; the ratio did not change.
    let found = spread_of_ratios(&[(20.0, 10.0), (2.0, 1.0), (2.0, 1.0)]).unwrap();
    assert_eq!(found, Spread { median: 2.0, interval: Some((2.0, 2.0)), count: 3 });
    assert_eq!(spread_of_ratios(&[(1.0, 0.0)]), None);
    assert_eq!(spread_of_ratios(&[]), None);
}
