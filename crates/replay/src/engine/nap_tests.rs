//! Sleep duration estimator.
use super::*;

#[test]
fn it_learns_how_much_too_long_sleeps_last() {
    let mut nap = Nap::default();
    assert_eq!((nap.sleep_ns(200_000), nap.sleep_ns(1_000_000)), (0, 700_000));
    for _ in 0..1000 {
        nap.slept(700_000, 740_000);
    }
    assert_eq!(nap.sleep_ns(1_000_000), 940_000);
    for _ in 0..1000 {
        nap.slept(700_000, 700_000);
    }
    assert_eq!(nap.sleep_ns(1_000_000), 1_000_000 - MARGIN_NS_MIN);
    nap.slept(700_000, 9_000_000);
    assert_eq!(nap.sleep_ns(1_000_000), 1_000_000 - MARGIN_NS_MAX);
}
