//! Consecutive passes, steps down, and the evidence of stalls.

use std::time::Duration;

use super::super::outcome::Phase;
use super::*;

fn plan() -> SearchPlan {
    SearchPlan {
        soak_start: 0.9,
        soak_step: 0.1,
        soak_attempts_max: 5,
        ..SearchPlan::standard(100.0, 1000.0)
    }
}

fn lossy(lost_events: u64) -> TrialOutcome {
    TrialOutcome {
        duration_s: 120.0,
        elapsed_s: 121.0,
        offered_events: 1000,
        lost_events,
        backlog_growing: false,
        longest_stall: Some(Duration::from_millis(300)),
        buffer: Some(Duration::from_millis(100)),
        achieved_rate: 500.0,
        offered_rate: 500.0,
        failed: None,
        generator_limited: false,
    }
}

fn trial(rate: f64, outcome: TrialOutcome) -> TrialRecord {
    let duration = Duration::from_secs(5);
    TrialRecord { phase: Phase::Knee, rate, duration, failed: outcome.first_failed(), outcome }
}

#[test]
fn passes_must_come_in_a_row_at_one_rate() {
    let plan = SearchPlan { soak_passes: 2, ..plan() };
    let mut soaks = Soaks::below(&plan, 1000.0);
    assert_eq!(soaks.rate, 900.0);
    assert_eq!(soaks.count(&plan, &lossy(0)), SoakStep::Again);
    assert_eq!(soaks.count(&plan, &lossy(1)), SoakStep::Again);
    assert_eq!(soaks.rate, 810.0);
    assert_eq!(soaks.count(&plan, &lossy(0)), SoakStep::Again);
    assert_eq!(soaks.count(&plan, &lossy(0)), SoakStep::Held);
    assert_eq!(soaks.record, Some(SoakRecord { rate: 810.0, passes: 2, seconds: 240.0, attempts: 4 }));
}

#[test]
fn every_condition_counts_in_a_soak() {
    let spoiled = [
        TrialOutcome { backlog_growing: true, ..lossy(0) },
        TrialOutcome { failed: Some("drained too late".into()), ..lossy(0) },
        TrialOutcome { generator_limited: true, ..lossy(0) },
        TrialOutcome { offered_events: 0, ..lossy(0) },
    ];
    for outcome in spoiled {
        let mut soaks = Soaks::below(&plan(), 1000.0);
        assert_eq!(soaks.count(&plan(), &outcome), SoakStep::Again, "{outcome:?}");
        assert_eq!(soaks.rate, 810.0);
    }
}

#[test]
fn a_soak_that_was_cut_off_is_repeated() {
    let mut soaks = Soaks::below(&plan(), 1000.0);
    assert_eq!(soaks.count(&plan(), &TrialOutcome { duration_s: 100.0, ..lossy(0) }), SoakStep::Again);
    assert_eq!(soaks.rate, 900.0);
    assert_eq!(soaks.count(&plan(), &lossy(0)), SoakStep::Held);
}

#[test]
fn it_gives_up_after_the_last_attempt_or_below_the_lowest_rate() {
    let mut soaks = Soaks::below(&plan(), 1000.0);
    let results: Vec<_> = (0..5).map(|_| soaks.count(&plan(), &lossy(1))).collect();
    assert_eq!(results.last(), Some(&SoakStep::GaveUp));
    assert!(results[..4].iter().all(|&result| result == SoakStep::Again));
    let mut soaks = Soaks::below(&plan(), 105.0);
    assert_eq!(soaks.rate, 100.0);
    assert_eq!(soaks.count(&plan(), &lossy(1)), SoakStep::GaveUp);
}

#[test]
fn the_rate_asked_for_is_not_stepped_over() {
    let plan = SearchPlan { target_rate: Some(950.0), ..plan() };
    assert_eq!(Soaks::below(&plan, 1000.0).rate, 950.0);
    assert_eq!(Soaks::below(&plan, 950.0).rate, 950.0);
    assert_eq!(Soaks::below(&plan, 949.0).rate, 949.0 * 0.9);
    let mut soaks = Soaks::below(&plan, 1100.0);
    soaks.count(&plan, &lossy(1));
    assert_eq!(soaks.rate, 950.0);
    soaks.count(&plan, &lossy(1));
    assert_eq!(soaks.rate, 950.0 * 0.9);
}

#[test]
fn two_failures_by_stalls_are_evidence_and_size_the_buffer() {
    let long = TrialOutcome { longest_stall: Some(Duration::from_millis(400)), ..lossy(3) };
    let trials = [trial(500.0, lossy(3)), trial(490.0, long), trial(900.0, lossy(3))];
    assert_eq!(stalls_exceed_buffer(&trials[..1], 500.0), None);
    let end = stalls_exceed_buffer(&trials, 500.0);
    let (longest_stall, buffer) = (Duration::from_millis(400), Duration::from_millis(100));
    assert_eq!(
        end,
        Some(End::StallsExceedBuffer { longest_stall, buffer, buffer_needed_bytes: 0.4 * 490.0 })
    );
    // No loss, a stall within the buffer, an unknown buffer or a slow generator is no evidence of
    // stalls.
    let harmless = [
        lossy(0),
        TrialOutcome { buffer: Some(Duration::from_secs(1)), ..lossy(3) },
        TrialOutcome { buffer: None, ..lossy(3) },
        TrialOutcome { longest_stall: None, ..lossy(3) },
        TrialOutcome { generator_limited: true, ..lossy(3) },
    ];
    assert_eq!(stalls_exceed_buffer(&harmless.map(|outcome| trial(400.0, outcome)), 500.0), None);
}
