//! Sums over hosts, and the table.
use keepup_results::{Count, CpuCost, LedgerSummary, RecordPlacement};

use super::*;

/// A run that received so many bytes/s and lost so many events.
fn outcome(rate: f64, lost: u64) -> Outcome {
    let received = Count { events: 100, bytes: 1_000_000 };
    let lost = Count { events: lost, bytes: 0 };
    let run = RecordRun {
        volumes: Vec::new(),
        repeat: 1,
        begin_seconds: 0.0,
        asked_bytes_per_second: Some(rate),
        streams: 1,
        connections: 1,
        event_bytes: 10_000,
        placement: RecordPlacement::Free,
        to_null: true,
        source_seconds: 1.0,
        seconds: 1.0,
        achieved_bytes_per_second: rate,
        durable_bytes_per_second: None,
        first: None,
        ledger: LedgerSummary { received, lost, ..LedgerSummary::default() },
        cpu: CpuCost::default(),
        pool_bytes: 0,
        pool_bytes_used_max: 0,
        backlog_bytes_max: None,
        stall_seconds_max: None,
        engine: None,
        faults: None,
        read_back: None,
        broken_off: None,
        loads: Vec::new(),
        notes: Vec::new(),
    };
    let judged = keepup_qualify::search::TrialOutcome {
        duration_s: 1.0,
        clean_s: 1.0,
        elapsed_s: 1.0,
        bytes: 1e6,
        offered_events: 100,
        lost_events: 0,
        backlog_growing: false,
        longest_stall: None,
        buffer: None,
        achieved_rate: rate,
        offered_rate: rate,
        failed: None,
        generator_limited: false,
    };
    Outcome {
        run,
        start_delay_seconds: 0.0012,
        judged,
        evidence: Evidence::default(),
        is_throttled: false,
        usable_bytes: None,
        file_bytes: 0,
    }
}

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
    let trial = FleetTrial::new("hall", Some(80e6), 0, vec![host("a", Some(outcome(40e6, 0))), host("b", None)]);
    assert!(!trial.is_whole());
    assert!(trial.table().contains("b: the host was lost"), "{}", trial.table());
    let whole = FleetTrial::new("hall", Some(80e6), 0, vec![host("a", Some(outcome(40e6, 0)))]);
    assert!(whole.is_whole());
}
