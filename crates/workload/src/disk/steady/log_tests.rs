//! Synthetic run: changes, steady-state rounds, separate passes, bounded memory.
use super::*;

const S: u64 = 1_000_000_000;

/// A run with `rate(second)` bytes per second; returns the log and the reported changes.
fn run(seconds: u64, round: u64, rate: impl Fn(u64) -> u64) -> (Log, Vec<SteadyChange>) {
    let mut log = Log::new(7 * S, Duration::from_secs(round));
    let (mut bytes, mut changes) = (0, Vec::new());
    for second in 0..seconds {
        bytes += rate(second);
        let now_ns = 7 * S + (second + 1) * S;
        changes.extend(log.tick(now_ns, bytes, false, SteadyConditions::default()));
    }
    log.end_lap();
    (log, changes)
}

#[test]
fn a_drop_and_its_recovery_have_time_and_position() {
    let rate = |second| if (100..200).contains(&second) { 1000 } else { 2000 };
    let (log, changes) = run(300, 10, rate);
    let finding = log.finding(None);
    assert_eq!(finding.changes, changes);
    let [down, up] = &changes[..] else { panic!("{changes:#?}") };
    assert!(down.is_drop() && !up.is_drop());
    assert_eq!((down.at_seconds, down.at_bytes), (100.0, 200_000));
    assert_eq!((up.at_seconds, up.at_bytes), (200.0, 300_000));
    assert!(down.noticed_seconds > 100.0 && down.noticed_seconds <= 110.0, "{down:#?}");
    let level = |rate: f64, wanted: f64| (rate / wanted - 1.0).abs() < 1e-9;
    assert!(level(down.before_bytes_per_second, 2000.0) && level(down.after_bytes_per_second, 1000.0));
    assert_eq!(down.causes.len(), 1, "{down:#?}");
    assert!(up.causes.is_empty(), "{up:#?}");
    let bytes: u64 = finding.samples.iter().map(|sample| sample.bytes).sum();
    assert_eq!((finding.samples.len(), bytes), (300, 500_000));
}

#[test]
fn rounds_come_to_rest_where_the_rule_says() {
    // Falls for 60 s, then holds.
    let (log, _) = run(200, 10, |second| 10_000 - 100 * second.min(60));
    let [lap] = log.finding(None).laps[..] else { panic!("one lap") };
    assert_eq!((lap.overwrites, lap.rounds), (false, 20));
    let reached = lap.reached.unwrap();
    // The criterion is met before the last falling round leaves the window, but not while all
    // rounds fall.
    assert!((70.0..=110.0).contains(&reached.at_seconds), "{reached:#?}");
    assert!(reached.range_share <= 0.2 && reached.drift_share.abs() <= 0.1);
    let last = lap.last.unwrap();
    assert_eq!((last.at_seconds, last.bytes_per_second, last.drift_share), (200.0, 4000.0, 0.0));
}

#[test]
fn what_never_rests_and_what_is_too_short_say_so() {
    let (log, _) = run(200, 10, |second| if second / 10 % 2 == 0 { 1000 } else { 1500 });
    let [lap] = log.finding(None).laps[..] else { panic!("one lap") };
    assert!(lap.reached.is_none() && lap.last.is_some(), "{lap:#?}");
    let (log, _) = run(49, 10, |_| 1000);
    let [lap] = log.finding(None).laps[..] else { panic!("one lap") };
    assert_eq!((lap.rounds, lap.reached, lap.last), (4, None, None));
}

#[test]
fn passes_are_judged_separately() {
    let mut log = Log::new(0, Duration::from_secs(2));
    for second in 1..=40 {
        if second == 21 {
            log.end_lap();
        }
        let bytes = if second <= 20 { second * 1000 } else { 20_000 + (second - 20) * 400 };
        log.tick(second * S, bytes, second > 20, SteadyConditions::default());
    }
    log.end_lap();
    let finding = log.finding(Some("why".into()));
    let [first, over] = finding.laps[..] else { panic!("{finding:#?}") };
    assert_eq!((first.overwrites, over.overwrites), (false, true));
    assert_eq!((first.rounds, over.rounds), (10, 10));
    assert_eq!(over.last.unwrap().bytes_per_second, 400.0);
    assert_eq!(over.reached.unwrap().at_seconds, 30.0, "its own five rounds, none of the first lap's");
    assert_eq!(finding.cut_short.as_deref(), Some("why"));
    let change = &finding.changes[0];
    assert_eq!(change.causes[0].kind, keepup_results::SteadyCauseKind::Overwriting);
}

#[test]
fn days_take_no_more_memory_than_an_hour() {
    let (log, changes) = run(100_000, 60, |second| if second / 50 % 2 == 0 { 1000 } else { 3000 });
    let finding = log.finding(None);
    assert!(finding.samples.len() <= SAMPLES_MAX + 1, "{}", finding.samples.len());
    assert_eq!(finding.samples.iter().map(|sample| sample.bytes).sum::<u64>(), 200_000_000);
    assert_eq!(finding.changes.len(), CHANGES_MAX);
    assert_eq!(finding.changes_left_out, (changes.len() - CHANGES_MAX) as u64);
    assert!(changes.len() > 1900, "every one is reported: {}", changes.len());
}
