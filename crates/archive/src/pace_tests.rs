//! The rate limit holds over any time, and a stall is caught up for a second at most.
use super::*;

#[test]
fn parts_are_sent_at_the_rate() {
    let mut pace = Pace::new(Some(1e6), 0);
    let times: Vec<u64> = (0..4).map(|_| pace.before(500_000, 0)).collect();
    assert_eq!(times, [0, 500_000_000, 1_000_000_000, 1_500_000_000]);
}

#[test]
fn a_stall_is_caught_up_for_one_second() {
    let mut pace = Pace::new(Some(1e6), 0);
    assert_eq!(pace.before(500_000, 10_000_000_000), 9_000_000_000);
    assert_eq!(pace.before(500_000, 10_000_000_000), 9_500_000_000);
    assert_eq!(pace.before(500_000, 10_000_000_000), 10_000_000_000);
    assert_eq!(pace.before(500_000, 10_000_000_000), 10_500_000_000);
}

#[test]
fn without_a_rate_nothing_waits() {
    let mut pace = Pace::new(None, 7);
    assert_eq!((pace.before(u64::MAX, 9), pace.before(1, 10)), (9, 10));
}
