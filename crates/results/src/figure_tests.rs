//! Collecting figures.
use super::{Better, Collected, Figure, Quantity};

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
fn one_short_measurement_makes_a_figure_too_short() {
    let mut figures = Collected::default();
    for (what, times) in [("short", [0.1, 60.0]), ("long", [1.0, 60.0])] {
        for seconds in times {
            figures.measured_for(Some(seconds));
            figures.add("", what, Quantity::BytesPerSecond, Some(1.0));
        }
    }
    figures.measured_for(None);
    figures.add("", "size", Quantity::Bytes, Some(1.0));
    let done = figures.done();
    assert_eq!(done.iter().map(|figure| figure.is_too_short).collect::<Vec<_>>(), [true, false, false]);
    let pooled = Figure::pooled(done.iter().chain(&done[..1]).cloned());
    assert!(pooled[0].is_too_short && !pooled[1].is_too_short);
    // Only what is too short has the field, so results of earlier versions stay readable.
    let text = serde_json::to_string(&done[..2]).unwrap();
    assert_eq!(text.matches("is_too_short").count(), 1, "{text}");
}

#[test]
fn more_is_better_of_rates_and_less_of_times_and_costs() {
    assert_eq!(Quantity::BytesPerSecond.better(), Better::More);
    assert_eq!(Quantity::CpuSecondsPerGb.better(), Better::Less);
    assert_eq!(Quantity::P99Seconds.better(), Better::Less);
    assert_eq!(Quantity::Bytes.better(), Better::Neither);
}
