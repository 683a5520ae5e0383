//! Intervals compared with tables and between both methods.

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
fn the_intervals_are_those_of_scipy() {
    // scipy.stats.chi2.ppf(0.025, 2 * n) / 2 and chi2.ppf(0.975, 2 * n + 2) / 2
    let scipy = [
        (1, 0.025_317_807_984_289_876, 5.571_643_390_938_898),
        (2, 0.242_209_278_543_964_96, 7.224_687_667_723_96),
        (10, 4.795_388_696_132_433_5, 18.390_356_042_017_78),
        (100, 81.363_991_250_923_14, 121.626_793_792_426_38),
        (1000, 938.973_018_407_695_2, 1_063.952_136_016_302),
        (5000, 4_862.359_188_694_899, 5_140.548_948_535_004_5),
        (100_000, 99_381.152_663_744_72, 100_621.744_739_743_88),
        (1_000_000_000, 999_938_021.443_927_9, 1_000_061_981.450_408_9),
    ];
    for (count, lower, upper) in scipy {
        let found = poisson_interval(count, 1.0).unwrap();
        for (found, wanted) in [(found.lower, lower), (found.upper, upper)] {
            assert!((found / wanted - 1.0).abs() < 1e-8, "{count}: {found}, not {wanted}");
        }
    }
}

#[test]
fn both_ways_of_calculation_meet() {
    let exact = poisson_interval(EXACT_COUNT_MAX, 1.0).unwrap();
    let cubes = poisson_interval(EXACT_COUNT_MAX + 1, 1.0).unwrap();
    assert!((cubes.lower - exact.lower - 1.0).abs() < 0.05, "{exact:?} {cubes:?}");
    assert!((cubes.upper - exact.upper - 1.0).abs() < 0.05, "{exact:?} {cubes:?}");
    let many = poisson_interval(u64::MAX, 1.0).unwrap();
    assert!(many.lower < many.value && many.value < many.upper);
}
