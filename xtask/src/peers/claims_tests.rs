//! Claims on made-up runs.

use super::*;
use crate::peers::contestant::Run;

/// Runs of 1 MB that took so many seconds; none where it is zero.
fn outcome(name: &str, seconds: &[f64]) -> Outcome {
    let run = |&seconds: &f64| Run { bytes: 1_000_000, seconds, ..Run::default() };
    let round = |seconds: &f64| if *seconds > 0.0 { vec![run(seconds)] } else { Vec::new() };
    let runs = seconds.iter().map(round).collect();
    Outcome { name: name.to_owned(), runs, ..Outcome::default() }
}

fn claim(to: Option<&'static str>, goal: Option<Goal>) -> Claim {
    Claim { to, ..figure("rate", Figure::Rate, "keepup", goal) }
}

#[test]
fn ratios_come_from_rounds_in_which_both_succeeded() {
    let outcomes = [outcome("keepup", &[1.0, 1.0, 0.0]), outcome("peer", &[2.0, 0.0, 9.0])];
    let verdict = judge(&claim(Some("peer"), Some(Goal::AtLeast(2.0))), &outcomes).unwrap();
    let spread = verdict.spread.unwrap();
    assert_eq!((spread.median, spread.count, verdict.met), (2.0, 1, Some(true)));
    let none = [outcome("keepup", &[1.0, 0.0]), outcome("peer", &[0.0, 1.0])];
    let verdict = judge(&claim(Some("peer"), Some(Goal::AtLeast(2.0))), &none).unwrap();
    assert_eq!((verdict.spread, verdict.met), (None, None));
    assert_eq!(verdict.why.as_deref(), Some("not measured"));
}

#[test]
fn each_goal_has_its_border() {
    for (goal, below, at, above) in [
        (Goal::AtLeast(1.0), false, true, true),
        (Goal::AtMost(1.0), true, true, false),
        (Goal::Below(1.0), true, false, false),
        (Goal::Within(0.005), false, true, false),
        (Goal::Within(0.011), true, true, true),
    ] {
        assert_eq!([0.99, 1.0, 1.01].map(|value| goal.is_met(value)), [below, at, above], "{goal:?}");
    }
    let met = |goal| judge(&claim(None, goal), &[outcome("keepup", &[1.0])]).unwrap().met;
    assert_eq!(met(Some(Goal::AtMost(0.5))), Some(false));
    assert_eq!(met(None), None);
}

#[test]
fn who_is_missing_is_told_and_who_was_left_out_is_not() {
    let missing = Outcome { missing: Some("not installed".to_owned()), ..outcome("peer", &[]) };
    let verdict = judge(&claim(Some("peer"), None), &[outcome("keepup", &[1.0]), missing]).unwrap();
    assert_eq!(verdict.why.as_deref(), Some("not installed"));
    assert_eq!(judge(&claim(Some("peer"), None), &[outcome("keepup", &[1.0])]), None);
}

#[test]
fn a_claim_about_a_phase_looks_at_that_phase_alone() {
    let of = |phase: &str, seconds| Run { phase: phase.to_owned(), bytes: 1, seconds, ..Run::default() };
    let runs = |name: &str, read| Outcome {
        name: name.to_owned(),
        runs: vec![vec![of("write", 1.0), of("read", read)]],
        ..Outcome::default()
    };
    let outcomes = [runs("keepup", 2.0), runs("peer", 6.0)];
    let about = |phase| ratio("rate", Figure::Rate, "keepup", "peer", None).in_phase(phase);
    let median = |phase| judge(&about(phase), &outcomes).unwrap().spread.map(|spread| spread.median);
    assert_eq!([median("write"), median("read"), median("seeks")], [Some(1.0), Some(3.0), None]);
}
