//! Offsets from exchanges, and their error.
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn the_error_bounds_the_offset(
        offset in -1_000_000_000i64..1_000_000_000, there in 0u64..5_000_000, back in 0u64..5_000_000,
        held in 0u64..1_000_000_000,
    ) {
        let sent = 2_000_000_000u64;
        let received = (sent + there).checked_add_signed(offset).unwrap();
        let exchange = Exchange {
            heartbeat_sent_ns: sent,
            heartbeat_received_ns: received,
            order_sent_ns: received + held,
            order_received_ns: sent + there + held + back,
        };
        let found = exchange.offset().unwrap();
        prop_assert!(found.ns.abs_diff(offset) <= found.error_ns);
        prop_assert!(found.error_ns <= (there + back).div_ceil(2) + held / 10_000);
    }

    #[test]
    fn any_times_are_taken(a: u64, b: u64, c: u64, d: u64) {
        let exchange = Exchange {
            heartbeat_sent_ns: a,
            heartbeat_received_ns: b,
            order_sent_ns: c,
            order_received_ns: d,
        };
        let mut filter = ClockFilter::default();
        filter.add(&exchange);
        if let Some(offset) = filter.best(d) {
            let _ = to_host_ns(c, offset);
        }
    }
}

#[test]
fn the_best_of_the_last_exchanges_counts() {
    let exchange = |travel: u64| Exchange {
        heartbeat_sent_ns: 1_000,
        heartbeat_received_ns: 5_000 + travel,
        order_sent_ns: 5_000 + travel,
        order_received_ns: 1_000 + 2 * travel,
    };
    let mut filter = ClockFilter::default();
    assert_eq!(filter.best(0), None);
    [300, 10, 500].iter().for_each(|&travel| filter.add(&exchange(travel)));
    assert_eq!(filter.best(2_000), Some(Offset { ns: 4_000, error_ns: 10 }));
    // It is forgotten after eight more: clocks drift.
    (0..8).for_each(|_| filter.add(&exchange(400)));
    assert_eq!(filter.best(2_000), Some(Offset { ns: 4_000, error_ns: 400 }));
    // 100 ppm of a second.
    let later = filter.best(1_000_002_000).unwrap();
    assert_eq!((later.ns, later.error_ns), (4_000, 400 + 100_000));
}

#[test]
fn a_time_of_the_controller_by_the_clock_of_the_host() {
    assert_eq!(to_host_ns(5_000, Offset { ns: 4_000, error_ns: 1 }), 1_000);
    assert_eq!(to_host_ns(5_000, Offset { ns: -4_000, error_ns: 1 }), 9_000);
    assert_eq!(to_host_ns(5, Offset { ns: i64::MIN, error_ns: 1 }), 5 + i64::MAX as u64);
}
