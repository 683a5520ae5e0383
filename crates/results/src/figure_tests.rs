//! Collecting figures.
use super::{Better, Collected, Quantity};

#[test]
fn values_of_the_same_thing_come_together_and_what_is_missing_leaves_no_trace() {
    let mut figures = Collected::default();
    figures.add("/a", "write", Quantity::BytesPerSecond, Some(1.0));
    figures.add("/b", "write", Quantity::BytesPerSecond, Some(2.0));
    figures.add("/a", "write", Quantity::BytesPerSecond, None);
    figures.add("/a", "read", Quantity::BytesPerSecond, None);
    figures.add("/a", "write", Quantity::BytesPerSecond, Some(f64::INFINITY));
    figures.add("/a", "write", Quantity::BytesPerSecond, Some(3.0));
    let done = figures.done();
    assert_eq!(done.len(), 2);
    assert_eq!(done[0].values, [1.0, 3.0]);
    assert_eq!(done[1].place, "/b");
}

#[test]
fn more_is_better_of_rates_and_less_of_times_and_costs() {
    assert_eq!(Quantity::BytesPerSecond.better(), Better::More);
    assert_eq!(Quantity::CpuSecondsPerGb.better(), Better::Less);
    assert_eq!(Quantity::P99Seconds.better(), Better::Less);
    assert_eq!(Quantity::Bytes.better(), Better::Neither);
}
