//! Event logs become lines: counters as rates, trial by trial, as far as a log goes.

use std::collections::BTreeMap;

use keepup_results::{Event, ResultsError, TrialResult, Verdict};

use super::History;

fn sample(t_ms: u64, values: &[(&str, f64)]) -> Result<Event, ResultsError> {
    let values: BTreeMap<String, f64> = values.iter().map(|(name, value)| ((*name).into(), *value)).collect();
    Ok(Event::Sample { t_unix_ns: 0, t_ms, values })
}

fn trial(passed: bool) -> Result<Event, ResultsError> {
    let trial = TrialResult {
        phase: "search".into(),
        asked_bytes_per_second: 1e6,
        seconds: 1.0,
        achieved_bytes_per_second: 1e6,
        durable_bytes_per_second: 1e6,
        lost_events: 0,
        backlog_growing: false,
        passed,
        failed_condition: None,
        backlog_bytes_max: None,
        stall_ms_max: None,
        buffer_seconds: None,
        cpu_seconds_per_gb: None,
        load_rates: vec![],
    };
    Ok(Event::Trial { t_unix_ns: 0, trial: Box::new(trial) })
}

fn points(history: &History, line: &str) -> Vec<(f64, Option<f64>)> {
    history.line(line).map(|line| line.points(1.0)).unwrap_or_default()
}

#[test]
fn a_counter_becomes_a_rate_and_begins_anew_with_each_trial() {
    let history = History::read([
        sample(1000, &[("received_bytes", 0.0)]),
        sample(1050, &[("received_bytes", 7.0)]),
        sample(1100, &[("received_bytes", 100.0)]),
        sample(1300, &[("received_bytes", 500.0)]),
        trial(true),
        sample(2000, &[("received_bytes", 600.0)]),
        sample(2100, &[("received_bytes", 650.0)]),
        trial(false),
    ]);
    let line = points(&history, "received_bytes_per_second");
    assert_eq!(line, [(1.1, Some(1000.0)), (1.3, Some(2000.0)), (1.3, None), (2.1, Some(500.0))]);
    let spans: Vec<_> = history.trials.iter().map(|t| (t.from_s, t.to_s, t.passed)).collect();
    assert_eq!(spans, [(1.0, 1.3, true), (2.0, 2.1, false)]);
}

#[test]
fn a_counter_that_falls_is_no_negative_rate() {
    let history = History::read([
        sample(0, &[("written_bytes", 900.0)]),
        sample(200, &[("written_bytes", 0.0)]),
        sample(400, &[("written_bytes", 20.0)]),
    ]);
    assert_eq!(points(&history, "written_bytes_per_second"), [(0.4, Some(100.0))]);
}

#[test]
fn the_backlog_is_what_is_due_and_neither_lost_nor_written() {
    let values =
        [("due_bytes", 10.0), ("lost_bytes", 1.0), ("written_bytes", 4.0), ("core_2_busy_percent", 9.0)];
    let history = History::read([sample(0, &values)]);
    assert_eq!(points(&history, "backlog_bytes"), [(0.0, Some(5.0))]);
    assert_eq!(history.cores().keys().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_damaged_log_is_used_up_to_there_and_says_so() {
    let damage = Err(ResultsError::NotAResult { path: "x".into() });
    let history = History::read([sample(0, &[("stall_ms", 1.0)]), damage, sample(1, &[("stall_ms", 2.0)])]);
    assert_eq!(points(&history, "stall_ms"), [(0.0, Some(1.0))]);
    assert!(history.incomplete.is_some_and(|why| why.contains("damaged") && !why.contains('\n')));
}

#[test]
fn a_log_without_its_end_says_so() {
    let whole = History::read([Ok(Event::Finished { t_unix_ns: 0, verdict: Some(Verdict::Fit) })]);
    assert_eq!(whole.incomplete, None);
    let cut = History::read([sample(0, &[("stall_ms", 1.0)])]);
    assert!(cut.incomplete.is_some_and(|why| why.contains("truncated")));
}

#[test]
fn a_log_of_endless_names_takes_bounded_memory() {
    let names: Vec<String> = (0..10_000).map(|n| format!("name {n}")).collect();
    let history = History::read(names.iter().map(|name| sample(0, &[(name, 1.0)])));
    assert_eq!(history.lines.len(), super::LINES_MAX);
}
