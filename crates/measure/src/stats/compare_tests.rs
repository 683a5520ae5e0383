//! Comparison with SciPy's results, and error rates with known truth.
use fastrand::Rng;
use proptest::prelude::*;

use super::{Pairing, chance_of_ratios, compare, exact_chance, rank_sum};

const A: [f64; 5] = [101.2, 99.8, 100.5, 98.7, 100.1];
const B: [f64; 5] = [103.4, 102.9, 104.1, 100.3, 103.0];

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1e-3), "{found}, not {wanted}");
}

/// scipy 1.x: stats.mannwhitneyu(b, a), exact and asymptotic with ties; stats.ttest_1samp(log(b / a), 0).
#[test]
fn chances_are_those_of_scipy() {
    near(rank_sum(&A, &B).unwrap(), 0.031_746_031_746_031_744);
    let ties = ([1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0], [2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 6.0, 7.0]);
    near(rank_sum(&ties.0, &ties.1).unwrap(), 0.127_602_789_181_467_36);
    let first: Vec<f64> = (1..=20).map(f64::from).collect();
    let second: Vec<f64> = (1..=25).map(|n| f64::from(n) + 4.5).collect();
    near(rank_sum(&first, &second).unwrap(), 0.002_495_927_820_404_439);
    // More than 30 values, and different lengths in both orders.
    let first: Vec<f64> = (1..=40).map(f64::from).collect();
    let second: Vec<f64> = (1..=50).map(|n| f64::from(n) + 7.25).collect();
    near(rank_sum(&first, &second).unwrap(), 0.000_128_889_815_956_904_9);
    let (few, more) = ([3.0, 1.0, 4.0], [9.0, 8.0, 7.0, 6.0]);
    near(rank_sum(&few, &more).unwrap(), 0.057_142_857_142_857_14);
    near(rank_sum(&more, &few).unwrap(), 0.057_142_857_142_857_14);
    near(rank_sum(&[1.0; 40], &[1.0; 40]).unwrap(), 1.0);
    let ratios: Vec<f64> = B.iter().zip(A).map(|(b, a)| b / a).collect();
    near(chance_of_ratios(&ratios).unwrap(), 0.001_471_087_937_573_644_4);
}

#[test]
fn five_that_do_not_overlap_show_a_change_and_four_cannot() {
    let second: Vec<f64> = A.iter().map(|value| value * 1.1).collect();
    let five = compare(&A, &second, Pairing::Apart, 2000, 1).unwrap();
    assert!(five.is_change(), "{five:?}");
    assert_eq!(five.effect, 1.0);
    let four = compare(&A[..4], &second[..4], Pairing::Apart, 2000, 1).unwrap();
    assert!(!four.is_change(), "2 of 70 orders: {four:?}");
    let one = compare(&A[..1], &second[..1], Pairing::Apart, 2000, 1).unwrap();
    assert!(one.interval.is_none() && one.chance.is_none() && !one.is_change(), "{one:?}");
}

#[test]
fn the_same_values_are_no_change_and_what_cannot_be_compared_is_not() {
    for pairing in [Pairing::Paired, Pairing::Apart] {
        let same = compare(&A, &A, pairing, 2000, 1).unwrap();
        assert!(!same.is_change() && same.ratio == 1.0 && same.effect == 0.5, "{same:?}");
    }
    assert!(compare(&[], &A, Pairing::Apart, 2000, 1).is_none());
    assert!(compare(&A, &[0.0, 1.0], Pairing::Apart, 2000, 1).is_none());
    assert!(compare(&A, &[f64::NAN], Pairing::Paired, 2000, 1).is_none());
}

/// A value with approximately normal noise, from the sum of twelve uniform numbers (Irwin and
/// Hall).
fn noisy(rng: &mut Rng, value: f64, deviation: f64) -> f64 {
    let normal = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    value * (1.0 + deviation * normal)
}

/// Number of significant changes in `number` comparisons of ten runs each, with 1 % noise and, if
/// alternating, a drift of 2 %.
fn shown(change: f64, pairing: Pairing, number: u64) -> u64 {
    let is_shown = |seed: &u64| {
        let mut rng = Rng::with_seed(*seed);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for run in 0..10 {
            let drift = if pairing == Pairing::Paired { 1.0 + 0.002 * f64::from(run) } else { 1.0 };
            first.push(noisy(&mut rng, 1e9 * drift, 0.01));
            second.push(noisy(&mut rng, 1e9 * drift * (1.0 + change), 0.01));
        }
        compare(&first, &second, pairing, 1000, *seed).unwrap().is_change()
    };
    (0..number).filter(is_shown).count() as u64
}

#[test]
fn a_change_of_3_percent_is_shown_and_none_is_not_in_95_of_100() {
    for pairing in [Pairing::Paired, Pairing::Apart] {
        for change in [0.03, -0.03] {
            let found = shown(change, pairing, 100);
            assert!(found >= 95, "{pairing:?}: {found} of 100 changes of {change} were shown");
        }
        let wrong = shown(0.0, pairing, 400);
        assert!(wrong <= 8, "{pairing:?}: {wrong} of 400 were shown where there is no change");
    }
}

proptest! {
    /// p-values of the exact test increase towards the middle, where they are 1.
    #[test]
    fn exact_chances_grow_towards_the_middle(m in 2usize..12, n in 2usize..12) {
        let middle = m * n / 2;
        let chances: Vec<f64> = (0..=middle).map(|u| exact_chance(m, n, u)).collect();
        prop_assert!(chances.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12), "{:?}", chances);
        prop_assert!((exact_chance(m, n, 0) - exact_chance(m, n, m * n)).abs() < 1e-12);
        prop_assert!(chances[middle] > 0.9);
    }

    /// Swapping the samples only inverts the sign.
    #[test]
    fn the_other_way_round_is_the_same(
        first in prop::collection::vec(1.0f64..2.0, 2..20),
        second in prop::collection::vec(1.0f64..2.0, 2..20),
    ) {
        let there = compare(&first, &second, Pairing::Apart, 10, 1).unwrap();
        let back = compare(&second, &first, Pairing::Apart, 10, 1).unwrap();
        prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
        prop_assert!((there.effect + back.effect - 1.0).abs() < 1e-9);
        prop_assert!((there.chance.unwrap() - back.chance.unwrap()).abs() < 1e-9);
    }
}
