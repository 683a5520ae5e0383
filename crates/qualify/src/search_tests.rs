//! The complete controller on scripted machines: every kind of end, and guaranteed termination.

use super::*;
use proptest::prelude::*;

const MB: f64 = 1e6;

fn plan() -> SearchPlan {
    SearchPlan::standard(10.0 * MB, 2000.0 * MB)
}

fn quick() -> SearchPlan {
    SearchPlan::quick_qualification(10.0 * MB, 2000.0 * MB)
}

/// A successful trial.
fn clean(rate: f64, duration: Duration) -> TrialOutcome {
    let duration_s = duration.as_secs_f64();
    TrialOutcome {
        duration_s,
        clean_s: duration_s,
        elapsed_s: duration_s,
        bytes: rate * duration_s,
        offered_events: 1_000_000,
        lost_events: 0,
        backlog_growing: false,
        longest_stall: None,
        buffer: None,
        achieved_rate: rate,
        offered_rate: rate,
        failed: None,
        generator_limited: false,
    }
}

/// A machine that writes up to `capacity` bytes/s, exactly.
fn ideal(capacity: f64) -> impl Fn(f64, Duration) -> TrialOutcome {
    move |rate, duration| TrialOutcome {
        backlog_growing: rate > capacity,
        achieved_rate: rate.min(capacity),
        ..clean(rate, duration)
    }
}

/// The same behind a generator that offers `generator` bytes/s at most.
fn behind(generator: f64, capacity: f64) -> impl Fn(f64, Duration) -> TrialOutcome {
    move |rate, duration| TrialOutcome {
        generator_limited: rate > generator,
        offered_rate: rate.min(generator),
        ..ideal(capacity)(rate.min(generator), duration)
    }
}

fn drive(plan: SearchPlan, mut machine: impl FnMut(f64, Duration) -> TrialOutcome) -> Outcome {
    let mut search = Search::new(plan).unwrap();
    loop {
        let outcome = match search.next() {
            Step::Trial { rate, duration, .. } | Step::Soak { rate, duration } => machine(rate, duration),
            Step::Done(outcome) => return outcome,
        };
        search.record(outcome);
    }
}

fn rates(outcome: &Outcome, phase: Phase) -> Vec<f64> {
    outcome.trials.iter().filter(|trial| trial.phase == phase).map(|trial| trial.rate / MB).collect()
}

#[test]
fn an_ideal_machine_is_bracketed_and_qualified() {
    for capacity in [11.0, 137.0, 800.0, 1999.0] {
        let outcome = drive(plan(), ideal(capacity * MB));
        let knee = outcome.knee.unwrap();
        let (lower, upper) = (knee.lower / MB, knee.upper.unwrap() / MB);
        assert_eq!(outcome.end, End::Converged);
        assert!(lower <= capacity && capacity < upper && (upper - lower) / upper <= 0.01, "{lower} {upper}");
        assert_eq!(outcome.second_knee, outcome.knee);
        assert_eq!(outcome.qualified_rate, Some(f64::max(0.96 * knee.lower, 10.0 * MB)));
        assert_eq!(outcome.soak.unwrap().incidents_per_s_max(), 3.0 / 120.0);
        // First the maximum, then the rate that came through there: close to the knee at once.
        let narrow = rates(&outcome, Phase::Narrow);
        assert!(narrow[0] == 2000.0 && (narrow[1] - capacity).abs() < 0.011 * capacity, "{narrow:?}");
        let spent: f64 = outcome.trials.iter().map(|trial| trial.duration.as_secs_f64()).sum();
        assert!(spent < 120.0 + 50.0 + 5.0, "{spent} s");
    }
}

#[test]
fn the_rate_asked_for_is_tried_first_and_soaked() {
    let plan = SearchPlan { target_rate: Some(795.0 * MB), ..plan() };
    let outcome = drive(plan.clone(), ideal(800.0 * MB));
    let first = &outcome.trials[0];
    assert_eq!((first.phase, first.duration), (Phase::Target, plan.trial));
    assert!(first.rate >= 795.0 * MB && first.rate < 795.0 * 1.011 * MB);
    // Tried on the grid, just above the target; again if it failed.
    let trials = if first.rate <= 800.0 * MB { 1 } else { 2 };
    assert_eq!(rates(&outcome, Phase::Target).len(), trials);
    // The knee may be one grid step below the capacity, and the soak at most at the knee.
    let soaked = outcome.qualified_rate.unwrap();
    assert_eq!(soaked == 795.0 * MB, outcome.knee.unwrap().lower >= 795.0 * MB);
    let beyond = SearchPlan { target_rate: Some(2001.0 * MB), ..plan };
    assert!(rates(&drive(beyond, ideal(800.0 * MB)), Phase::Target).is_empty());
}

#[test]
fn a_stall_in_the_trial_of_the_target_does_not_hide_the_rates_above_it() {
    for plan in [SearchPlan::qualification(10.0 * MB, 2000.0 * MB), quick()] {
        let plan = SearchPlan { target_rate: Some(100.0 * MB), ..plan };
        let mut trials = 0;
        let outcome = drive(plan, |rate, duration| {
            trials += 1;
            let outcome = ideal(800.0 * MB)(rate, duration);
            TrialOutcome { backlog_growing: trials == 1 || outcome.backlog_growing, ..outcome }
        });
        let target = rates(&outcome, Phase::Target);
        assert!(target.len() == 2 && target[0] == target[1], "{target:?}");
        let qualified = outcome.qualified_rate.unwrap() / MB;
        assert!((0.9 * 800.0..800.0).contains(&qualified), "{qualified}");
    }
    // Overload is no stall, and a target that fails again is too much.
    for (capacity, trials) in [(50.0, 1), (98.0, 2)] {
        let plan = SearchPlan { target_rate: Some(100.0 * MB), ..quick() };
        let outcome = drive(plan, ideal(capacity * MB));
        assert_eq!(rates(&outcome, Phase::Target).len(), trials);
        assert!(outcome.qualified_rate.unwrap() < capacity * MB);
    }
}

#[test]
fn a_machine_faster_than_the_range_has_no_upper_bound() {
    let outcome = drive(plan(), ideal(1e12));
    assert_eq!(outcome.end, End::MaxRateHolds);
    assert_eq!(outcome.knee, Some(Interval { lower: 2000.0 * MB, upper: None }));
    assert_eq!(outcome.qualified_rate, Some(0.96 * 2000.0 * MB));
    let single = SearchPlan { min_rate: 50.0 * MB, max_rate: 50.0 * MB, ..plan() };
    let outcome = drive(single, ideal(60.0 * MB));
    assert_eq!((outcome.end, outcome.qualified_rate), (End::MaxRateHolds, Some(50.0 * MB)));
}

#[test]
fn a_machine_slower_than_the_range_fails_at_once() {
    let outcome = drive(plan(), ideal(5.0 * MB));
    assert_eq!(outcome.end, End::MinRateFails);
    assert_eq!((outcome.knee, outcome.qualified_rate, outcome.soak), (None, None, None));
    assert!(outcome.trials.iter().all(|trial| trial.failed == Some(FailedCondition::Backlog)));
    assert!(outcome.trials.len() < 20, "{}", outcome.trials.len());
}

#[test]
fn a_slow_generator_is_not_a_slow_machine() {
    let outcome = drive(plan(), behind(700.0 * MB, 1500.0 * MB));
    assert!(matches!(outcome.end, End::GeneratorLimited { rate } if rate > 700.0 * MB), "{:?}", outcome.end);
    let knee = outcome.knee.unwrap();
    assert!(knee.lower <= 700.0 * MB && knee.lower >= 0.99 * 700.0 * MB && knee.upper.is_none());
    assert_eq!(outcome.qualified_rate, Some(0.96 * knee.lower));
    assert_eq!(outcome.trials[0].failed, Some(FailedCondition::Generator));
    // A generator fast enough for this machine does not matter.
    let outcome = drive(plan(), behind(700.0 * MB, 500.0 * MB));
    assert_eq!(outcome.end, End::Converged);
    // One that cannot offer the lowest rate leaves the result open.
    let outcome = drive(plan(), behind(5.0 * MB, 500.0 * MB));
    assert!(matches!(outcome.end, End::GeneratorLimited { .. }));
    assert_eq!((outcome.knee, outcome.trials.len()), (None, 3));
}

#[test]
fn a_spent_budget_leaves_what_is_known() {
    let plan = SearchPlan { budget: Duration::from_secs(15), ..plan() };
    let outcome = drive(plan.clone(), ideal(800.0 * MB));
    let knee = outcome.knee.unwrap();
    assert_eq!(outcome.end, End::TimeCap);
    assert!(knee.lower <= 800.0 * MB && knee.upper.unwrap() > 800.0 * MB);
    assert_eq!(outcome.qualified_rate, Some(0.96 * knee.lower));
    // Set-up and drain count too.
    let slow = |rate, duration| TrialOutcome { elapsed_s: 15.0, ..ideal(800.0 * MB)(rate, duration) };
    let outcome = drive(plan, slow);
    assert_eq!(outcome.end, End::TimeCap);
    // Without a knee, soaks start at what came through in the only trial. The one that holds is the knee.
    assert_eq!(rates(&outcome, Phase::Soak)[0], 0.96 * 800.0);
    assert_eq!(outcome.qualified_rate.unwrap(), 0.96 * 800.0 * MB);
    assert_eq!(outcome.knee.unwrap().lower, 0.96 * 800.0 * MB);
}

#[test]
fn a_tolerated_loss_counts_for_the_second_goal_only() {
    let lossy = |rate: f64, duration| TrialOutcome {
        lost_events: if rate > 500.0 * MB { 50 } else { 0 },
        ..ideal(1000.0 * MB)(rate, duration)
    };
    let outcome = drive(SearchPlan { budget: Duration::from_secs(300), ..plan() }, lossy);
    let (knee, second) = (outcome.knee.unwrap(), outcome.second_knee.unwrap());
    assert!(knee.lower <= 500.0 * MB && knee.upper.unwrap() > 500.0 * MB);
    assert!(second.lower <= 1000.0 * MB && second.upper.unwrap() > 1000.0 * MB);
    assert_eq!(outcome.end, End::Converged);
}

#[test]
fn another_failed_condition_is_bad_for_every_goal() {
    let late = |rate: f64, duration| TrialOutcome {
        failed: (rate > 300.0 * MB).then(|| "drained too late".to_owned()),
        ..clean(rate, duration)
    };
    let outcome = drive(plan(), late);
    assert!(outcome.knee.unwrap().lower <= 300.0 * MB && outcome.second_knee == outcome.knee);
    let named = outcome.trials.iter().find_map(|trial| trial.failed.as_ref()).unwrap();
    assert_eq!(named.to_string(), "drained too late");
}

#[test]
fn stalls_longer_than_the_buffer_lower_the_rate_to_what_it_bridges() {
    // The buffer bridges 300 ms at up to 333 MB/s. Only soaks are long enough for a stall.
    let stalling = |rate: f64, duration: Duration| {
        let is_lost = duration > Duration::from_secs(60) && rate > 100.0 * MB / 0.3;
        TrialOutcome {
            lost_events: u64::from(is_lost),
            longest_stall: Some(Duration::from_millis(300)),
            buffer: Some(Duration::from_secs_f64(100.0 * MB / rate)),
            ..ideal(800.0 * MB)(rate, duration)
        }
    };
    let outcome = drive(plan(), stalling);
    let soaked = rates(&outcome, Phase::Soak);
    assert!((soaked[1] / soaked[0] - 0.5).abs() < 1e-9 && (soaked[2] - 320.0).abs() < 0.1, "{soaked:?}");
    assert_eq!(outcome.end, End::Converged);
    assert!(outcome.qualified_rate.unwrap() > 300.0 * MB);
    // A target above that is known to fail: the reason is the buffer.
    let plan = SearchPlan { target_rate: Some(500.0 * MB), ..plan() };
    let outcome = drive(plan, stalling);
    let soaked = rates(&outcome, Phase::Soak);
    assert!(soaked.len() == 2 && soaked[1] == 500.0, "{soaked:?}");
    match outcome.end {
        End::StallsExceedBuffer { longest_stall, buffer, buffer_needed_bytes } => {
            assert!(longest_stall > buffer);
            // Sized for the fastest of the failed soaks.
            assert!((buffer_needed_bytes / (0.3 * soaked[0] * MB) - 1.0).abs() < 1e-9);
        }
        other => panic!("{other:?}"),
    }
    assert!(outcome.knee.is_some() && outcome.qualified_rate.is_none());
}

#[test]
fn stalls_that_no_rate_survives_are_named() {
    let tiny = |rate, duration| TrialOutcome {
        lost_events: 9,
        longest_stall: Some(Duration::from_millis(300)),
        buffer: Some(Duration::ZERO),
        ..ideal(800.0 * MB)(rate, duration)
    };
    let outcome = drive(plan(), tiny);
    assert!(
        outcome.knee.is_none() && matches!(outcome.end, End::StallsExceedBuffer { .. }),
        "{:?}",
        outcome.end
    );
}

#[test]
fn soaks_step_down_until_one_holds_or_none_does() {
    let below = |limit: f64| {
        move |rate: f64, duration: Duration| TrialOutcome {
            lost_events: u64::from(duration > Duration::from_secs(60) && rate > limit * MB),
            ..ideal(800.0 * MB)(rate, duration)
        }
    };
    let outcome = drive(plan(), below(700.0));
    let qualified = outcome.qualified_rate.unwrap();
    let failed = outcome.lowest_failed().unwrap();
    assert!(qualified <= 700.0 * MB && failed.rate > 700.0 * MB, "{qualified} {failed:?}");
    assert!(failed.rate - qualified <= 0.1001 * failed.rate, "{qualified} {failed:?}");
    assert_eq!((outcome.end, failed.phase), (End::Converged, Phase::Soak));
    let outcome = drive(plan(), below(1.0));
    assert_eq!((outcome.end, outcome.qualified_rate, outcome.soak), (End::SoakFails, None, None));
}

/// Plan with a limit of bytes, the half of them for the trials, as `qualify` divides them.
fn limited(plan: SearchPlan, bytes: f64) -> SearchPlan {
    SearchPlan { bytes, search_bytes: bytes / 2.0, ..plan }
}

#[test]
fn a_rate_that_held_is_not_refined_beyond_the_bytes() {
    // Long soaks hold 600 MB/s, short trials 800.
    let machine = |rate: f64, duration: Duration| TrialOutcome {
        lost_events: u64::from(duration > Duration::from_secs(5) && rate > 600.0 * MB),
        ..ideal(800.0 * MB)(rate, duration)
    };
    let plan = SearchPlan { soak_step: 0.3, soak_refine_max: 3, ..quick() };
    let all = drive(plan.clone(), machine);
    assert_eq!(rates(&all, Phase::Soak).len(), 3, "{:?}", rates(&all, Phase::Soak));
    let written = |phase| -> f64 {
        let trials = all.trials.iter().filter(move |trial| phase == (trial.phase == Phase::Soak));
        trials.map(|trial| trial.outcome.bytes).sum()
    };
    let (soaks, search) = (written(true), written(false));
    let plan = SearchPlan { bytes: search + 0.9 * soaks, ..plan };
    let outcome = drive(plan, machine);
    assert_eq!(rates(&outcome, Phase::Soak).len(), 2);
    assert!(outcome.qualified_rate.is_some());
}

#[test]
fn the_last_bytes_are_for_the_target() {
    let soak = Duration::from_secs(6);
    let target = SearchPlan { soak, soak_attempts_max: 4, target_rate: Some(50.0 * MB), ..quick() };
    let soaks = |bytes: f64, holds: f64| {
        let outcome = drive(limited(target.clone(), bytes), |rate, duration| TrialOutcome {
            lost_events: u64::from(duration > Duration::from_secs(2) && rate > holds * MB),
            ..ideal(800.0 * MB)(rate, duration)
        });
        (rates(&outcome, Phase::Soak), outcome)
    };
    // One soak of 6 s at 768 MB/s, and one at the target.
    let (rates, outcome) = soaks(10e9, 100.0);
    assert!(rates.len() == 2 && rates[1] == 50.0, "{rates:?}");
    assert_eq!(outcome.qualified_rate, Some(50.0 * MB));
    let (rates, outcome) = soaks(10e9, 10.0);
    assert_eq!((rates[1], outcome.end, outcome.qualified_rate), (50.0, End::ByteLimit, None));
    // Fewer bytes make soaks shorter.
    let (_, outcome) = soaks(8e9, 1000.0);
    let soak = outcome.trials.iter().rfind(|trial| trial.phase == Phase::Soak).unwrap();
    assert!(soak.duration < target.soak && soak.duration > target.soak / 2, "{soak:?}");
    assert_eq!(outcome.soak.unwrap().seconds, soak.duration.as_secs_f64());
}

#[test]
fn without_bytes_for_the_search_the_target_is_soaked() {
    let soak = Duration::from_secs(6);
    let plan = SearchPlan { soak, target_rate: Some(50.0 * MB), ..quick() };
    let plan = SearchPlan { bytes: 320.0 * MB, search_bytes: 1.0, ..plan };
    let outcome = drive(plan.clone(), ideal(800.0 * MB));
    assert_eq!((rates(&outcome, Phase::Soak), outcome.trials.len()), (vec![50.0], 1));
    assert_eq!((outcome.qualified_rate, outcome.is_out_of_bytes), (Some(50.0 * MB), true));
    assert_eq!(outcome.soak.unwrap().seconds, 6.0);
    // A target beyond the highest rate is no rate to soak at.
    let beyond = SearchPlan { target_rate: Some(2001.0 * MB), ..plan.clone() };
    assert_eq!(drive(beyond, ideal(800.0 * MB)).trials.len(), 0);
    // Nor is one that failed: what came through then is.
    let plan = SearchPlan { search_bytes: 80.0 * MB, bytes: 400.0 * MB, ..plan };
    let outcome = drive(plan, ideal(30.0 * MB));
    assert!(rates(&outcome, Phase::Soak).iter().all(|rate| *rate < 31.0), "{:#?}", outcome.trials);
    assert!(!outcome.trials.is_empty() && outcome.is_out_of_bytes);
}

#[test]
fn a_search_with_enough_bytes_is_not_ended_by_them() {
    let plan = SearchPlan { target_rate: Some(50.0 * MB), ..quick() };
    assert!(!drive(plan.clone(), ideal(800.0 * MB)).is_out_of_bytes);
    assert!(!drive(limited(plan, 400e9), ideal(800.0 * MB)).is_out_of_bytes);
}

#[test]
fn a_trial_spoiled_by_the_generator_is_repeated_and_not_counted() {
    let mut trials = 0;
    let quiet = drive(plan(), ideal(800.0 * MB));
    let hiccups = drive(plan(), |rate, duration| {
        trials += 1;
        let spoiled = trials % 3 == 2;
        let outcome = ideal(800.0 * MB)(rate, duration);
        TrialOutcome { generator_limited: spoiled, lost_events: 51 * u64::from(spoiled), ..outcome }
    });
    assert_eq!((hiccups.knee, hiccups.qualified_rate), (quiet.knee, quiet.qualified_rate));
    assert_eq!(hiccups.end, End::Converged);
    assert!(hiccups.trials.iter().any(|trial| trial.failed == Some(FailedCondition::Generator)), "on record");
}

#[test]
fn a_generator_too_slow_in_the_soak_is_named() {
    let outcome = drive(plan(), |rate, duration| TrialOutcome {
        generator_limited: duration > Duration::from_secs(60),
        ..ideal(800.0 * MB)(rate, duration)
    });
    assert!(matches!(outcome.end, End::GeneratorLimited { .. }), "{:?}", outcome.end);
}

/// A machine that writes `first` bytes/s until a soak ends, and then the next of `later` after each soak.
fn slowing(first: f64, later: &[f64]) -> impl FnMut(f64, Duration) -> TrialOutcome {
    let (mut later, mut capacity) = (later.iter().copied(), first);
    move |rate, duration| {
        let outcome = ideal(capacity)(rate, duration);
        if duration == plan().soak {
            capacity = later.next().unwrap_or(capacity);
        }
        outcome
    }
}

#[test]
fn a_machine_that_became_slower_is_soaked_again_at_a_lower_rate() {
    let outcome = drive(plan(), slowing(800.0 * MB, &[600.0 * MB]));
    let (soaked, rechecked) = (rates(&outcome, Phase::Soak), rates(&outcome, Phase::Recheck));
    assert!(soaked.len() == 2 && (soaked[1] - 0.96 * 600.0).abs() < 1e-6, "{soaked:?}");
    // The knee fails twice; what came through then holds.
    assert!(rechecked.len() == 3 && rechecked[0] == rechecked[1], "{rechecked:?}");
    assert!((rechecked[2] - 600.0).abs() < 1e-6, "{rechecked:?}");
    assert_eq!(outcome.slower.unwrap(), Slower { from: rechecked[0] * MB, to: 600.0 * MB });
    assert_eq!((outcome.end, outcome.qualified_rate), (End::Converged, Some(soaked[1] * MB)));
    let knee = outcome.knee.unwrap();
    assert_eq!((knee.lower, knee.upper), (rechecked[2] * MB, Some(rechecked[0] * MB)));
    // The soak at the higher rate lost nothing either.
    let soak = outcome.soak.unwrap();
    assert_eq!((soak.attempts, soak.failed, soak.exposed_s), (2, 0, 240.0));
}

#[test]
fn a_machine_that_goes_on_to_slow_down_has_no_qualified_rate() {
    let capacities: Vec<f64> = (1..9).map(|soaks| 800.0 * MB * 0.9f64.powi(soaks)).collect();
    let outcome = drive(plan(), slowing(800.0 * MB, &capacities));
    assert_eq!((outcome.end, outcome.qualified_rate, outcome.soak), (End::SlowsDown, None, None));
    let slower = outcome.slower.unwrap();
    assert!((slower.to - capacities[7]).abs() < 1.0, "{slower:?}");
    assert_eq!(slower.from, outcome.knee.unwrap().lower);
    // Without bytes for another soak, too.
    let bytes = 1.9 * plan().soak.as_secs_f64() * 800.0 * MB;
    let outcome = drive(limited(plan(), bytes), slowing(800.0 * MB, &[600.0 * MB]));
    assert_eq!((outcome.end, rates(&outcome, Phase::Soak).len()), (End::SlowsDown, 1));
}

#[test]
fn a_machine_that_goes_on_to_slow_down_above_the_target_is_soaked_at_the_target() {
    let capacities: Vec<f64> = (1..9).map(|soaks| 800.0 * MB * 0.95f64.powi(soaks)).collect();
    let slow_to = |target: f64| {
        let plan = SearchPlan { target_rate: Some(target), soak_attempts_max: 3, ..plan() };
        drive(plan, slowing(800.0 * MB, &capacities))
    };
    let outcome = slow_to(300.0 * MB);
    let soaked = rates(&outcome, Phase::Soak);
    assert!(soaked.len() == 4 && soaked[3] == 300.0 && soaked[2] > 600.0, "{soaked:?}");
    assert_eq!((outcome.end, outcome.qualified_rate), (End::Converged, Some(300.0 * MB)));
    assert_eq!(outcome.slower.unwrap().to, capacities[2]);
    // A target above what came through at last is not proven.
    let outcome = slow_to(700.0 * MB);
    assert_eq!((outcome.end, outcome.qualified_rate), (End::SlowsDown, None));
}

#[test]
fn a_stall_that_the_buffer_does_not_bridge_is_known_at_every_rate() {
    let [stall, buffer] = [400, 300].map(Duration::from_millis);
    let mut stalls = [None, Some(stall), None].into_iter().cycle();
    let outcome = drive(plan(), |rate, duration| TrialOutcome {
        longest_stall: stalls.next().unwrap(),
        buffer: Some(buffer.mul_f64(800.0 * MB / rate)),
        ..ideal(800.0 * MB)(rate, duration)
    });
    let (longest, bridged) = outcome.unbridged_stall(800.0 * MB).unwrap();
    assert_eq!(longest, stall);
    assert!((bridged.as_secs_f64() - 0.3).abs() < 1e-6, "{bridged:?}");
    assert_eq!(outcome.unbridged_stall(599.0 * MB), None);
    assert_eq!(outcome.unbridged_stall(0.0), None);
}

#[test]
fn an_interrupted_search_says_what_it_knows() {
    let mut search = Search::new(plan()).unwrap();
    assert_eq!(search.clone().finish_now().end, End::Interrupted);
    let (machine, mut steps) = (ideal(800.0 * MB), 0);
    while let Step::Trial { rate, duration, .. } = search.next() {
        assert_eq!(search.next(), search.next());
        search.record(machine(rate, duration));
        steps += 1;
    }
    let outcome = search.clone().finish_now();
    assert_eq!((outcome.end, outcome.trials.len()), (End::Interrupted, steps));
    assert!(outcome.knee.is_some() && outcome.qualified_rate.is_none());
    search.record(clean(1.0, Duration::from_secs(120)));
    assert!(matches!(search.next(), Step::Trial { phase: Phase::Recheck, .. }));
    search.record(clean(1.0, Duration::from_secs(5)));
    let done = search.clone().finish_now();
    assert_eq!(done.end, End::Converged);
    // Later outcomes are ignored.
    search.record(clean(1.0, Duration::from_secs(120)));
    assert_eq!(search.next(), Step::Done(done));
}

#[test]
fn one_bad_trial_does_not_move_the_knee() {
    let mut seen_bad = false;
    let outcome = drive(plan(), |rate, duration| {
        let hiccup = !seen_bad && duration >= Duration::from_secs(5) && rate < 800.0 * MB;
        seen_bad |= hiccup;
        TrialOutcome { lost_events: u64::from(hiccup) * 9999, ..ideal(800.0 * MB)(rate, duration) }
    });
    assert!(seen_bad);
    assert_eq!(outcome.knee, drive(plan(), ideal(800.0 * MB)).knee);
    assert!(outcome.trials.iter().any(|trial| trial.failed == Some(FailedCondition::Loss)), "kept on record");
}

/// Adversarial outcomes, including invalid ones.
fn any_outcome() -> impl Strategy<Value = TrialOutcome> {
    let figure = || prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::INFINITY), -1.0..20.0, 0.0..3e9f64];
    let time = || prop::option::of((0u64..1000).prop_map(Duration::from_millis));
    let verdict = (prop::bool::weighted(0.3), prop::option::weighted(0.1, Just("late".to_owned())));
    let loss = prop_oneof![3 => Just(0u64), 1 => 0..10u64, 1 => any::<u64>()];
    (
        figure(),
        figure(),
        figure(),
        figure(),
        0..10_000u64,
        loss,
        verdict,
        time(),
        time(),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(
                duration_s,
                elapsed_s,
                achieved_rate,
                offered_rate,
                offered_events,
                lost_events,
                verdict,
                longest_stall,
                buffer,
                generator_limited,
            )| {
                let (backlog_growing, failed) = verdict;
                TrialOutcome {
                    duration_s,
                    clean_s: duration_s,
                    elapsed_s,
                    bytes: achieved_rate,
                    offered_events,
                    lost_events,
                    backlog_growing,
                    longest_stall,
                    buffer,
                    achieved_rate,
                    offered_rate,
                    failed,
                    generator_limited,
                }
            },
        )
}

proptest! {
    /// Neither a trial nor a soak starts that could exceed the bytes of the plan or of one trial.
    #[test]
    fn a_search_never_asks_for_more_bytes_than_it_has(
        outcomes in prop::collection::vec((0.0..1.2f64, 0u64..3, prop::bool::weighted(0.2)), 1..40),
        bytes in 1e9..400e9f64,
        trial_bytes in 1e9..50e9f64,
        capacity in 20e6..2e9f64,
        target in prop::option::of(1e6..3e9f64),
        is_quick in any::<bool>(),
    ) {
        let plan = if is_quick { quick() } else { SearchPlan::qualification(10.0 * MB, 2000.0 * MB) };
        let plan = SearchPlan { target_rate: target, trial_bytes, ..limited(plan, bytes) };
        let (mut given, mut written) = (outcomes.iter().cycle(), 0.0);
        drive(plan.clone(), |rate, duration| {
            let asked = rate * duration.as_secs_f64();
            assert!(asked <= 1.000_001 * plan.trial_bytes, "{asked} {rate}");
            assert!(written + asked <= 1.000_001 * plan.bytes, "{written} and {asked} of {bytes}");
            let &(share, lost, is_spoiled) = given.next().unwrap();
            let outcome = ideal(capacity)(rate, duration);
            let bytes = share.min(1.0) * asked;
            written += bytes;
            TrialOutcome { bytes, lost_events: lost / 2, generator_limited: is_spoiled, ..outcome }
        });
    }

    /// Whatever the outcomes, the search ends within its bounds and claims only what was observed.
    #[test]
    fn every_search_ends_and_claims_only_what_it_saw(
        outcomes in prop::collection::vec(any_outcome(), 1..40),
        honest_time in any::<bool>(),
        passes in 1u32..4,
        target in prop::option::of(1e6..3e9f64),
        second in prop::option::of(0.0..0.5f64),
        exceed in 0.0..0.9f64,
    ) {
        let plan = SearchPlan {
            soak_passes: passes,
            target_rate: target,
            second_loss_ratio: second,
            exceed_ratio: exceed,
            ..plan()
        };
        let steps_max = (plan.budget.as_secs_f64() / plan.initial_trial.as_secs_f64()) as usize
            + (plan.soak_attempts_max as usize + 1) * (1 + recheck::TRIALS_MAX as usize)
            + soak::SPOILED_MAX as usize;
        let mut given = outcomes.iter().cycle();
        let mut steps = 0;
        let outcome = drive(plan.clone(), |rate, duration| {
            steps += 1;
            assert!(steps <= steps_max, "more than {steps_max} steps");
            assert!(rate <= plan.max_rate && rate >= plan.min_rate, "rate {rate}");
            let outcome = given.next().unwrap().clone();
            let duration_s = duration.as_secs_f64();
            if honest_time { TrialOutcome { duration_s, elapsed_s: duration_s, ..outcome } } else { outcome }
        });
        prop_assert_eq!(outcome.trials.len(), steps);
        let searched: f64 = outcome.trials.iter()
            .filter(|trial| ![Phase::Soak, Phase::Recheck].contains(&trial.phase))
            .map(|trial| trial.duration.as_secs_f64()).sum();
        prop_assert!(searched <= plan.budget.as_secs_f64() + 1e-6);
        if let Some(Interval { lower, upper: Some(upper) }) = outcome.knee {
            prop_assert!(lower < upper);
        }
        if let Some(rate) = outcome.qualified_rate {
            let held = outcome.trials.iter().filter(|trial| {
                trial.phase == Phase::Soak && trial.rate == rate && trial.failed.is_none()
            });
            prop_assert!(held.count() >= passes as usize);
            let bound = outcome.soak.unwrap().incidents_per_s_max();
            prop_assert!(bound > 0.0);
            let failed = outcome.lowest_failed().map_or(f64::INFINITY, |trial| trial.rate);
            prop_assert!(failed > rate);
            prop_assert!(outcome.knee.is_some_and(|knee| knee.lower >= rate));
        }
    }
}
