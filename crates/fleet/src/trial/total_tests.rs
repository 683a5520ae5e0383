//! Sums over hosts, and the table.
use super::*;
use crate::trial::sample::outcome;

fn host(name: &str, outcome: Option<Outcome>) -> HostResult {
    HostResult {
        host: name.to_owned(),
        source: "10.0.0.1:8612".to_owned(),
        failure: outcome.is_none().then(|| "the host was lost".to_owned()),
        outcome,
        clock: Some(Offset { ns: 1_500_000, error_ns: 40_000 }),
    }
}

#[test]
fn results_add_up() {
    let hosts = vec![host("a", Some(outcome(40e6, 0))), host("b", Some(outcome(30e6, 2)))];
    let trial = FleetTrial::new("hall", Some(80e6), 150, hosts);
    assert_eq!((trial.achieved_bytes_per_second, trial.received_events, trial.lost_events), (70e6, 200, 2));
    assert!(!trial.is_whole());
    let table = trial.table();
    assert!(
        table.contains("all: 70.0 MB/s of 80.0 MB/s, 2 events lost\ncontrol traffic: 0.0075 %"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_host_without_a_result_is_named() {
    let trial =
        FleetTrial::new("hall", Some(80e6), 0, vec![host("a", Some(outcome(40e6, 0))), host("b", None)]);
    assert!(!trial.is_whole());
    assert!(trial.table().contains("b: the host was lost"), "{}", trial.table());
    let whole = FleetTrial::new("hall", Some(80e6), 0, vec![host("a", Some(outcome(40e6, 0)))]);
    assert!(whole.is_whole());
}

#[test]
fn counts_of_any_size_add_up() {
    let mut large = outcome(40e6, u64::MAX);
    large.run.ledger.received = keepup_results::Count { events: u64::MAX, bytes: u64::MAX };
    let trial =
        FleetTrial::new("hall", None, 0, vec![host("a", Some(large.clone())), host("b", Some(large))]);
    assert_eq!(
        (trial.received_events, trial.received_bytes, trial.lost_events),
        (u64::MAX, u64::MAX, u64::MAX)
    );
}
