//! One failure is a failure of all; shares scale rates; a source that is too slow proves nothing.
use keepup_qualify::search::TrialOutcome;

use super::*;
use crate::trial::sample;

fn part(host: &str, share: f64, rate: f64, change: impl Fn(&mut TrialOutcome)) -> Part {
    let mut outcome = sample::outcome(rate, 0);
    change(&mut outcome.judged);
    Part { host: host.to_owned(), source: "s0:1".to_owned(), share, outcome }
}

#[test]
fn a_trial_passes_if_every_part_passes() {
    let parts = [part("a", 0.75, 30e6, |_| ()), part("b", 0.25, 10e6, |_| ())];
    let outcome = combine(&parts, 3.5);
    assert_eq!(judge::first_failed(&outcome), None);
    assert_eq!((outcome.achieved_rate, outcome.offered_rate), (40e6, 40e6));
    assert_eq!((outcome.offered_events, outcome.elapsed_s, outcome.bytes), (200, 3.5, 2e6));
}

#[test]
fn the_slowest_recorder_limits_all() {
    let slow = |judged: &mut TrialOutcome| (judged.backlog_growing, judged.clean_s) = (true, 0.2);
    let parts = [part("a", 0.5, 50e6, |_| ()), part("b", 0.5, 10e6, slow)];
    let outcome = combine(&parts, 1.0);
    assert!(outcome.backlog_growing && !outcome.generator_limited);
    // `b` has half of the streams: at 10 MB/s of its own, all carry 20 MB/s.
    assert_eq!((outcome.achieved_rate, outcome.clean_s), (20e6, 0.2));
    assert_eq!((parts[0].failed(), parts[1].failed()), (None, Some("the backlog grew".to_owned())));
}

#[test]
fn a_slow_source_proves_nothing_unless_a_recorder_failed_too() {
    let short = |judged: &mut TrialOutcome| {
        (judged.generator_limited, judged.lost_events, judged.backlog_growing) = (true, 7, true);
    };
    let parts = [part("a", 0.5, 50e6, |_| ()), part("b", 0.5, 10e6, short)];
    assert!(combine(&parts, 1.0).generator_limited);
    assert_eq!(parts[1].failed(), None);
    let lost = |judged: &mut TrialOutcome| judged.lost_events = 3;
    let outcome = combine(&[part("a", 0.5, 50e6, lost), part("b", 0.5, 10e6, short)], 1.0);
    assert!(!outcome.generator_limited && !outcome.backlog_growing);
    assert_eq!(outcome.lost_events, 3);
}

#[test]
fn conditions_name_their_host() {
    let late = |judged: &mut TrialOutcome| judged.failed = Some("durable only 9.0 s after".to_owned());
    let outcome = combine(&[part("a", 0.5, 50e6, |_| ()), part("b", 0.5, 50e6, late)], 1.0);
    assert_eq!(outcome.failed.as_deref(), Some("b: durable only 9.0 s after"));
}

#[test]
fn stall_and_buffer_are_those_of_one_host() {
    let stalled = |stall_ms, buffer_ms| {
        move |judged: &mut TrialOutcome| {
            judged.longest_stall = Some(Duration::from_millis(stall_ms));
            judged.buffer = Some(Duration::from_millis(buffer_ms));
        }
    };
    // `a` has the longer stall, `b` the smaller buffer for its own.
    let parts = [part("a", 0.5, 1e6, stalled(300, 1_000)), part("b", 0.5, 1e6, stalled(200, 100))];
    let outcome = combine(&parts, 1.0);
    assert_eq!(
        outcome.longest_stall.zip(outcome.buffer).map(|(a, b)| [a, b].map(|t| t.as_millis())),
        Some([200, 100])
    );
}

#[test]
fn counts_of_any_size_add_up() {
    let many = |judged: &mut TrialOutcome| (judged.offered_events, judged.lost_events) = (u64::MAX, u64::MAX);
    let outcome = combine(&[part("a", 0.5, 50e6, many), part("b", 0.5, 50e6, many)], 1.0);
    assert_eq!((outcome.offered_events, outcome.lost_events), (u64::MAX, u64::MAX));
}
