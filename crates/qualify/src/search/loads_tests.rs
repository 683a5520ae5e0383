//! Tests of the load classification against hand-worked cases of the MLRsearch draft.

use super::*;
use proptest::prelude::*;

fn target(exceed_ratio: f64, trial_s: f64, sum_s: f64) -> Target {
    Target { loss_ratio: 0.0, exceed_ratio, trial_s, sum_s, width: 1 }
}

fn good(duration_s: f64) -> Finding {
    Finding { duration_s, loss_ratio: 0.0, bad_anyway: false }
}

fn bad(duration_s: f64) -> Finding {
    Finding { duration_s, loss_ratio: 0.01, bad_anyway: false }
}

#[test]
fn rfc_2544_needs_one_trial() {
    // Df = S = 60 s, L = 0, E = 0.
    let target = target(0.0, 60.0, 60.0);
    assert_eq!(classify(&[good(60.0)], &target), Class::Lower);
    assert_eq!(classify(&[bad(60.0)], &target), Class::Upper);
    assert_eq!(classify(&[good(60.0), bad(60.0)], &target), Class::Upper);
    assert_eq!(classify(&[good(59.0)], &target), Class::Undecided);
    // A short bad trial is enough when no time may be bad.
    assert_eq!(classify(&[bad(1.0)], &target), Class::Upper);
}

#[test]
fn tst009_repeats_a_bad_trial() {
    // Df 60 s, S 120 s, E 0.5: one good full trial is half of S already.
    let target = target(0.5, 60.0, 120.0);
    assert_eq!(classify(&[good(60.0)], &target), Class::Lower);
    assert_eq!(classify(&[bad(60.0)], &target), Class::Undecided);
    assert_eq!(classify(&[bad(60.0), bad(60.0)], &target), Class::Upper);
    assert_eq!(classify(&[bad(60.0), good(60.0)], &target), Class::Lower);
}

#[test]
fn six_trials_of_five_seconds_need_three_good_or_four_bad() {
    let target = target(0.5, 5.0, 30.0);
    assert_eq!(classify(&[good(5.0); 2], &target), Class::Undecided);
    assert_eq!(classify(&[good(5.0); 3], &target), Class::Lower);
    assert_eq!(classify(&[bad(5.0); 3], &target), Class::Undecided);
    assert_eq!(classify(&[bad(5.0); 4], &target), Class::Upper);
    assert_eq!(classify(&[good(5.0), bad(5.0), good(5.0), bad(5.0), good(5.0)], &target), Class::Lower);
}

#[test]
fn good_short_trials_never_prove_and_bad_short_ones_can_disprove() {
    let target = target(0.5, 5.0, 30.0);
    assert_eq!(classify(&[good(1.0); 100], &target), Class::Undecided);
    assert_eq!(classify(&[bad(1.0); 16], &target), Class::Upper);
    // With E = 0.5 a good short second cancels a bad short one.
    let mut findings = vec![bad(1.0); 16];
    findings.extend([good(1.0); 16]);
    assert_eq!(classify(&findings, &target), Class::Undecided);
}

#[test]
fn a_growing_backlog_is_bad_whatever_loss_is_allowed() {
    let target = Target { loss_ratio: 0.5, ..target(0.0, 5.0, 5.0) };
    assert_eq!(classify(&[bad(5.0)], &target), Class::Lower);
    assert_eq!(classify(&[Finding { bad_anyway: true, ..good(5.0) }], &target), Class::Upper);
}

#[test]
fn good_results_above_a_bad_load_are_flukes() {
    let mut loads = Loads::default();
    let target = target(0.0, 5.0, 5.0);
    assert_eq!(loads.bounds(&target), Bounds::default());
    for (load, finding) in [(10, good(5.0)), (20, good(5.0)), (30, bad(5.0)), (40, good(5.0)), (50, bad(5.0))]
    {
        loads.add(load, finding);
    }
    assert_eq!(loads.bounds(&target), Bounds { lower: Some(20), upper: Some(30) });
    assert_eq!(loads.lowest_bad(), Some(30));
    loads.add(10, bad(5.0));
    assert_eq!(loads.bounds(&target), Bounds { lower: None, upper: Some(10) });
}

proptest! {
    /// The two conditions mean what they say: missing time cannot overturn a decided load.
    #[test]
    fn the_missing_time_cannot_overturn_a_decision(
        verdicts in prop::collection::vec(any::<bool>(), 0..12),
        exceed in 0.0f64..0.9,
    ) {
        let target = target(exceed, 1.0, 12.0);
        let mut findings: Vec<Finding> =
            verdicts.iter().map(|&is_good| if is_good { good(1.0) } else { bad(1.0) }).collect();
        let class = classify(&findings, &target);
        let missing = 12 - findings.len();
        if class != Class::Undecided {
            let worst = if class == Class::Lower { bad(1.0) } else { good(1.0) };
            findings.extend(vec![worst; missing]);
            prop_assert_eq!(classify(&findings, &target), class);
        } else {
            prop_assert!(missing > 0);
        }
    }
}
