//! Intervals of counts, beside tables and beside each other.

use super::*;

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-4 * expected.max(1.0)
}

#[test]
fn the_intervals_are_those_of_the_tables() {
    // Garwood's limits as printed in Pearson and Hartley, Biometrika Tables, table 40.
    let table = [(1, 0.0253, 5.5716), (2, 0.2422, 7.2247), (5, 1.6235, 11.6683), (10, 4.7954, 18.3904)];
    for (count, lower, upper) in table {
        let found = poisson_interval(count, 1.0).unwrap();
        assert!(close(found.lower, lower) && close(found.upper, upper), "{count}: {found:?}");
        assert_eq!(found.value, count as f64);
    }
}

#[test]
fn nothing_seen_is_the_rule_of_three() {
    let found = poisson_interval(0, 8e12).unwrap();
    assert_eq!((found.value, found.lower), (0.0, 0.0));
    assert!((found.upper * 8e12 + 0.05_f64.ln()).abs() < 1e-12, "{found:?}");
    assert_eq!(poisson_interval(0, 0.0), None);
    assert_eq!(poisson_interval(3, f64::NAN), None);
}

#[test]
fn both_ways_of_reckoning_meet() {
    let (exact, cubes) = (poisson_interval(1000, 1.0).unwrap(), poisson_interval(1001, 1.0).unwrap());
    assert!((cubes.lower - exact.lower - 1.0).abs() < 0.05, "{exact:?} {cubes:?}");
    assert!((cubes.upper - exact.upper - 1.0).abs() < 0.05, "{exact:?} {cubes:?}");
    let many = poisson_interval(u64::MAX, 1.0).unwrap();
    assert!(many.lower < many.value && many.value < many.upper);
}
