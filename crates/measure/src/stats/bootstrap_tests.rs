//! Bootstrap intervals against scipy.stats.bootstrap with 200 000 resamples.

use super::*;

const VALUES: [f64; 8] = [3.1, 4.7, 2.2, 9.8, 5.5, 4.4, 7.3, 6.1];
const PAIRS: [(f64, f64); 6] = [(10.0, 8.0), (12.0, 10.0), (11.0, 9.5), (9.0, 8.5), (10.5, 8.1), (11.5, 9.9)];

#[test]
fn the_interval_is_scipys() {
    let interval = bootstrap_median(&VALUES, 20_000, 7).unwrap();
    assert!((interval.value - 5.1).abs() < 1e-9);
    // The medians of resamples are few distinct numbers: both ends fall on one of the values.
    assert!((interval.lower - 3.1).abs() < 1e-9, "{interval:?}");
    assert!((interval.upper - 7.3).abs() < 1e-9, "{interval:?}");
}

#[test]
fn the_interval_of_a_ratio_is_scipys() {
    let interval = bootstrap_median_ratio(&PAIRS, 20_000, 7).unwrap();
    assert!((interval.value - 1.180_808_081).abs() < 1e-9);
    assert!((interval.lower - 1.108_359_133).abs() < 1e-9, "{interval:?}");
    assert!((interval.upper - 1.273_148_148).abs() < 1e-9, "{interval:?}");
}

#[test]
fn a_seed_gives_the_same_interval_again() {
    let wide: Vec<f64> = (0..40).map(|i| f64::from(i * i % 97)).collect();
    assert_eq!(bootstrap_median(&wide, 100, 1), bootstrap_median(&wide, 100, 1));
    assert_ne!(bootstrap_median(&wide, 100, 1), bootstrap_median(&wide, 100, 2));
}

#[test]
fn no_answer_where_there_is_none() {
    assert_eq!(bootstrap_median(&[1.0], 100, 1), None);
    assert_eq!(bootstrap_median(&VALUES, 0, 1), None);
    assert_eq!(bootstrap_median(&[1.0, f64::NAN], 100, 1), None);
    assert_eq!(bootstrap_median_ratio(&[(1.0, 0.0), (1.0, 1.0)], 100, 1), None);
}
