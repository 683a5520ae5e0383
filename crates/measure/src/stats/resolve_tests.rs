//! The announced number of runs finds the difference in simulated comparisons, and half of it does not.
use fastrand::Rng;

use super::super::compare::compare;
use super::{Pairing, VALUES_MIN, runs_to_resolve};

const DIFFERENCE: f64 = 0.05;

/// A value with log-normal noise; the normal number is the sum of twelve uniform ones (Irwin and Hall).
fn noisy(rng: &mut Rng, value: f64, spread: f64) -> f64 {
    let normal = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    value * (spread * normal).exp()
}

/// Share of 200 comparisons that find 5 % with this spread of a value and this number of runs.
fn found(spread: f64, pairing: Pairing, runs: u32) -> f64 {
    let is_found = |seed: &u64| {
        let mut rng = Rng::with_seed(*seed);
        let mut side = |value: f64| (0..runs).map(|_| noisy(&mut rng, value, spread)).collect::<Vec<f64>>();
        let (first, second) = (side(1e9), side(1e9 * (1.0 + DIFFERENCE)));
        compare(&first, &second, pairing, 500, *seed).unwrap().is_change()
    };
    (0..200).filter(is_found).count() as f64 / 200.0
}

/// Two values on each side whose spread is exactly `spread`, alone and as pairs.
fn with_spread(spread: f64, pairing: Pairing) -> ([f64; 2], [f64; 2]) {
    // The standard deviation of two numbers is their distance over the square root of 2.
    let step = (spread * std::f64::consts::SQRT_2).exp();
    match pairing {
        Pairing::Apart => ([100.0, 100.0 * step], [200.0, 200.0 * step]),
        // The log ratio has the spread of both sides together.
        Pairing::Paired => ([100.0, 100.0], [200.0, 200.0 * step.powf(std::f64::consts::SQRT_2)]),
    }
}

#[test]
fn the_announced_runs_find_five_percent_and_half_of_them_do_not() {
    for pairing in [Pairing::Paired, Pairing::Apart] {
        for spread in [0.03, 0.05, 0.08] {
            let (first, second) = with_spread(spread, pairing);
            let runs = runs_to_resolve(&first, &second, pairing, DIFFERENCE).unwrap().runs;
            let (enough, half) = (found(spread, pairing, runs), found(spread, pairing, runs / 2));
            assert!(enough >= 0.78, "{pairing:?}, spread {spread}: {runs} runs find {enough}");
            assert!(half < 0.7, "{pairing:?}, spread {spread}: {} runs find {half}", runs / 2);
        }
    }
}

#[test]
fn quiet_values_need_the_least_number_that_the_test_accepts() {
    let quiet = [100.0, 100.1];
    for pairing in [Pairing::Paired, Pairing::Apart] {
        assert_eq!(runs_to_resolve(&quiet, &quiet, pairing, DIFFERENCE).unwrap().runs, VALUES_MIN as u32);
        let same = runs_to_resolve(&[1.0; 3], &[1.0; 3], pairing, DIFFERENCE).unwrap();
        assert_eq!((same.spread, same.runs), (0.0, VALUES_MIN as u32));
    }
}

#[test]
fn more_spread_and_smaller_differences_need_more_runs() {
    let runs = |spread: f64, difference: f64| {
        let (first, second) = with_spread(spread, Pairing::Apart);
        runs_to_resolve(&first, &second, Pairing::Apart, difference).unwrap()
    };
    let all: Vec<u32> = [0.01, 0.03, 0.1, 0.3].map(|spread| runs(spread, DIFFERENCE).runs).to_vec();
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
    assert!(runs(0.03, 0.02).runs > runs(0.03, 0.05).runs);
    assert!((runs(0.03, 0.05).spread - 0.03).abs() < 1e-12);
}

#[test]
fn without_two_usable_values_on_each_side_the_spread_is_unknown() {
    for (first, second) in [
        (&[1.0][..], &[1.0, 2.0][..]),
        (&[1.0, 2.0], &[]),
        (&[1.0, 0.0], &[1.0, 2.0]),
        (&[1.0, f64::NAN], &[1.0, 2.0]),
    ] {
        assert_eq!(runs_to_resolve(first, second, Pairing::Apart, DIFFERENCE), None, "{first:?} {second:?}");
    }
}
