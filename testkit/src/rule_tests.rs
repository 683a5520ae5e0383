//! How often a rule errs, from every sequence of good and bad measurements that there is.
use super::*;

/// Probability that the rule passes when each measurement is good with probability `good`.
fn passes(rule: Rule, good: f64) -> f64 {
    let sequences = 0..1_u32 << rule.most;
    let sum = sequences.map(|sequence| {
        let is_good = |n: usize| sequence >> n & 1 == 1;
        let mut turn = 0..rule.most;
        let passed = rule.decide(|| good_if(is_good(turn.next().unwrap()), ())).is_ok();
        let count = sequence.count_ones() as i32;
        assert_eq!(passed, count >= rule.needed as i32, "stopping early changes nothing");
        let probability = good.powi(count) * (1.0 - good).powi(rule.most as i32 - count);
        if passed { probability } else { 0.0 }
    });
    sum.fold(0.0, |total, probability| total + probability)
}

#[test]
fn each_rule_errs_as_rarely_as_it_says() {
    for (rule, spoiled, lucky) in [(FOUR_OF_FOURTEEN, 0.3, 0.1), (TWO_OF_SEVEN, 0.2, 0.05)] {
        let (correct_fails, defect_passes) = (1.0 - passes(rule, 1.0 - spoiled), passes(rule, lucky));
        assert!(correct_fails < 0.001, "{rule:?}: a correct build fails with {correct_fails}");
        assert!(defect_passes < 0.05, "{rule:?}: a defect passes with {defect_passes}");
    }
}

#[test]
fn one_of_three_would_err_too_often() {
    let rule = Rule { needed: 1, most: 3 };
    assert!(1.0 - passes(rule, 0.7) > 0.001 && passes(rule, 0.1) > 0.05);
}

#[test]
fn it_stops_when_it_is_decided_and_shows_what_it_saw() {
    let mut measured = 0;
    let mut all = |is_good: bool| {
        measured = 0;
        let decided = FOUR_OF_FOURTEEN.decide(|| {
            measured += 1;
            good_if(is_good, measured)
        });
        (measured, decided)
    };
    assert_eq!(all(true), (4, Ok(())));
    let (count, decided) = all(false);
    assert_eq!((count, decided.unwrap_err()), (11, (1..=11).map(Err).collect()));
}
