//! Lines in bounded memory: extremes survive, breaks show.

use super::{BUCKETS_MAX, Thin};

fn line(values: impl IntoIterator<Item = f64>) -> Thin {
    let mut line = Thin::default();
    for (at, value) in (0u32..).zip(values) {
        line.push(f64::from(at), value);
    }
    line
}

#[test]
fn a_dip_of_one_sample_survives_any_length() {
    let mut values = vec![100.0; 300_000];
    values[123_457] = 1.0;
    values[250_001] = 700.0;
    let points = line(values).points(1.0);
    assert!(points.len() <= 2 * BUCKETS_MAX, "{}", points.len());
    assert!(points.contains(&(123_457.0, Some(1.0))));
    assert!(points.contains(&(250_001.0, Some(700.0))));
    assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0), "points are in the order of time");
}

#[test]
fn few_points_stay_as_they_are() {
    let points = line([3.0, f64::NAN, 5.0]).points(2.0);
    assert_eq!(points, [(0.0, Some(1.5)), (2.0, Some(2.5))]);
    assert_eq!(line([]).points(1.0), []);
}

#[test]
fn a_cut_breaks_the_line_and_nothing_follows_the_last() {
    let mut line = line([1.0, 2.0]);
    line.cut();
    line.push(5.0, 3.0);
    line.cut();
    let points = line.points(1.0);
    assert_eq!(points, [(0.0, Some(1.0)), (1.0, Some(2.0)), (1.0, None), (5.0, Some(3.0))]);
}

#[test]
fn sums_and_numbers_of_points_are_kept() {
    let line = line((0..100_000).map(f64::from));
    let (sum, points) = line.buckets().iter().fold((0.0, 0), |(sum, n), b| (sum + b.sum, n + b.points));
    assert_eq!((sum, points), (99_999.0 * 100_000.0 / 2.0, 100_000));
    assert_eq!(line.most(), 99_999.0);
}
