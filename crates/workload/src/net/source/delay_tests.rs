//! Clocks are related by the fastest report; the age of counters is bounded.
use proptest::prelude::*;

use super::*;

#[test]
fn nothing_is_known_before_the_first_report() {
    assert_eq!((Delay::default().on_our_clock(5), Delay::default().age_ns_max()), (None, 0));
}

#[test]
fn the_fastest_report_relates_the_clocks() {
    let mut delay = Delay::default();
    // Their clock is 1000 behind; deliveries take 30, 10 and 50, reports are 100 apart.
    for (our_ns, their_ns) in [(1130, 100), (1210, 200), (1350, 300)] {
        delay.take(our_ns, their_ns);
    }
    assert_eq!(delay.on_our_clock(200), Some(1210));
    // Just before 1350 the last report was that of 200, which is 1210 on our clock.
    assert_eq!(delay.age_ns_max(), 140);
}

proptest! {
    /// Whatever the offset of the clocks: with deliveries between `fast` and `fast + jitter` the age is at
    /// least one interval, and at most interval and jitter.
    #[test]
    fn the_age_is_bounded_by_interval_and_jitter(
        offset in -1_000_000i64..1_000_000,
        fast in 0u64..1000,
        jitters in prop::collection::vec(0u64..50, 2..40),
    ) {
        let mut delay = Delay::default();
        let base_ns = 10_000_000u64;
        for (n, jitter) in (0u64..).zip(&jitters) {
            let sent_ns = base_ns + n * 100;
            let their_ns = sent_ns.checked_add_signed(offset).unwrap();
            delay.take(sent_ns + fast + jitter, their_ns);
        }
        let (least, most) = (jitters.iter().min().unwrap(), jitters.iter().max().unwrap());
        prop_assert!(delay.age_ns_max() <= 100 + most - least);
        prop_assert!(delay.age_ns_max() >= 100);
        let start_ns = delay.on_our_clock(base_ns.checked_add_signed(offset).unwrap()).unwrap();
        prop_assert_eq!(start_ns, base_ns + fast + least);
    }
}
