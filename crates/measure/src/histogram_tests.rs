//! Histogram figures against exact values.

use proptest::prelude::*;

use super::*;

fn close(actual: u64, expected: u64) -> bool {
    (actual as f64 - expected as f64).abs() <= 0.001 * expected as f64
}

#[test]
fn percentiles_of_a_thousand_even_steps() {
    let mut latency = Latency::new();
    for step in 1..=1000 {
        latency.record_ns(step * 1_000_000);
    }
    let summary = latency.summary();
    assert_eq!(summary.count, 1000);
    assert!(close(summary.p50_ns, 500_000_000), "{summary:?}");
    assert!(close(summary.p90_ns, 900_000_000), "{summary:?}");
    assert!(close(summary.p99_ns, 990_000_000), "{summary:?}");
    assert!(close(summary.p99_9_ns, 999_000_000), "{summary:?}");
    assert!(close(summary.max_ns, 1_000_000_000), "{summary:?}");
    assert!((summary.mean_ns - 500_500_000.0).abs() < 500_500.0, "{summary:?}");
}

#[test]
fn nothing_recorded_is_all_zero() {
    let summary = Latency::default().summary();
    assert_eq!((summary.count, summary.p50_ns, summary.max_ns, summary.mean_ns), (0, 0, 0, 0.0));
}

#[test]
fn longer_than_the_range_counts_as_the_longest() {
    let mut latency = Latency::new();
    latency.record_ns(u64::MAX);
    assert_eq!(latency.summary().count, 1);
    assert!(close(latency.summary().max_ns, LATENCY_NS_MAX));
}

proptest! {
    #[test]
    fn a_single_value_is_read_back_within_a_thousandth(value in 1_000..LATENCY_NS_MAX) {
        let mut latency = Latency::new();
        latency.record_ns(value);
        prop_assert!(close(latency.summary().p50_ns, value));
    }

    #[test]
    fn merging_equals_recording_in_one(a in values(), b in values()) {
        let (mut first, mut second, mut both) = (Latency::new(), Latency::new(), Latency::new());
        a.iter().for_each(|v| first.record_ns(*v));
        b.iter().for_each(|v| second.record_ns(*v));
        a.iter().chain(&b).for_each(|v| both.record_ns(*v));
        first.merge(&second);
        prop_assert_eq!(first.histogram, both.histogram);
    }
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..2 * LATENCY_NS_MAX, 0..50)
}
