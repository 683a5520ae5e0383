//! Fitted lines and break-even lengths of synthetic costs.
use fastrand::Rng;
use proptest::prelude::*;

use super::*;

const DEPTHS: [u64; 10] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 524_288];

/// Trials of a method with noise up to `noise` of the time.
fn timed(cost: &Cost, noise: f64, seed: u64) -> Vec<Timed> {
    let mut rng = Rng::with_seed(seed);
    let mut one = |words: u64| {
        let mut trial = || cost.at(words) * (1.0 + noise * (2.0 * rng.f64() - 1.0));
        Timed { words, seconds: (0..30).map(|_| trial()).collect() }
    };
    DEPTHS.iter().map(|&words| one(words)).collect()
}

fn line(set_up: f64, each: f64) -> Cost {
    Cost { set_up, each, words_max: None }
}

fn verdict(simple: &Cost, way: &Cost) -> BreakEven {
    let (one, other) = (timed(simple, 0.02, 1), timed(way, 0.02, 2));
    let tried = (DEPTHS[0], DEPTHS[9]);
    break_even((&one, simple.words_max), (&other, way.words_max), tried, 500, 3).unwrap()
}

proptest! {
    #[test]
    fn a_line_is_found_again(set_up in 1e-8..1e-3f64, each in 1e-9..1e-5f64) {
        let cost = fit_cost(&timed(&line(set_up, each), 0.0, 1), None).unwrap();
        prop_assert!((cost.set_up / set_up - 1.0).abs() < 1e-3, "{cost:?}");
        prop_assert!((cost.each / each - 1.0).abs() < 1e-6, "{cost:?}");
    }

    #[test]
    fn a_limit_of_a_transfer_is_allowed_for(
        set_up in 1e-6..1e-3f64, each in 1e-9..1e-6f64, most in 2..5000u64, words in 1..1_000_000u64,
    ) {
        let cost = Cost { set_up, each, words_max: Some(most) };
        let found = fit_cost(&timed(&cost, 0.0, 1), Some(most)).unwrap();
        prop_assert!((found.at(words) / cost.at(words) - 1.0).abs() < 1e-6, "{found:?} {cost:?}");
    }

    #[test]
    fn where_transfers_are_said_to_pay_they_do(
        set_up in 1e-6..1e-4f64, each in 1e-9..1e-6f64, most in 1..3000u64, single in 1e-8..1e-5f64,
    ) {
        let (simple, way) = (line(1e-7, single), Cost { set_up, each, words_max: Some(most) });
        let pays = |words: u64| way.at(words) <= simple.at(words) * (1.0 + 1e-9);
        // As many transfers as are checked individually.
        let longest = most * 1000;
        match compare(&simple, &way, (1, longest)) {
            Answer::From(words) => {
                let first = words.ceil() as u64;
                prop_assert!((first..=longest.min(first + 3 * most)).all(pays), "{words}");
                prop_assert!(!pays(words.floor() as u64), "{words}");
            }
            Answer::UpTo(words) => {
                prop_assert!((1..=words.floor() as u64).all(pays), "{words}");
                prop_assert!(!pays(words.ceil() as u64), "{words}");
            }
            Answer::Always => prop_assert!(pays(1) && pays(most + 1) && pays(longest)),
            Answer::Never | Answer::Neither => prop_assert!(!pays(longest)),
        }
    }
}

#[test]
fn an_outlier_does_not_pull_the_line() {
    let mut points = timed(&line(1e-6, 2e-6), 0.0, 1);
    points[4].seconds = vec![1.0; 30];
    let cost = fit_cost(&points, None).unwrap();
    assert!((cost.each / 2e-6 - 1.0).abs() < 1e-9 && (cost.set_up / 1e-6 - 1.0).abs() < 1e-6, "{cost:?}");
    assert_eq!(knee(&points, &cost).unwrap().0, 256);
    assert_eq!(knee(&timed(&line(1e-6, 2e-6), 0.02, 1), &line(1e-6, 2e-6)), None);
}

#[test]
fn verdicts_are_those_of_the_arithmetic() {
    let single = line(0.77e-6, 2.33e-6);
    assert_eq!(verdict(&single, &line(0.5e-6, 0.35e-6)), BreakEven::Always);
    assert_eq!(pays_from(&single, &line(0.5e-6, 0.35e-6)), None);
    assert!((pays_from(&single, &line(2e-3, 0.35e-6)).unwrap() - 1009.7).abs() < 0.1);
    assert_eq!(verdict(&single, &line(2e-3, 2.6e-6)), BreakEven::Never);
    let BreakEven::From { words } = verdict(&single, &line(2e-3, 0.35e-6)) else { panic!("not from") };
    assert!(words.lower < 1009.7 && words.upper > 1009.7 && words.upper / words.lower < 1.1, "{words:?}");
    let BreakEven::UpTo { words } = verdict(&line(2e-3, 0.35e-6), &single) else { panic!("not up to") };
    assert!(words.lower < 1009.7 && words.upper > 1009.7, "{words:?}");
    // Set-ups too close to resolve: the break-even is within the first words.
    match verdict(&line(2e-6, 2e-6), &line(2.02e-6, 0.5e-6)) {
        BreakEven::Always => {}
        BreakEven::From { words } => assert!(words.upper < 3.0, "{words:?}"),
        other => panic!("{other:?}"),
    }
    // Identical methods and break-evens beyond the tried lengths are not resolved.
    assert_eq!(verdict(&single, &single), BreakEven::NotResolved);
    assert_eq!(verdict(&single, &line(2.0, 0.35e-6)), BreakEven::NotResolved);
}

#[test]
fn a_short_limit_of_a_transfer_can_cost_more_than_it_ever_earns() {
    // QEMU's edu device: 100 ms per transfer of at most 1023 words, against 0.1 us per word.
    let transfers = Cost { set_up: 0.1, each: 0.0, words_max: Some(1023) };
    assert_eq!(verdict(&line(0.0, 0.1e-6), &transfers), BreakEven::Never);
    assert_eq!(verdict(&transfers, &line(0.0, 0.1e-6)), BreakEven::Always);
    // Cheaper at first, but with a set-up per 16 words: 3 us against 5, then 6 against 5.2.
    let short = Cost { set_up: 3e-6, each: 1e-9, words_max: Some(16) };
    let BreakEven::UpTo { words } = verdict(&line(5e-6, 10e-9), &short) else { panic!("not up to") };
    assert!(words.lower >= 16.0 && words.upper <= 17.0, "{words:?}");
    assert!((transfers.words_per_second().unwrap() - 10_230.0).abs() < 1.0);
}

#[test]
fn unmeasured_lengths_are_not_resolved() {
    let one = Timed { words: 1, seconds: vec![1.0] };
    assert_eq!(fit_cost(std::slice::from_ref(&one), None), None);
    assert_eq!(fit_cost(&[one.clone(), Timed { words: 2, seconds: vec![0.0] }], None), None);
    assert_eq!(fit_cost(&[one.clone(), Timed { words: 2, seconds: vec![f64::NAN] }], None), None);
    assert_eq!(fit_cost(&[one.clone(), one.clone()], None), None);
    assert_eq!(line(-1e-9, 1e-6).half_rate_words(), None);
    assert_eq!(line(2e-6, 1e-6).half_rate_words(), Some(2.0));
    assert_eq!(fit_cost(&vec![one; LENGTHS_MAX + 1], None), None);
}
