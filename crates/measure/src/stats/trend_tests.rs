//! Slopes compared with scipy (linregress).

use proptest::prelude::*;

use super::*;

fn points(levels: &[f64]) -> Vec<(f64, f64)> {
    levels.iter().enumerate().map(|(index, y)| (index as f64, *y)).collect()
}

#[test]
fn a_rising_series() {
    let points = points(&[1.0, 2.5, 2.5, 4.1, 3.9, 6.0, 5.2, 8.1, 7.7, 9.0]);
    assert!((least_squares_slope(&points).unwrap() - 0.859_393_939).abs() < 1e-9);
}

#[test]
fn no_answer_where_there_is_none() {
    assert_eq!(least_squares_slope(&[(1.0, 1.0)]), None);
    assert_eq!(least_squares_slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
    assert_eq!(least_squares_slope(&[(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)]), None);
}

proptest! {
    #[test]
    fn a_straight_line_gives_its_slope(slope in -100i32..100, n in 2usize..60) {
        let line: Vec<(f64, f64)> = (0..n).map(|i| (i as f64, f64::from(slope) * i as f64 + 5.0)).collect();
        let found = least_squares_slope(&line).unwrap();
        prop_assert!((found - f64::from(slope)).abs() < 1e-9, "{found}");
    }

    #[test]
    fn any_floats_are_survived(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)) {
        least_squares_slope(&points);
    }
}
