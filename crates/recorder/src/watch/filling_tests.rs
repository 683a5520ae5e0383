//! Forecasts wait for data, and follow the rate.
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_forecast_waits_for_data_and_not_for_the_recorder() {
    let mut filling = Filling::default();
    for second in 0..100 {
        assert_eq!(filling.rates(second * SECOND_NS, vec![0, 0]), None);
    }
    let mut rates = None;
    for second in 100..=110 {
        assert_eq!(rates, None, "at {second} s");
        rates = filling.rates(second * SECOND_NS, vec![(second - 99) * 1000, 5]);
    }
    assert_eq!(rates, Some(vec![1000.0, 0.0]));
}

#[test]
fn a_forecast_follows_the_rate_of_the_last_seconds_with_bounded_memory() {
    let mut filling = Filling::default();
    let mut rates = None;
    for second in 1..=1000 {
        rates = filling.rates(second * SECOND_NS, vec![1000 * second.min(500)]);
        assert!(filling.samples.len() <= 12, "{}", filling.samples.len());
        if second == 500 {
            assert_eq!(rates, Some(vec![1000.0]));
        }
    }
    assert_eq!(rates, Some(vec![0.0]));
}
