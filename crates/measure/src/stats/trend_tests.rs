//! Slopes against scipy (theilslopes, linregress) and the Mann-Kendall formula computed with numpy.

use proptest::prelude::*;

use super::*;

fn points(levels: &[f64]) -> Vec<(f64, f64)> {
    levels.iter().enumerate().map(|(index, y)| (index as f64, *y)).collect()
}

#[test]
fn a_rising_series() {
    let points = points(&[1.0, 2.5, 2.5, 4.1, 3.9, 6.0, 5.2, 8.1, 7.7, 9.0]);
    let found = trend(&points).unwrap();
    assert!((found.slope - 0.866_666_667).abs() < 1e-9, "{found:?}");
    assert!((found.z - 3.322_698_087).abs() < 1e-9, "{found:?}");
    assert!(found.rises() && !found.falls());
    assert!((least_squares_slope(&points).unwrap() - 0.859_393_939).abs() < 1e-9);
}

#[test]
fn a_level_series_with_ties() {
    let found = trend(&points(&[5.0, 3.0, 6.0, 4.0, 5.0, 4.0, 6.0, 3.0, 5.0, 4.0])).unwrap();
    assert_eq!(found.slope, 0.0);
    assert!((found.z - -0.185_962_718).abs() < 1e-9, "{found:?}");
    assert!(!found.rises() && !found.falls());
}

#[test]
fn a_constant_series_has_no_sign() {
    assert_eq!(trend(&points(&[2.0; 20])), Some(Trend { slope: 0.0, z: 0.0 }));
}

#[test]
fn one_stall_does_not_make_a_trend_but_bends_least_squares() {
    let mut levels: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 5)).collect();
    levels[38] = 10_000.0;
    assert!(!trend(&points(&levels)).unwrap().rises());
    assert!(least_squares_slope(&points(&levels)).unwrap() > 10.0);
}

#[test]
fn long_series_are_thinned_to_the_same_slope() {
    let long: Vec<(f64, f64)> =
        (0..25_000).map(|i| (f64::from(i), 3.0 * f64::from(i) + f64::from(i % 3))).collect();
    let found = trend(&long).unwrap();
    assert!((found.slope - 3.0).abs() < 1e-3, "{found:?}");
    assert!(found.rises());
}

#[test]
fn no_answer_where_there_is_none() {
    assert_eq!(trend(&[]), None);
    assert_eq!(trend(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    assert_eq!(trend(&[(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]), None);
    assert_eq!(least_squares_slope(&[(1.0, 1.0)]), None);
    assert_eq!(least_squares_slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
}

proptest! {
    #[test]
    fn a_straight_line_gives_its_slope(slope in -100i32..100, n in 10usize..60) {
        let line: Vec<(f64, f64)> = (0..n).map(|i| (i as f64, f64::from(slope) * i as f64 + 5.0)).collect();
        let found = trend(&line).unwrap();
        prop_assert_eq!(found.slope, f64::from(slope));
        prop_assert_eq!((found.rises(), found.falls()), (slope > 0, slope < 0));
    }

    #[test]
    fn turning_the_series_over_turns_the_sign(levels in prop::collection::vec(-50i32..50, 3..40)) {
        let up: Vec<(f64, f64)> = levels.iter().enumerate().map(|(i, y)| (i as f64, f64::from(*y))).collect();
        let down: Vec<(f64, f64)> = up.iter().map(|(x, y)| (*x, -y)).collect();
        let (up, down) = (trend(&up).unwrap(), trend(&down).unwrap());
        prop_assert_eq!(up.z, -down.z);
        prop_assert!((up.slope + down.slope).abs() < 1e-9);
    }

    #[test]
    fn any_floats_are_survived(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)) {
        trend(&points);
        least_squares_slope(&points);
    }
}
