//! Summaries compared with numpy 2 and scipy 1.17 results.

use proptest::prelude::*;

use super::*;

const VALUES: [f64; 8] = [3.1, 4.7, 2.2, 9.8, 5.5, 4.4, 7.3, 6.1];

fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{actual} is not {expected}");
}

#[test]
fn median_and_quantiles_are_numpys() {
    assert_close(median(&VALUES).unwrap(), 5.1);
    assert_close(median(&VALUES[..7]).unwrap(), 4.7);
    for (q, expected) in [(0.0, 2.2), (0.1, 2.83), (0.25, 4.075), (0.9, 8.05), (1.0, 9.8)] {
        assert_close(quantile(&VALUES, q).unwrap(), expected);
    }
}

#[test]
fn deviation_is_scipys() {
    assert_close(mad(&VALUES).unwrap(), 1.5);
}

#[test]
fn interval_of_the_mean_is_scipys() {
    let interval = mean_interval(&VALUES).unwrap();
    assert_close(interval.value, 5.3875);
    assert_close(interval.lower, 3.3768554063696667);
    assert_close(interval.upper, 7.398144593630332);
}

#[test]
fn student_quantiles_are_scipys() {
    // scipy.stats.t.ppf(0.975, degrees)
    let expected = [
        (1, 12.706_204_736_174_694),
        (2, 4.302_652_729_749_462),
        (5, 2.570_581_835_636_314_6),
        (10, 2.228_138_851_986_274),
        (30, 2.042_272_456_301_237_8),
        (31, 2.039_513_446_396_408),
        (100, 1.983_971_518_523_551_8),
        (1000, 1.962_339_080_826_408_3),
    ];
    for (degrees, quantile) in expected {
        assert_close(student_t_975(degrees), quantile);
    }
    assert_eq!(student_t_975(0), f64::INFINITY);
}

#[test]
fn no_answer_where_there_is_none() {
    assert_eq!(median(&[]), None);
    assert_eq!(mad(&[1.0, f64::NAN]), None);
    assert_eq!(quantile(&VALUES, 1.5), None);
    assert_eq!(quantile(&VALUES, f64::NAN), None);
    assert_eq!(mean_interval(&[1.0]), None);
    assert_eq!(mean_interval(&[1.0, f64::INFINITY]), None);
}

proptest! {
    #[test]
    fn quantiles_stay_within_the_values_and_grow(
        values in prop::collection::vec(-1e12..1e12f64, 1..40), a in 0.0..=1.0f64, b in 0.0..=1.0f64,
    ) {
        let low = quantile(&values, a.min(b)).unwrap();
        let high = quantile(&values, a.max(b)).unwrap();
        // Interpolation may round in the last digit.
        let slack = 1e-3;
        prop_assert!(low <= high + slack);
        prop_assert!(quantile(&values, 0.0).unwrap() <= low + slack);
        prop_assert!(high <= quantile(&values, 1.0).unwrap() + slack);
    }

    #[test]
    fn any_floats_are_survived(values in prop::collection::vec(any::<f64>(), 0..20), q in any::<f64>()) {
        quantile(&values, q);
        mad(&values);
        mean_interval(&values);
    }
}
