//! Results of recorders, for tests.
use keepup_qualify::bottleneck::Evidence;
use keepup_qualify::search::TrialOutcome;
use keepup_results::{Count, CpuCost, LedgerSummary, RecordPlacement, RecordRun};

use super::total::Outcome;

/// A run of 1 s that received so many bytes/s and lost so many events.
pub(crate) fn outcome(rate: f64, lost: u64) -> Outcome {
    let received = Count { events: 100, bytes: 1_000_000 };
    let lost_count = Count { events: lost, bytes: 0 };
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
        ledger: LedgerSummary { received, lost: lost_count, ..LedgerSummary::default() },
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
    let judged = TrialOutcome {
        duration_s: 1.0,
        clean_s: 1.0,
        elapsed_s: 1.0,
        bytes: 1e6,
        offered_events: 100,
        lost_events: lost,
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
        evidence: Evidence { rate, durable_rate: rate, ..Evidence::default() },
        is_throttled: false,
        drain_bytes_per_second: None,
        drain_failure: None,
        usable_bytes: None,
        file_bytes: 0,
    }
}
