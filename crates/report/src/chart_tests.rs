//! Figures, axes and options of charts.

use serde_json::{Value, json};

use super::{Axis, HeatMap, Series, figure, heat_map, plot, rate_scale, short, size_name, time_scale};

#[test]
fn figures_have_four_digits_and_no_needless_point() {
    assert_eq!(figure(1234.567), json!(1235));
    assert_eq!(figure(0.0123456), json!(0.01235));
    assert_eq!(figure(-2.0), json!(-2));
    assert_eq!(figure(0.0), json!(0));
    assert_eq!(figure(1.23456e9), json!(1_235_000_000));
    assert_eq!(figure(f64::NAN), Value::Null);
    assert_eq!(figure(f64::INFINITY), Value::Null);
}

#[test]
fn units_suit_the_largest_figure() {
    assert_eq!(
        (rate_scale(9.9e9).unit, rate_scale(1e10).unit, rate_scale(0.0).unit),
        ("MB/s", "GB/s", "B/s")
    );
    assert_eq!(
        (time_scale(30.0).unit, time_scale(0.5).unit, time_scale(7200.0 * 3.0).unit),
        ("s", "ms", "h")
    );
    assert_eq!(rate_scale(80e6).of(80e6), 80.0);
}

#[test]
fn short_figures_and_sizes_read_well() {
    assert_eq!(
        (short(1234.4), short(12.34), short(1.2), short(1.0)),
        ("1234".into(), "12.3".into(), "1.2".into(), "1".into())
    );
    assert_eq!(
        (size_name(4096), size_name(1 << 20), size_name(513)),
        ("4 KiB".into(), "1 MiB".into(), "513 B".into())
    );
}

#[test]
fn series_of_the_same_chart_differ_without_colour() {
    let looks: Vec<String> = (0..6)
        .map(|number| {
            let points = (0..3).map(|n| (f64::from(n), Some(1.0)));
            let chart = plot(&Axis::linear(""), &Axis::linear(""), &[Series::line("x", number, points)], 100);
            let series = &chart.option["series"][0];
            format!("{} {}", series["lineStyle"]["type"], series["symbol"])
        })
        .collect();
    let mut different = looks.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), looks.len(), "{looks:?}");
}

#[test]
fn a_map_has_a_field_for_each_figure_and_a_range_even_when_all_are_equal() {
    let map = HeatMap {
        across: ("a".into(), vec!["1".into(), "2".into()]),
        up: ("b".into(), vec!["x".into()]),
        cells: vec![(0, 0, 5.0), (1, 0, 5.0)],
        unit: "MB/s",
    };
    let option = heat_map(&map).option;
    assert_eq!(option["series"][0]["data"].as_array().map(Vec::len), Some(2));
    let ends = (option["visualMap"]["min"].as_f64(), option["visualMap"]["max"].as_f64());
    assert_eq!(ends, (Some(5.0), Some(6.0)));
}
