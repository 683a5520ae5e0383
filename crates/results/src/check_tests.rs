//! Each contradiction is found, and a consistent summary has none.

use crate::example::fit;
use crate::summary::{Count, ResultSummary, SCHEMA_VERSION, Verdict};

/// The contradictions after one change to a consistent summary.
fn after(change: impl FnOnce(&mut ResultSummary)) -> Vec<String> {
    let mut summary = fit();
    change(&mut summary);
    summary.check()
}

#[track_caller]
fn assert_found(found: &[String], part: &str) {
    assert!(found.iter().any(|text| text.contains(part)), "`{part}` not in {found:?}");
}

#[test]
fn a_consistent_summary_has_no_contradiction() {
    assert_eq!(fit().check(), Vec::<String>::new());
}

#[test]
fn fit_with_loss_is_found() {
    let found = after(|s| {
        s.ledger.lost = Count { events: 3, bytes: 300 };
        s.ledger.lost_by_cause.insert("sequence gap".into(), Count { events: 3, bytes: 300 });
        s.ledger.sent.events += 3;
        s.ledger.sent.bytes += 300;
    });
    assert_eq!(found, ["verdict is FIT, but 3 events were lost"]);
}

#[test]
fn fit_without_headroom_or_soak_is_found() {
    assert_found(&after(|s| s.headroom_wanted = 1.6), "not the one that is wanted");
    assert_found(&after(|s| s.interrupted = true), "interrupted");
    assert_found(&after(|s| s.soak = None), "given together");
    assert_found(&after(|s| s.storage.usable_bytes = Some(1)), "do not hold one run");
    assert_found(
        &after(|s| {
            s.qualified_bytes_per_second = Some(79e6);
            s.headroom = Some(79.0 / 80.0);
            s.verdict = Verdict::FitWithLimits;
        }),
        "required rate was not qualified",
    );
    assert_found(&after(|s| s.verdict = Verdict::NotFit), "without a reason");
}

#[test]
fn headroom_that_is_not_the_quotient_is_found() {
    assert_found(&after(|s| s.headroom = Some(1.6)), "qualified over required is 1.5");
    assert_found(&after(|s| s.headroom = None), "given together");
    assert_found(&after(|s| s.headroom = Some(f64::NAN)), "not a positive number");
    assert_found(&after(|s| s.required_bytes_per_second = 0.0), "required rate is 0");
}

#[test]
fn knee_and_qualified_rate_stay_below_what_failed() {
    assert_found(&after(|s| s.knee_bytes_per_second = Some(130e6)), "outside its interval");
    assert_found(&after(|s| s.knee_bytes_per_second = None), "outside its interval");
    let found = after(|s| {
        s.qualified_bytes_per_second = Some(140e6);
        s.headroom = Some(1.75);
    });
    assert_found(&found, "above a rate that failed");
}

#[test]
fn a_ledger_that_grows_on_its_way_is_found() {
    assert_found(&after(|s| s.ledger.received.events += 1), "more received than sent");
    assert_found(&after(|s| s.ledger.written.bytes += 1), "more written than received");
    assert_found(&after(|s| s.ledger.durable.bytes += 1), "more durable than written");
    assert_found(&after(|s| s.ledger.verified = Some(Count { events: 1, bytes: u64::MAX })), "more verified");
    // Where both forms are kept more lies there than came; what was read back is held against that.
    let twice = |verified: u64| {
        after(|s| {
            let Count { events, bytes } = s.ledger.durable;
            s.ledger.stored = Some(Count { events: 2 * events, bytes: 2 * bytes });
            s.ledger.verified = Some(Count { events: verified * events, bytes });
        })
    };
    assert!(!twice(2).iter().any(|found| found.contains("verified")));
    assert_found(&twice(3), "more verified than on the volumes");
    assert_found(&after(|s| s.ledger.drained = Some(Count { events: u64::MAX, bytes: 0 })), "more drained");
    assert_found(&after(|s| s.ledger.lost_at_source.events = 1), "more lost at source than lost");
}

#[test]
fn events_that_are_nowhere_are_found_unless_the_run_was_interrupted() {
    let missing = |s: &mut ResultSummary| {
        s.ledger.durable.events -= 1;
        s.ledger.verified = None;
    };
    assert_found(&after(missing), "27466 events were due, but 27465 are durable or lost");
    let interrupted = after(|s| {
        missing(s);
        s.interrupted = true;
        s.verdict = Verdict::Inconclusive;
        s.verdict_reasons = vec!["stopped by a signal".into()];
    });
    assert_eq!(interrupted, Vec::<String>::new());
    let cause = |s: &mut ResultSummary| {
        s.ledger.lost_by_cause.insert("x".into(), Count { events: 2, bytes: 0 });
    };
    assert_found(&after(cause), "0 events lost, but 2 by cause");
}

#[test]
fn soak_bound_follows_the_rule_of_three() {
    assert_found(
        &after(|s| s.soak.as_mut().unwrap().upper_bound_loss_per_second = 0.04),
        "3 (failed + 1) / soak time is 0.05",
    );
    // Two failed soaks of 20 s and 40 s before it count.
    let repeated = after(|s| {
        let soak = s.soak.as_mut().unwrap();
        (soak.failed, soak.exposed_seconds, soak.upper_bound_loss_per_second) = (2, Some(120.0), 0.075);
    });
    assert!(repeated.is_empty(), "{repeated:?}");
    assert_found(&after(|s| s.soak.as_mut().unwrap().failed = 2), "3 (failed + 1) / soak time is 0.15");
    assert_found(&after(|s| s.soak.as_mut().unwrap().passes = 0), "no pass");
}

#[test]
fn trials_say_why_they_failed_and_only_then() {
    assert_found(&after(|s| s.trials[0].failed_condition = Some("x".into())), "trial 1 passed, but names");
    assert_found(&after(|s| s.trials[0].lost_events = 1), "trial 1 passed, but lost");
    assert_found(&after(|s| s.trials[1].failed_condition = None), "trial 2 failed, but does not say");
}

#[test]
fn another_schema_version_is_found() {
    let (next, message) = (SCHEMA_VERSION + 1, format!("schema version is {}", SCHEMA_VERSION + 1));
    assert_found(&after(|s| s.schema_version = next), &message);
}

#[test]
fn the_lowest_failed_rate_is_above_the_qualified_one_and_among_the_trials() {
    let failed = |change: fn(&mut crate::FailedRate)| after(|s| change(s.failed_above.as_mut().unwrap()));
    assert_found(&failed(|f| f.bytes_per_second = 119e6), "is not above the qualified rate");
    assert_found(&failed(|f| f.bytes_per_second = 130e6), "is not among the trials");
    assert_found(&failed(|f| f.lost_events = 3), "is not among the trials");
}

#[test]
fn a_rate_that_failed_is_named_and_the_lowest_is() {
    let none = |s: &mut ResultSummary| s.failed_above = None;
    let unnamed = "a rate failed, but none is named as the lowest";
    assert_eq!(after(none), Vec::<String>::new(), "the knee names one");
    let without_upper = |s: &mut ResultSummary| {
        none(s);
        s.knee_interval.as_mut().unwrap().upper_bytes_per_second = None;
    };
    assert_eq!(after(without_upper), [unnamed]);
    // What the source or a trial without a schedule missed is no limit of the machine.
    let source = |s: &mut ResultSummary| {
        without_upper(s);
        s.trials[1].failed_condition = Some(crate::TrialResult::SOURCE_FAILED.into());
    };
    assert_eq!(after(source), Vec::<String>::new());
    let unthrottled = |s: &mut ResultSummary| {
        without_upper(s);
        s.trials[1].phase = "saturated".into();
    };
    assert_eq!(after(unthrottled), Vec::<String>::new());
    let lower = |s: &mut ResultSummary| s.trials.push(crate::example::trial(122e6, false));
    assert_eq!(after(lower), ["a lower rate failed than the lowest that is named"]);
    let below_the_qualified = |s: &mut ResultSummary| s.trials.push(crate::example::trial(100e6, false));
    assert_eq!(after(below_the_qualified), Vec::<String>::new());
}

#[test]
fn the_qualified_rate_passed_in_a_trial() {
    let found = after(|s| s.trials[0].asked_bytes_per_second = 110e6);
    assert_eq!(found, ["the qualified rate is not among the trials that passed"]);
}

#[test]
fn a_named_stage_was_confirmed_or_not_tested() {
    let change = |confirmed: bool, not_run: Option<&str>| {
        after(|s| {
            let counter = &mut s.bottleneck.as_mut().unwrap().counter_trials[0];
            (counter.confirmed, counter.not_run) = (confirmed, not_run.map(str::to_owned));
        })
    };
    assert_eq!(change(false, None), ["the bottleneck is volume, which no counter-trial confirmed"]);
    assert_eq!(change(false, Some("too little memory")), Vec::<String>::new());
    let another = after(|s| {
        let found = s.bottleneck.as_mut().unwrap();
        found.counter_trials[0].confirmed = false;
        found.counter_trials[0].not_run = Some("too little memory".into());
        found.stage = "drain".into();
    });
    assert_eq!(another, ["the bottleneck is drain, which no counter-trial confirmed"]);
    let earlier = after(|s| s.bottleneck.as_mut().unwrap().counter_trials.clear());
    assert_eq!(earlier, Vec::<String>::new());
}

#[test]
fn a_bottleneck_that_its_counter_trials_contradict_is_found() {
    let change =
        |change: fn(&mut crate::summary::Bottleneck)| after(|s| change(s.bottleneck.as_mut().unwrap()));
    let found = change(|found| found.stage = "drain".into());
    assert_eq!(found, ["a counter-trial confirmed volume, but the bottleneck is drain"]);
    let found = change(|found| found.counter_trials[0].pairs.clear());
    assert_found(&found, "without trials");
    let refuted = change(|found| {
        found.stage = crate::summary::Bottleneck::NOT_RESOLVED.into();
        found.counter_trials[0].confirmed = false;
    });
    assert_eq!(refuted, Vec::<String>::new());
}

#[test]
fn worn_disks_and_a_small_endurance_contradict_fit() {
    assert_found(&after(|s| s.storage.disks[0].used_percent = 100), "disk nvme0n1 reports wear");
    let short = |s: &mut ResultSummary| s.storage.endurance.as_mut().unwrap().seconds = 28_000.0;
    assert_found(&after(short), "the rated endurance is too small");
    let limited = after(|s| {
        short(s);
        (s.verdict, s.verdict_reasons) = (Verdict::FitWithLimits, vec!["a reason".into()]);
    });
    assert_eq!(limited, Vec::<String>::new());
}

#[test]
fn a_next_limit_is_not_below_the_qualified_rate() {
    let next = |s: &mut ResultSummary, rate| {
        s.bottleneck.as_mut().unwrap().next.as_mut().unwrap().bytes_per_second = rate;
    };
    assert_found(&after(|s| next(s, Some(110e6))), "the next limit is below the qualified rate");
    let itself = after(|s| s.bottleneck.as_mut().unwrap().next.as_mut().unwrap().stage = "volume".into());
    assert_eq!(itself, ["the next limit is the bottleneck"]);
    assert_eq!(after(|s| next(s, None)), Vec::<String>::new());
}
