//! Verdicts and their reasons.
use std::time::Duration;

use keepup_results::{DiskWear, Endurance, LoadKind, LoadReading, TrialResult};

use super::*;
use crate::search::{FailedCondition, Interval, Phase, SoakRecord, TrialOutcome, TrialRecord};

fn outcome(qualified_rate: Option<f64>, end: End) -> Outcome {
    Outcome {
        knee: None,
        second_knee: None,
        qualified_rate,
        soak: None,
        slower: None,
        is_out_of_bytes: false,
        end,
        trials: vec![],
    }
}

/// A failed trial at 80 MB/s, because of the generator or the machine, which throttled the source.
fn failed(generator_limited: bool) -> TrialRecord {
    let outcome = TrialOutcome {
        duration_s: 4.0,
        clean_s: 0.0,
        elapsed_s: 4.0,
        bytes: 288e6,
        offered_events: 100,
        lost_events: 1,
        backlog_growing: false,
        longest_stall: None,
        buffer: None,
        achieved_rate: 72e6,
        offered_rate: 72e6,
        failed: None,
        generator_limited,
    };
    let failed = Some(FailedCondition::Loss);
    TrialRecord { phase: Phase::Knee, rate: 80e6, duration: Duration::from_secs(4), failed, outcome }
}

/// A trial that the machine failed though the source kept its schedule.
fn failed_on_schedule(rate: f64) -> TrialRecord {
    let outcome = TrialOutcome { offered_rate: 0.999 * rate, ..failed(false).outcome };
    TrialRecord { rate, outcome, ..failed(false) }
}

fn passed(rate: f64) -> TrialRecord {
    let outcome = TrialOutcome { lost_events: 0, offered_rate: rate, ..failed(false).outcome };
    TrialRecord { rate, failed: None, outcome, ..failed(false) }
}

fn run_space(usable_bytes: f64) -> RunSpace {
    RunSpace { usable_bytes, written: 80e6, drained: 0.0, run_seconds: 28_800.0, is_required: false }
}

/// Disks and ratings without a limit.
static UNWORN: Wear = Wear { disks: vec![], endurance: None };

fn verdict<'a>(outcome: &'a Outcome, change: impl FnOnce(&mut Basis<'a>)) -> Judgement {
    let mut basis = Basis {
        required: 80e6,
        headroom_wanted: 1.3,
        cpu_free_wanted: 0.2,
        cpu_share_at_required: Some(0.1),
        saturated: None,
        offered_unthrottled: None,
        outcome,
        fault: None,
        loads: &[],
        load_failure: None,
        run_space: run_space(1e15),
        wear: &UNWORN,
    };
    change(&mut basis);
    judge(&basis)
}

#[test]
fn headroom_decides() {
    for (rate, expected) in [
        (200e6, Verdict::Fit),
        (104e6, Verdict::Fit),
        (100e6, Verdict::FitWithLimits),
        (79e6, Verdict::NotFit),
    ] {
        let mut found = outcome(Some(rate), End::Converged);
        found.trials.push(failed(false));
        assert_eq!(verdict(&found, |_| {}).verdict, expected, "{rate}");
    }
}

/// Divided by the required rate, this target gives less than the headroom that it has by definition.
#[test]
fn a_target_that_is_rounded_has_its_headroom() {
    let required = 51_863_394.655_576_065;
    let holds = outcome(Some(required * 1.3), End::Converged);
    assert_eq!(verdict(&holds, |b| b.required = required).verdict, Verdict::Fit);
}

#[test]
fn processors_that_must_stay_free_limit() {
    let holds = outcome(Some(200e6), End::Converged);
    assert_eq!(verdict(&holds, |b| b.cpu_share_at_required = Some(0.9)).verdict, Verdict::FitWithLimits);
}

#[test]
fn a_fault_is_never_fit() {
    let holds = outcome(Some(200e6), End::Converged);
    assert_eq!(verdict(&holds, |b| b.fault = Some("damage")).verdict, Verdict::NotFit);
}

#[test]
fn a_slow_generator_proves_nothing_about_the_machine() {
    let judgement = verdict(&outcome(None, End::GeneratorLimited { rate: 50e6 }), |_| {});
    assert!(judgement.generator_limited && judgement.verdict == Verdict::Inconclusive);
    let mut shy = outcome(Some(70e6), End::TimeCap);
    shy.trials.push(failed(true));
    let judgement = verdict(&shy, |_| {});
    assert!(judgement.generator_limited && judgement.verdict == Verdict::Inconclusive);
    // Losses at a rate that the generator could not keep are not attributed to the machine.
    shy.trials.push(failed(false));
    assert_eq!(verdict(&shy, |_| {}).verdict, Verdict::Inconclusive);
    shy.trials[1].rate = 75e6;
    assert_eq!(verdict(&shy, |_| {}).verdict, Verdict::NotFit);
    shy.trials[1].rate = 60e6;
    assert_eq!(verdict(&shy, |_| {}).verdict, Verdict::Inconclusive, "a higher rate held");
    let enough = verdict(&outcome(Some(200e6), End::GeneratorLimited { rate: 300e6 }), |_| {});
    assert_eq!((enough.verdict, enough.generator_limited), (Verdict::Fit, false));
}

/// Readers of a result tell the source from the machine by this condition.
#[test]
fn the_condition_of_a_slow_source_is_the_one_that_results_know() {
    let condition = first_failed(&failed(true).outcome);
    assert_eq!(condition.as_deref(), Some(TrialResult::SOURCE_FAILED));
    assert_ne!(first_failed(&failed(false).outcome), condition);
}

/// A generator that paused once at a low rate can still offer a higher one.
#[test]
fn a_pause_of_the_generator_below_a_rate_that_passed_is_no_limit() {
    let mut found = outcome(Some(70e6), End::Converged);
    let paused = TrialRecord { rate: 50e6, ..failed(true) };
    found.trials = vec![paused, passed(73e6)];
    let judgement = verdict(&found, |_| {});
    assert_eq!((judgement.verdict, judgement.generator_limited), (Verdict::Inconclusive, false));
    let not_found = "no higher rate failed because of the machine, so its limit was not found";
    assert_eq!(judgement.reasons[1], not_found, "73 MB/s passed, so more was tried");
    found.trials.push(failed(false));
    assert_eq!(verdict(&found, |_| {}).verdict, Verdict::NotFit);
}

/// What the source offered is no limit of the source, whatever became of the trial.
#[test]
fn a_rate_that_was_offered_is_never_called_a_limit_of_the_source() {
    let reasons = |trials: Vec<TrialRecord>, unthrottled| {
        let found = Outcome { trials, ..outcome(Some(70e6), End::GeneratorLimited { rate: 80e6 }) };
        let judgement = verdict(&found, |basis| basis.offered_unthrottled = unthrottled);
        (judgement.verdict, judgement.generator_limited, judgement.reasons[1..].join(" "))
    };
    let limit = |rate: &str| {
        format!(
            "the source may not keep its schedule at {rate} or more, so the machine's limit was not found"
        )
    };
    let offered = |rate: &str| {
        format!(
            "the source missed its schedule at 80.0 MB/s, although it offered {rate} in another trial, so \
             the machine's limit was not found"
        )
    };
    let missed = |rate| TrialRecord { rate, ..failed(true) };
    let inconclusive = |reason| (Verdict::Inconclusive, true, reason);
    assert_eq!(reasons(vec![missed(80e6)], None), inconclusive(limit("80.0 MB/s")));
    assert_eq!(reasons(vec![missed(80e6)], Some(79e6)), inconclusive(limit("80.0 MB/s")));
    assert_eq!(reasons(vec![missed(80e6), passed(80e6)], None), inconclusive(offered("80.0 MB/s")));
    assert_eq!(
        reasons(vec![missed(80e6), missed(90e6), passed(85e6)], None),
        inconclusive(limit("90.0 MB/s"))
    );
    assert_eq!(reasons(vec![missed(80e6)], Some(2e9)), inconclusive(offered("2000 MB/s")));
    // The machine failed at a rate that the source offered, so that is its limit.
    let lost = reasons(vec![missed(80e6), failed_on_schedule(85e6)], None);
    assert_eq!(lost, (Verdict::NotFit, false, String::new()));
    // A source that the path throttled has shown no more than it sent.
    let throttled = reasons(vec![missed(80e6), failed(false)], None);
    assert_eq!(throttled, inconclusive(limit("80.0 MB/s")));
}

#[test]
fn nothing_that_held_because_of_the_source_is_explained_by_what_it_offered() {
    let missed =
        Outcome { trials: vec![failed(true)], ..outcome(None, End::GeneratorLimited { rate: 80e6 }) };
    let reason = |unthrottled| {
        let judgement = verdict(&missed, |basis| basis.offered_unthrottled = unthrottled);
        assert!(judgement.generator_limited);
        judgement.reasons[0].clone()
    };
    assert!(reason(Some(79e6)).starts_with("the source may not keep its schedule at 80.0 MB/s or more"));
    assert!(reason(Some(90e6)).starts_with("the source missed its schedule at 80.0 MB/s, although it"));
}

#[test]
fn a_fit_machine_has_a_limit_of_the_source_only_without_one_of_its_own() {
    let found = |trials| Outcome { trials, ..outcome(Some(200e6), End::GeneratorLimited { rate: 300e6 }) };
    let reasons = |found: Outcome| verdict(&found, |_| {}).reasons.len();
    assert_eq!(reasons(found(vec![passed(208e6)])), 2);
    assert_eq!(reasons(found(vec![passed(208e6), failed_on_schedule(250e6)])), 1);
}

#[test]
fn a_search_bound_by_the_source_ends_with_what_the_source_reaches_alone() {
    let alone = End::GeneratorLimited { rate: 100e6 };
    assert_eq!(bounded_end(End::MaxRateHolds, 100e6, 90e6), alone);
    let more = End::GeneratorLimited { rate: 101e6 };
    assert_eq!(bounded_end(End::MaxRateHolds, 100e6, 101e6), more, "it offered more");
    assert_eq!(bounded_end(End::Converged, 100e6, 90e6), End::Converged);
}

#[test]
fn a_source_that_bound_the_search_is_named_with_what_it_offered() {
    let found = outcome(Some(80e6), End::GeneratorLimited { rate: 210e6 });
    let judged = verdict(&found, |basis| (basis.required, basis.offered_unthrottled) = (3.9e9, Some(210e6)));
    assert_eq!((judged.verdict, judged.generator_limited), (Verdict::Inconclusive, true), "{judged:?}");
    let reason = "the source offered at most 210 MB/s, so the machine's limit was not found";
    assert!(judged.reasons.iter().any(|given| given == reason), "{judged:?}");
}

#[test]
fn a_machine_that_fails_at_the_lowest_rate_is_not_said_to_lose_events() {
    let mut found = outcome(None, End::MinRateFails);
    let mut backlog = failed_on_schedule(20e6);
    (backlog.failed, backlog.outcome.lost_events) = (Some(FailedCondition::Backlog), 0);
    found.trials = vec![failed(false), backlog];
    assert_eq!(verdict(&found, |_| {}).reasons, ["trials failed even at the lowest rate tried, 20.0 MB/s"]);
}

#[test]
fn rates_far_apart_have_one_unit_in_a_reason() {
    let judged = verdict(&outcome(Some(1.86e9), End::Converged), |_| {});
    assert!(judged.reasons[0].starts_with("1860 MB/s sustained"), "{judged:?}");
    assert!(judged.reasons[0].contains("the required 80.0 MB/s"), "{judged:?}");
    let found = outcome(None, End::TimeCap);
    let judged = verdict(&found, |basis| (basis.saturated, basis.required) = (Some(410e6), 2.1e9));
    assert!(judged.reasons[0].starts_with("the path carried 0.41 GB/s"), "{judged:?}");
    assert!(judged.reasons[0].ends_with("; 2.10 GB/s required"), "{judged:?}");
}

/// A soak that lost events is no run without loss, however long.
#[test]
fn the_longest_run_without_loss_lost_nothing() {
    let mut lossy = failed_on_schedule(80e6);
    lossy.outcome.duration_s = 30.0;
    let found = |trials| Outcome { trials, ..outcome(None, End::SoakFails) };
    let (some, none) = (found(vec![passed(70e6), lossy.clone()]), found(vec![lossy]));
    assert_eq!(
        longest_run(&some, 28_800.0),
        "the longest run without loss took 4 s; the profile runs for 8 h"
    );
    assert_eq!(
        longest_run(&none, 28_800.0),
        "no run at a set rate was without loss; the profile runs for 8 h"
    );
}

#[test]
fn a_limit_above_the_plan_is_possible_only_if_nothing_failed() {
    let mut found = outcome(Some(70e6), End::MaxRateHolds);
    found.knee = Some(Interval { lower: 73e6, upper: None });
    assert_eq!(
        untried(&found, 75e6).as_deref(),
        Some("no rate above 75.0 MB/s was tried, so the limit may be higher")
    );
    found.trials = vec![failed(true)];
    assert!(untried(&found, 75e6).is_some(), "the source proves nothing");
    found.trials = vec![failed(false)];
    assert_eq!(untried(&found, 75e6), None);
}

#[test]
fn a_soak_is_stored_with_its_bound() {
    let record = SoakRecord { rate: 70e6, passes: 2, seconds: 60.0, attempts: 3, failed: 1, exposed_s: 75.0 };
    let found = Outcome { soak: Some(record), ..outcome(Some(70e6), End::Converged) };
    let stored = soak(&found, 5, Some(7)).unwrap();
    assert_eq!((stored.seconds, stored.passes, stored.bytes, stored.memory_bytes), (30.0, 2, 5, Some(7)));
    assert_eq!((stored.failed, stored.exposed_seconds), (1, Some(75.0)));
    assert!((stored.upper_bound_loss_per_second - 0.08).abs() < 1e-12);
    assert_eq!(soak(&outcome(None, End::SoakFails), 5, None), None);
}

#[test]
fn a_path_that_saturates_far_below_the_requirement_is_not_fit() {
    let cases = [
        (Some(50e6), None, Verdict::NotFit),
        (Some(50e6), Some(40e6), Verdict::NotFit),
        (Some(60e6), None, Verdict::Inconclusive),
        (None, None, Verdict::Inconclusive),
        (Some(50e6), Some(200e6), Verdict::Fit),
    ];
    for (saturated, qualified, expected) in cases {
        let found = outcome(qualified, End::TimeCap);
        let judgement = verdict(&found, |basis| basis.saturated = saturated);
        assert_eq!(judgement.verdict, expected, "{saturated:?} {qualified:?}: {judgement:?}");
    }
}

#[test]
fn stalls_beyond_the_buffer_say_what_would_do() {
    let end = End::StallsExceedBuffer {
        longest_stall: Duration::from_millis(700),
        buffer: Duration::from_millis(200),
        buffer_needed_bytes: 56e6,
    };
    let judgement = verdict(&outcome(None, end), |_| {});
    assert_eq!(judgement.verdict, Verdict::NotFit);
    assert!(
        judgement.reasons[0].contains("700 ms") && judgement.reasons[0].contains("56 MB"),
        "{judgement:?}"
    );
    // At a quarter of the rate, the buffer bridges 800 ms: the answer is open.
    let judgement = verdict(&outcome(None, end), |basis| basis.required = 20e6);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert!(judgement.reasons[0].ends_with("; 800 ms at the required rate"), "{judgement:?}");
}

#[test]
fn a_soak_that_failed_at_the_target_decides_whatever_stalled_above_it() {
    let end = End::StallsExceedBuffer {
        longest_stall: Duration::from_millis(180),
        buffer: Duration::from_millis(66),
        buffer_needed_bytes: 276e6,
    };
    let soak = |rate| TrialRecord { phase: Phase::Soak, ..failed_on_schedule(rate) };
    for (lowest, expected) in [(6.5e6 * 1.3, Verdict::NotFit), (400e6, Verdict::Inconclusive)] {
        let found = Outcome { trials: vec![soak(1500e6), soak(lowest)], ..outcome(None, end) };
        let judgement = verdict(&found, |basis| basis.required = 6.5e6);
        assert_eq!(judgement.verdict, expected, "{judgement:?}");
        let stalls = judgement.reasons.iter().filter(|reason| reason.contains("one took 180 ms")).count();
        assert_eq!(stalls, 1, "{judgement:?}");
        let is_first = judgement.reasons[0].contains("no rate passed the whole soak");
        assert_eq!(is_first, expected == Verdict::NotFit, "{judgement:?}");
    }
}

#[test]
fn soaks_that_failed_above_the_target_leave_the_question_open() {
    let soak = |rate| TrialRecord { phase: Phase::Soak, ..failed_on_schedule(rate) };
    let found = Outcome { trials: vec![soak(130e6), soak(110e6)], ..outcome(None, End::SoakFails) };
    let judgement = verdict(&found, |_| {});
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert!(judgement.reasons[0].contains("lowest tried was 110 MB/s, 80.0 MB/s required"), "{judgement:?}");
    for lowest in [1.3 * 80e6, 80e6] {
        let found = Outcome { trials: vec![soak(130e6), soak(lowest)], ..found.clone() };
        assert_eq!(verdict(&found, |_| {}).verdict, Verdict::NotFit);
    }
}

#[test]
fn a_machine_that_slows_down_has_no_rate() {
    for (to, expected) in [(79e6, Verdict::NotFit), (90e6, Verdict::Inconclusive)] {
        let slower = Some(Slower { from: 140e6, to });
        let found = Outcome { slower, ..outcome(None, End::SlowsDown) };
        let judgement = verdict(&found, |_| {});
        assert_eq!(judgement.verdict, expected, "{judgement:?}");
        assert!(judgement.reasons[0].contains("carried 140 MB/s before"), "{judgement:?}");
        assert_eq!(became_slower(&found), None);
        let settled = Outcome { slower, ..outcome(Some(85e6), End::Converged) };
        let limit = became_slower(&settled).unwrap();
        assert!(limit.contains("carried 140 MB/s before"), "{limit}");
    }
}

#[test]
fn a_stall_that_the_buffer_does_not_bridge_is_stated() {
    let mut stalled = passed(90e6);
    stalled.outcome.longest_stall = Some(Duration::from_millis(900));
    stalled.outcome.buffer = Some(Duration::from_secs(1));
    let found = Outcome { trials: vec![stalled], ..outcome(Some(120e6), End::Converged) };
    // 90 MB: 1.1 s at the required rate, 0.75 s at the qualified one.
    assert_eq!(verdict(&found, |_| {}).verdict, Verdict::Fit);
    let limit = unbridged_above(&found, 80e6).unwrap();
    assert!(limit.contains("stall of 900 ms") && limit.contains("qualified rate the buffer bridges 750 ms"));
    // 0.82 s at a higher requirement.
    let judgement = verdict(&found, |basis| (basis.required, basis.headroom_wanted) = (110e6, 1.0));
    assert_eq!(judgement.verdict, Verdict::FitWithLimits);
    assert!(judgement.reasons[1].contains("at the required rate the buffer bridges 818 ms"), "{judgement:?}");
    assert_eq!(unbridged_above(&found, 110e6), None);
}

#[test]
fn an_interrupted_run_is_inconclusive() {
    assert_eq!(verdict(&outcome(Some(200e6), End::Interrupted), |_| {}).verdict, Verdict::Inconclusive);
}

#[test]
fn loads_stand_beside_the_verdict_and_one_that_ended_leaves_none() {
    let readings =
        [0, 10].map(|s| LoadReading { t_ns: s * 1_000_000_000, amount: s * 30_000_000, cpu_ns: 0 });
    let load =
        |spec: &str, kind, asked| LoadResult::of(spec.into(), kind, asked, &readings, (0, 10_000_000_000));
    let loads = [load("net=50 MB/s", LoadKind::Net, 50e6), load("cpu=0.03", LoadKind::Cpu, 0.03)];
    let found = outcome(Some(200e6), End::Converged);
    let judged = verdict(&found, |basis| basis.loads = &loads);
    assert_eq!((judged.verdict, judged.reasons.len()), (Verdict::Fit, 2));
    assert!(judged.reasons[1].contains("`net=50 MB/s` reached only 30.0 MB/s of 50.0 MB/s"), "{judged:?}");
    let ended = verdict(&found, |basis| basis.load_failure = Some("load cpu=1: it was killed"));
    assert_eq!((ended.verdict, &ended.reasons[0][..]), (Verdict::Inconclusive, "load cpu=1: it was killed"));
}

#[test]
fn volumes_that_do_not_hold_one_run_limit_or_decide() {
    let judged = |qualified: Option<f64>, is_required| {
        let found = outcome(qualified, End::Converged);
        verdict(&found, |basis| basis.run_space = RunSpace { is_required, ..run_space(80e9) })
    };
    let limited = judged(Some(200e6), false);
    assert_eq!(limited.verdict, Verdict::FitWithLimits);
    assert!(limited.reasons[1].starts_with("the volumes are full after 16.7 min:"), "{limited:?}");
    let refused = judged(Some(200e6), true);
    assert_eq!(refused.verdict, Verdict::NotFit);
    assert!(refused.reasons[0].starts_with("the volumes are full"), "{refused:?}");
    // Without a verdict on the rate, a demanded run that does not fit is still NOT FIT.
    assert_eq!(judged(None, true).verdict, Verdict::NotFit);
    assert_eq!(judged(None, false).verdict, Verdict::Inconclusive);
}

#[test]
fn a_worn_disk_and_a_short_endurance_limit() {
    let disk = |used_percent| DiskWear {
        disk: "nvme0n1".into(),
        used_percent,
        spare_percent: 100,
        spare_threshold_percent: 10,
        is_degraded: false,
        written_bytes: None,
    };
    let endurance = |seconds| Endurance {
        path: "/data/a".into(),
        rated_bytes: 600_000_000_000_000,
        written_bytes: None,
        seconds,
        runs: seconds / 28_800.0,
        run_seconds: 28_800.0,
        required_seconds: 1e6,
    };
    let judged = |qualified, used_percent, seconds| {
        let wear = Wear { disks: vec![disk(used_percent)], endurance: Some(endurance(seconds)) };
        let found = outcome(qualified, End::Converged);
        verdict(&found, |basis| basis.wear = &wear)
    };
    assert_eq!(judged(Some(200e6), 99, 1e6).verdict, Verdict::Fit);
    let worn = judged(Some(200e6), 100, 1e6);
    assert_eq!((worn.verdict, worn.reasons.len()), (Verdict::FitWithLimits, 2));
    assert!(worn.reasons[1].starts_with("disk nvme0n1 reports wear:"), "{worn:?}");
    let short = judged(Some(200e6), 99, 9e5);
    assert_eq!(short.verdict, Verdict::FitWithLimits);
    assert!(short.reasons[1].ends_with("the profile requires 11.6 days"), "{short:?}");
    // Wear does not improve a verdict.
    assert_eq!(
        judged(Some(79e6), 100, 9e5).verdict,
        verdict(&outcome(Some(79e6), End::Converged), |_| {}).verdict
    );
    assert_eq!(judged(None, 100, 9e5).verdict, Verdict::Inconclusive);
}

#[test]
fn a_search_that_ended_at_the_limit_of_bytes_says_so_first() {
    for end in [End::TimeCap, End::Converged, End::ByteLimit] {
        let found = Outcome { is_out_of_bytes: true, ..outcome(Some(200e6), end) };
        let reasons = verdict(&found, |_| ()).reasons;
        assert_eq!(reasons[0], "the search ended at the limit of bytes written (--max-write)");
        assert!(reasons[1].starts_with("200 MB/s sustained"), "{reasons:?}");
    }
    let reasons = |end| {
        let found = Outcome { is_out_of_bytes: true, ..outcome(None, end) };
        verdict(&found, |_| ()).reasons
    };
    let limit = "the search ended at the limit of bytes written (--max-write)";
    assert_eq!(reasons(End::TimeCap), [limit, "no rate held a soak before that"]);
    let once = "the limit of bytes written (--max-write) was reached before a rate held a soak";
    assert_eq!(reasons(End::ByteLimit), [once]);
    assert_eq!(reasons(End::Interrupted), ["the run was interrupted"]);
}

#[test]
fn a_wide_gap_between_what_held_and_what_failed_is_not_resolved() {
    let gap = |failed_rate: f64| {
        let trials = vec![passed(104e6), failed_on_schedule(failed_rate)];
        let found = Outcome { trials, ..outcome(Some(104e6), End::TimeCap) };
        verdict(&found, |_| ()).reasons.into_iter().find(|reason| reason.ends_with("are not resolved"))
    };
    assert_eq!(gap(657e6).unwrap(), "rates between 104 MB/s and 657 MB/s are not resolved");
    assert_eq!(gap(150e6), None);
}
