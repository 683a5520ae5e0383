//! What proves that a machine has become slower, and what does not.

use std::time::Duration;

use super::*;

/// A trial of 2 s at 100 B/s of which `achieved_rate` came through, with a growing backlog.
fn overloaded(achieved_rate: f64) -> TrialOutcome {
    TrialOutcome {
        duration_s: 2.0,
        clean_s: 2.0,
        elapsed_s: 3.0,
        bytes: 200.0,
        offered_events: 200,
        lost_events: 0,
        backlog_growing: true,
        longest_stall: None,
        buffer: None,
        achieved_rate,
        offered_rate: 100.0,
        failed: None,
        generator_limited: false,
    }
}

fn found(outcomes: &[TrialOutcome]) -> Vec<Finding> {
    let mut recheck = Recheck::default();
    outcomes.iter().map(|outcome| recheck.count(100.0, outcome)).collect()
}

#[test]
fn two_trials_in_a_row_with_less_prove_a_slower_machine() {
    let slower = [overloaded(80.0), overloaded(70.0)];
    assert_eq!(found(&slower), [Finding::Open, Finding::Slower(70.0)]);
    let lossy = TrialOutcome { lost_events: 3, backlog_growing: false, ..overloaded(90.0) };
    assert_eq!(found(&[lossy.clone(), lossy]), [Finding::Open, Finding::Slower(90.0)]);
}

#[test]
fn one_disturbance_proves_nothing() {
    let held = TrialOutcome { backlog_growing: false, ..overloaded(100.0) };
    assert_eq!(found(&[overloaded(50.0), held.clone()]), [Finding::Open, Finding::Steady]);
    // A short trial at the end of which a little is left.
    assert_eq!(found(&[overloaded(99.0)]), [Finding::Steady]);
    // 0.5 s of 2 s without progress, at full speed otherwise.
    let stalled = TrialOutcome { longest_stall: Some(Duration::from_millis(500)), ..overloaded(75.0) };
    assert_eq!(found(&[stalled]), [Finding::Steady]);
    let stalled = TrialOutcome { longest_stall: Some(Duration::from_secs(2)), ..overloaded(0.0) };
    assert_eq!(found(&[stalled]), [Finding::Steady]);
    assert_eq!(found(&[overloaded(f64::NAN)]), [Finding::Steady]);
}

#[test]
fn a_generator_that_is_too_slow_ends_it() {
    let spoiled = TrialOutcome { generator_limited: true, ..overloaded(50.0) };
    let all = [spoiled.clone(), spoiled.clone(), spoiled.clone()];
    assert_eq!(found(&all), [Finding::Open, Finding::Open, Finding::Steady]);
    let one = [overloaded(80.0), spoiled, overloaded(80.0)];
    assert_eq!(found(&one), [Finding::Open, Finding::Open, Finding::Slower(80.0)]);
}
