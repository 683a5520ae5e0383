//! Announced times of the plans that ship.
use super::*;

#[test]
fn the_plans_that_ship_take_what_users_are_told() {
    let quick = SearchPlan::quick_qualification(1.0, 2.0);
    let full = SearchPlan::qualification(1.0, 2.0);
    let quick = RunTime::new(&quick, &Lengths::new(true), 1, false);
    let full = RunTime::new(&full, &Lengths::new(false), 1, false);
    assert!(quick.seconds <= 60.0 && quick.seconds_max <= 125.0, "{quick:?}");
    assert!(full.seconds <= 180.0 && full.seconds_max <= 365.0, "{full:?}");
}

#[test]
fn every_volume_and_every_round_until_steady_adds_its_time() {
    let plan = SearchPlan::qualification(1.0, 2.0);
    let lengths = Lengths::new(false);
    let one = RunTime::new(&plan, &lengths, 1, false);
    let three = RunTime::new(&plan, &lengths, 3, false);
    assert!((three.seconds - one.seconds - 2.0 * lengths.ceiling.as_secs_f64()).abs() < 1e-9);
    let steady = RunTime::new(&plan, &lengths, 1, true);
    let rounds_s = STEADY_ROUNDS as f64 * (lengths.steady_round.as_secs_f64() + TRIAL_OVERHEAD_S);
    let saturated_s = lengths.saturated.as_secs_f64() + TRIAL_OVERHEAD_S;
    assert!((steady.seconds - one.seconds - rounds_s + saturated_s).abs() < 1e-9);
    assert!(steady.seconds_max > steady.seconds);
}

#[test]
fn a_longer_soak_is_read_back_only_as_long_as_allowed() {
    let lengths = Lengths::new(false);
    let time = |seconds| {
        let plan = SearchPlan { soak: Duration::from_secs(seconds), ..SearchPlan::qualification(1.0, 2.0) };
        RunTime::new(&plan, &lengths, 1, false).seconds
    };
    assert!((time(600) - time(300) - SOAKS * 300.0).abs() < 1e-9);
    assert!((time(20) - time(10) - (SOAKS + 1.0) * 10.0).abs() < 1e-9);
}
